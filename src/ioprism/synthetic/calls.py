"""Many calls of one kind, as arrays, and the events they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import EVENTS, Layer, Operation

Array = npt.NDArray[Any]

FUNCTIONS = {
    ("posix", "read"): "pread",
    ("posix", "write"): "pwrite",
    ("posix", "open"): "open",
    ("posix", "close"): "close",
    ("posix", "seek"): "lseek",
    ("posix", "stat"): "stat",
    ("posix", "sync"): "fsync",
    ("stdio", "read"): "fread",
    ("stdio", "write"): "fwrite",
    ("stdio", "open"): "fopen",
    ("stdio", "close"): "fclose",
    ("stdio", "seek"): "fseek",
    ("mpiio", "read"): "MPI_File_read_at",
    ("mpiio", "write"): "MPI_File_write_at",
    ("mpiio", "open"): "MPI_File_open",
    ("mpiio", "close"): "MPI_File_close",
    ("mpiio", "sync"): "MPI_File_sync",
}


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls of one layer and operation; the arrays need only be broadcastable."""

    layer: str
    operation: str
    start: Array
    end: Array
    rank: Array
    file: Array
    offset: Array | None = None
    size: Array | None = None
    collective: bool = False

    @property
    def count(self) -> int:
        """How many calls these are."""
        return int(np.prod(self._shape))

    @property
    def _shape(self) -> tuple[int, ...]:
        present = (self.start, self.end, self.rank, self.file, self.offset, self.size)
        return np.broadcast_shapes(*(array.shape for array in present if array is not None))

    @property
    def _function(self) -> str:
        data = self.operation in ("read", "write")
        return FUNCTIONS[self.layer, self.operation] + ("_all" if self.collective and data else "")

    def events(self) -> pl.DataFrame:
        """Return one row per call (see `schema.EVENTS`)."""
        count = self.count
        rank = self._flat(self.rank, np.int32)
        return pl.DataFrame(
            {
                "start": self._flat(self.start, np.float64),
                "end": self._flat(self.end, np.float64),
                "rank": rank,
                "process": rank.astype(np.uint32),
                "file": self._flat(self.file, np.uint32),
                "layer": pl.repeat(self.layer, count, dtype=Layer, eager=True),
                "operation": pl.repeat(self.operation, count, dtype=Operation, eager=True),
                "function": pl.repeat(self._function, count, dtype=pl.Categorical(), eager=True),
                "collective": pl.repeat(
                    self.collective if self.layer == "mpiio" else None,
                    count,
                    dtype=pl.Boolean,
                    eager=True,
                ),
                "nonblocking": pl.repeat(False, count, dtype=pl.Boolean, eager=True),
                "offset": self._optional(self.offset, count),
                "bytes": self._optional(self.size, count),
            },
            schema=EVENTS.schema,
        )

    def _flat(self, array: Array, dtype: npt.DTypeLike) -> Array:
        return np.broadcast_to(array.astype(dtype, copy=False), self._shape).ravel()

    def _optional(self, array: Array | None, count: int) -> Array | pl.Series:
        if array is None:
            return pl.repeat(None, count, dtype=pl.Int64, eager=True)
        return self._flat(array, np.int64)
