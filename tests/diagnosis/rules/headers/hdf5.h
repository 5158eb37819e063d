/* Declarations of HDF5 as far as snippets use them, for where no HDF5 is installed. */
#ifndef HDF5_H
#define HDF5_H
#include <stdbool.h>
#include "mpi.h"
typedef long long hid_t;
typedef unsigned long long hsize_t;
typedef int herr_t;
extern hid_t H5P_FILE_ACCESS, H5P_DATASET_XFER, H5P_DATASET_CREATE, H5T_NATIVE_DOUBLE;
#define H5P_DEFAULT ((hid_t)0)
enum { H5F_ACC_TRUNC = 2, H5F_ACC_RDWR = 1 };
typedef enum { H5FD_MPIO_INDEPENDENT, H5FD_MPIO_COLLECTIVE } H5FD_mpio_xfer_t;
typedef enum { H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_NEVER } H5D_fill_time_t;
hid_t H5Pcreate(hid_t);
herr_t H5Pset_alignment(hid_t, hsize_t, hsize_t);
herr_t H5Pset_chunk(hid_t, int, const hsize_t *);
herr_t H5Pset_chunk_cache(hid_t, unsigned long, unsigned long, double);
herr_t H5Pset_fill_time(hid_t, H5D_fill_time_t);
herr_t H5Pset_fapl_mpio(hid_t, MPI_Comm, MPI_Info);
herr_t H5Pset_mpi_params(hid_t, MPI_Comm, MPI_Info);
herr_t H5Pset_fapl_subfiling(hid_t, const void *);
herr_t H5Pset_all_coll_metadata_ops(hid_t, bool);
herr_t H5Pset_coll_metadata_write(hid_t, bool);
herr_t H5Pset_dxpl_mpio(hid_t, H5FD_mpio_xfer_t);
hid_t H5Fcreate(const char *, unsigned, hid_t, hid_t);
hid_t H5Fopen(const char *, unsigned, hid_t);
herr_t H5Dwrite(hid_t, hid_t, hid_t, hid_t, hid_t, const void *);
#endif
