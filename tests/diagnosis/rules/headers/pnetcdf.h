/* Declarations of PnetCDF as far as snippets use them, for where no PnetCDF is installed. */
#ifndef PNETCDF_H
#define PNETCDF_H
#include "mpi.h"
enum { NC_CLOBBER = 0, NC_NOFILL = 0x100, NC_REQ_ALL = -1 };
int ncmpi_create(MPI_Comm, const char *, int, MPI_Info, int *);
int ncmpi_set_fill(int, int, int *);
int ncmpi_put_vara_double_all(int, int, const MPI_Offset *, const MPI_Offset *, const double *);
int ncmpi_put_vara_float_all(int, int, const MPI_Offset *, const MPI_Offset *, const float *);
int ncmpi_iput_vara_double(int, int, const MPI_Offset *, const MPI_Offset *, const double *, int *);
int ncmpi_iput_vara_float(int, int, const MPI_Offset *, const MPI_Offset *, const float *, int *);
int ncmpi_wait_all(int, int, int *, int *);
#endif
