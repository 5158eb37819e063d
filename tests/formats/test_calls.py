"""Functions belong to the interface and the operation that their names tell."""

from __future__ import annotations

import pytest

from ioprism.formats.calls import classify


@pytest.mark.parametrize(
    ("name", "layer", "operation"),
    [
        ("read", "posix", "read"), ("pwrite64", "posix", "write"), ("__xstat64", "posix", "stat"),
        ("newfstatat", "posix", "stat"), ("open64", "posix", "open"), ("lseek64", "posix", "seek"),
        ("fdatasync", "posix", "sync"), ("getdents64", "posix", "metadata"),
        ("opendir", "posix", "metadata"), ("waitpid", "posix", "other"),
        ("fopen64", "stdio", "open"), ("fwrite", "stdio", "write"), ("fseeko64", "stdio", "seek"),
        ("MPI_File_open", "mpiio", "open"), ("MPI_File_iread_at", "mpiio", "read"),
        ("MPI_File_set_view", "mpiio", "metadata"), ("H5Dwrite", "hdf5", "write"),
        ("H5Fcreate", "hdf5", "open"), ("nc_put_vara_float", "netcdf", "write"),
        ("ncmpi_get_vara_all", "pnetcdf", "read"), ("MPI_Barrier", "other", "other"),
    ],
)  # fmt: skip
def test_a_function_is_known_by_its_name(name: str, layer: str, operation: str) -> None:
    call = classify(name)

    assert (call.layer, call.operation) == (layer, operation)


def test_mpi_calls_tell_whether_they_are_collective() -> None:
    assert classify("MPI_File_write_at_all").collective is True
    assert classify("MPI_File_write_at").collective is False
    assert classify("MPI_File_iwrite").nonblocking is True
    assert classify("MPI_File_read_at_all").positional
