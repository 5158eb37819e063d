MPI_Request request;  /* MPI 3.1 and later; every rank calls it */
MPI_File_iwrite_at_all(file, offset, checkpoint, count, MPI_DOUBLE, &request);
compute();  /* `checkpoint` must stay as it is until the wait */
MPI_Wait(&request, MPI_STATUS_IGNORE);
