/* a chunk is what one access touches: here 256 x 256 doubles, 512 KiB */
hsize_t chunk[2] = {256, 256};
hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
H5Pset_chunk(creation, 2, chunk);
