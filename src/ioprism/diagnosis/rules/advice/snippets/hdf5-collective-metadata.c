hid_t access = H5Pcreate(H5P_FILE_ACCESS);
H5Pset_fapl_mpio(access, MPI_COMM_WORLD, info);
H5Pset_all_coll_metadata_ops(access, true);   /* one rank reads metadata for all */
H5Pset_coll_metadata_write(access, true);
hid_t file = H5Fopen("data.h5", H5F_ACC_RDWR, access);
