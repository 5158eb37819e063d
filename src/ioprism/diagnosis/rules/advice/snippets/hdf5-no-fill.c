/* do not write fill values first: every element is written anyway */
hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
