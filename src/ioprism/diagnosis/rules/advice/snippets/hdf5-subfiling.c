/* HDF5 1.14 and later: one file per node instead of one for all ranks */
hid_t access = H5Pcreate(H5P_FILE_ACCESS);
H5Pset_mpi_params(access, MPI_COMM_WORLD, MPI_INFO_NULL);
H5Pset_fapl_subfiling(access, NULL);
hid_t file = H5Fcreate("data.h5", flags, H5P_DEFAULT, access);  /* flags as they are now */
