with open("output.dat", "wb", buffering={request_bytes}) as file:  # {request_size} instead of 8 KiB
    for record in records:
        file.write(record)
