MPI_Info info;
MPI_Info_create(&info);
MPI_Info_set(info, "romio_ds_write", "disable");  /* write the pieces, do not read around them */
MPI_Info_set(info, "romio_cb_write", "enable");   /* let aggregators join them */
MPI_File_open(MPI_COMM_WORLD, "output.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
