/* objects of 64 KiB and more begin at multiples of the stripe or block size, {stripe_size} */
hid_t access = H5Pcreate(H5P_FILE_ACCESS);
H5Pset_alignment(access, 65536, {stripe_bytes});
hid_t file = H5Fcreate("data.h5", flags, H5P_DEFAULT, access);  /* flags as they are now */
