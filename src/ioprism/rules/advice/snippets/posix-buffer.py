with open("output.dat", "wb", buffering=8 * 2**20) as file:  # 8 MiB instead of 8 KiB
    for record in records:
        file.write(record)
