MPI_Request request;
MPI_File_iwrite_at(file, offset, checkpoint, count, MPI_DOUBLE, &request);
compute();  /* `checkpoint` must stay as it is until the wait */
MPI_Wait(&request, MPI_STATUS_IGNORE);
