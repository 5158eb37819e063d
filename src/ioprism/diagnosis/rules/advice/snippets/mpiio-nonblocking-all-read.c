MPI_Request request;  /* MPI 3.1 and later; every rank calls it */
MPI_File_iread_at_all(file, offset, next_block, count, MPI_DOUBLE, &request);
compute(this_block);
MPI_Wait(&request, MPI_STATUS_IGNORE);
