FILE *file = fopen("output.dat", "wb");
setvbuf(file, NULL, _IOFBF, 8 << 20);  /* before the first read or write */
