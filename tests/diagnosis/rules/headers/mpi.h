/* Declarations of MPI as far as snippets use them, for where no MPI is installed. */
#ifndef MPI_H
#define MPI_H
typedef struct mpi_file *MPI_File;
typedef struct mpi_info *MPI_Info;
typedef struct mpi_request *MPI_Request;
typedef struct mpi_communicator *MPI_Comm;
typedef struct mpi_datatype *MPI_Datatype;
typedef struct { int source; } MPI_Status;
typedef long long MPI_Offset;
extern MPI_Comm MPI_COMM_WORLD;
extern MPI_Info MPI_INFO_NULL;
extern MPI_Datatype MPI_DOUBLE, MPI_BYTE;
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
enum { MPI_MODE_CREATE = 1, MPI_MODE_WRONLY = 4, MPI_MODE_RDONLY = 2, MPI_MODE_RDWR = 8 };
enum { MPI_THREAD_MULTIPLE = 3 };
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Info_create(MPI_Info *info);
int MPI_Info_set(MPI_Info info, const char *key, const char *value);
int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file);
int MPI_File_read_at_all(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *);
int MPI_File_write_at_all(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Status *);
int MPI_File_write_all(MPI_File, const void *, int, MPI_Datatype, MPI_Status *);
int MPI_File_iread_at(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Request *);
int MPI_File_iwrite_at(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Request *);
int MPI_File_iread_at_all(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Request *);
int MPI_File_iwrite_at_all(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Request *);
int MPI_Wait(MPI_Request *, MPI_Status *);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
#endif
