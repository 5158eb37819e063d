"""Signatures understood together mean what they mean one by one."""

from __future__ import annotations

import struct

import polars as pl
import pytest

from ioprism.formats.recorder.meaning import MANY, families, plain_name
from ioprism.formats.recorder.reader import vocabulary
from ioprism.formats.recorder.signatures import SignatureTable, read_signatures

FUNCTIONS = ("pread", "write", "readv", "lseek", "fwrite", "fseek", "MPI_File_write_at", "open",
             "vfprintf")  # fmt: skip
NUMBERS = (0, 1, 7, 4096, -1, 2**40, 10**17, 3, -(2**40))


def arguments_of(name: str, n: int) -> list[str]:
    number, other = str(NUMBERS[n % len(NUMBERS)] * (1 + n // 20)), str(n)
    path = f"/data/{n % 3}"
    return {
        "pread": [path, "%p", other, number],
        "write": [path, "%p", number],
        "readv": [path, number, "2"],
        "lseek": [path, number, str(n % 3)],
        "fwrite": ["%p", number, str(n % 5), path],
        "fseek": [path, number, str(n % 2)],
        "MPI_File_write_at": ["MPI_FILE_1", number, "%p", str(n % 4), "MPI_DOUBLE", "%p"],
        "open": [path, other, "0"],
        "vfprintf": [path, other],
    }[name]


def table(count: int) -> bytes:
    entries = []
    for number in range(count):
        function = number % len(FUNCTIONS)
        arguments = arguments_of(FUNCTIONS[function], number)
        if number % 97 == 0:
            arguments[-1] = "8*r+16"  # a formula in the rank, or nonsense
        if number % 89 == 0:
            arguments = arguments[:1]
        text = "".join(f"{argument} " for argument in arguments).encode()
        key = struct.pack("<QBBBi", 1, function, 0, len(arguments), len(text)) + text
        entries.append(struct.pack("<iiiI", number, 0, len(key), 1) + key)
    return struct.pack("<i", count) + b"".join(entries)


def fail(message: str) -> None:
    pytest.fail(message)


@pytest.fixture(scope="module")
def signatures() -> SignatureTable:
    return read_signatures(table(3000), FUNCTIONS, wide=False, warn=fail)


def test_together_they_mean_what_they_mean_one_by_one(signatures: SignatureTable) -> None:
    one_by_one: dict[str, int] = {}
    together: dict[str, int] = {}
    expected = vocabulary({n: signatures.row(n) for n in range(len(signatures))}, one_by_one)
    found = vocabulary(signatures, together)
    by_row = dict(enumerate(one_by_one))

    assert set(together) == set(one_by_one)
    assert expected.columns == found.columns
    for name in expected.columns:
        left, right = expected[name], found[name]
        if name == "file":
            assert [by_row.get(n) for n in left] == [
                dict(enumerate(together)).get(n) for n in right
            ]
        else:
            assert left.cast(pl.String).to_list() == right.cast(pl.String).to_list(), name


def test_there_are_far_fewer_families_than_signatures(signatures: SignatureTable) -> None:
    few = families(read_signatures(table(MANY), FUNCTIONS, wide=False, warn=fail))

    assert len(families(signatures).first) < len(signatures) / 2  # two functions of nine have none
    assert len(few.first) == MANY


def test_calls_through_mpis_profiling_interface_are_mpi_calls() -> None:
    assert plain_name("PMPI_File_write_at") == "MPI_File_write_at"
    assert plain_name("pwrite") == "pwrite"
