MPI_Info info;
MPI_Info_create(&info);
MPI_Info_set(info, "romio_cb_write", "enable");
MPI_Info_set(info, "cb_nodes", "16");           /* the nodes of the job */
MPI_Info_set(info, "cb_config_list", "*:1");    /* one aggregator on each */
MPI_Info_set(info, "cb_buffer_size", "16777216");
MPI_File_open(MPI_COMM_WORLD, "output.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
