MPI_Info info;
MPI_Info_create(&info);
MPI_Info_set(info, "romio_cb_write", "disable");  /* no exchange: each rank writes its part */
MPI_Info_set(info, "romio_cb_read", "disable");
MPI_File_open(MPI_COMM_WORLD, "output.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
