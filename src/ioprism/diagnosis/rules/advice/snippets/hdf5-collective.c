hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory_space, file_space, transfer, buffer);
