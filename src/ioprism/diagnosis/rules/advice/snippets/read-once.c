/* rank 0 reads what all need, and hands it on */
if (rank == 0) read_whole(path, buffer, size);
MPI_Bcast(buffer, size, MPI_BYTE, 0, MPI_COMM_WORLD);
