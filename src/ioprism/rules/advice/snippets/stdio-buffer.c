static char buffer[8 << 20];  /* glibc ignores a size without a buffer */
setvbuf(file, buffer, _IOFBF, sizeof buffer);  /* before the first read or write */
