"""Whether a module's records can be true: damage that no checksum shows.

Darshan counts every read and write twice: once as such, once in a histogram of sizes. Where
the two disagree, or a count is negative, the record was damaged.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ioprism.formats.darshan.records import SIZE_BINS

LARGEST = 2**60  # an exbibyte, and more calls than any job makes

# Module -> prefix of its histogram -> the counters whose sum it must equal.
_TWICE_COUNTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "POSIX": {
        "POSIX_SIZE_READ_": ("POSIX_READS",),
        "POSIX_SIZE_WRITE_": ("POSIX_WRITES",),
    },
    "MPI-IO": {
        f"MPIIO_SIZE_{direction}_AGG_": tuple(
            f"MPIIO_{kind}_{direction}S" for kind in ("INDEP", "COLL", "SPLIT", "NB")
        )
        for direction in ("READ", "WRITE")
    },
    "H5D": {
        "H5D_SIZE_READ_AGG_": ("H5D_READS",),
        "H5D_SIZE_WRITE_AGG_": ("H5D_WRITES",),
    },
    "DFS": {
        "DFS_SIZE_READ_": ("DFS_READS", "DFS_READXS"),
        "DFS_SIZE_WRITE_": ("DFS_WRITES", "DFS_WRITEXS"),
    },
}


def contradictions(table: pl.DataFrame, module: str) -> int:
    """Count the records that contradict themselves or hold impossible numbers."""
    counts = [
        name
        for name in table.columns
        if name.endswith(("_READS", "_WRITES", "OPENS", "_BYTES_READ", "_BYTES_WRITTEN"))
    ]
    wrong = [pl.col(name).is_between(-1, LARGEST).not_().fill_null(False) for name in counts]
    for prefix, names in _TWICE_COUNTED.get(module, {}).items():
        histogram = pl.sum_horizontal(f"{prefix}{size}" for size in SIZE_BINS)
        wrong.append(histogram != pl.sum_horizontal(names))
    return int(table.select(pl.any_horizontal(wrong).sum()).item()) if wrong else 0
