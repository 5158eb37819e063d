/* its background thread calls MPI: without MPI_THREAD_MULTIPLE it falls back or fails */
int provided;
MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
