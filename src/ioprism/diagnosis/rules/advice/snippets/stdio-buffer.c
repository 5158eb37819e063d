FILE *file = fopen("data.bin", "r+b");  /* keep the mode that the program uses */
static char buffer[8 << 20];            /* glibc ignores a size without a buffer */
setvbuf(file, buffer, _IOFBF, sizeof buffer);  /* before the first read or write */
