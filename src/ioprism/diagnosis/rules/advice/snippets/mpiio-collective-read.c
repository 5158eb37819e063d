/* every rank calls it, also with a count of 0 */
MPI_File_open(MPI_COMM_WORLD, "input.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
MPI_File_read_at_all(file, offset, buffer, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
