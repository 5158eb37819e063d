MPI_Info info;
MPI_Info_create(&info);
MPI_Info_set(info, "romio_cb_write", "enable");
MPI_Info_set(info, "cb_nodes", "{cb_nodes}");  /* {cb_nodes_why} */
MPI_Info_set(info, "cb_config_list", "*:1");    /* one aggregator on each node */
MPI_Info_set(info, "cb_buffer_size", "{cb_buffer_size}");
MPI_Info_set(info, "striping_factor", "{cb_nodes}");  /* for new files: as many targets */
MPI_Info_set(info, "striping_unit", "{stripe_bytes}");
MPI_File_open(MPI_COMM_WORLD, "output.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
