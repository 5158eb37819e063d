file = open(path, mode, buffering={request_bytes})  # {request_size} instead of 8 KiB; keep the mode
