/* every rank calls it, also with a count of 0 */
MPI_File_open(MPI_COMM_WORLD, "output.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
MPI_File_write_at_all(file, offset, buffer, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
