MPI_Request request;
MPI_File_iread_at(file, offset, next_block, count, MPI_DOUBLE, &request);
compute(this_block);
MPI_Wait(&request, MPI_STATUS_IGNORE);
