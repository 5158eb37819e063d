"""The calls of a burst: data, and what surrounds them, in every layer they pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.synthetic.schedule import (
    CLOSE,
    INNER,
    OUTER,
    SEEK,
    SYNC,
    Floats,
    Placement,
    Schedule,
    aggregators,
)
from benchmarks.synthetic.truth import Integers
from benchmarks.synthetic.workload import Burst, Workload
from ioprism.model.schema import EVENTS, Layer, Operation


def burst_calls(
    burst: Burst,
    ranks: npt.NDArray[np.int64],
    files: Integers,
    plan: Schedule,
    placed: Placement,
    workload: Workload,
) -> Iterator[Calls]:
    """Yield the calls of all phases: the MPI-IO layer first, if there is one."""
    rank, file = ranks[None, :, None], files[:, :, None]
    below = "posix" if burst.layer == "mpiio" else burst.layer
    workers = aggregators(burst, len(ranks)) if burst.collective else np.arange(len(ranks))
    shown = partial(Calls, rank=rank, file=file)
    hidden = partial(Calls, rank=rank[:, workers], file=file)
    if burst.layer == "mpiio":
        start, end = _outer(burst, plan)
        yield shown("mpiio", burst.direction, start, end, offset=placed.offsets,
                    size=placed.sizes, collective=burst.collective)  # fmt: skip
    if burst.collective:
        offsets, lengths = file_domains(burst, placed)
        start, end = _inner_of_aggregators(ranks[workers], plan, workload)
        yield hidden("posix", burst.direction, start, end, offset=offsets, size=lengths)
    else:
        start, end = plan.within(INNER)
        if burst.seeks:
            yield hidden(below, "seek", *plan.within(SEEK))
        yield hidden(below, burst.direction, start, end, offset=placed.offsets, size=placed.sizes)
    yield from _frame(burst, plan, shown, hidden, workers)


def _outer(burst: Burst, plan: Schedule) -> tuple[Floats, Floats]:
    start, end = plan.within(OUTER)
    if not burst.collective:
        return start, end
    # Ranks come one after the other and leave together.
    ranks = plan.begin.shape[1]
    late = 0.005 * (np.arange(ranks) / ranks)[None, :, None] * plan.widths
    return start + late, np.broadcast_to(end, (len(start), ranks, end.shape[2]))


def _inner_of_aggregators(
    workers: npt.NDArray[np.int64], plan: Schedule, workload: Workload
) -> tuple[Floats, Floats]:
    factors = np.array([workload.factor(rank) for rank in workers.tolist()])
    share = (factors / factors.max())[None, :, None]
    start, end = plan.within(INNER)
    start = np.broadcast_to(start, (len(start), len(workers), start.shape[2]))
    return start, start + (end - start) * share


def file_domains(burst: Burst, placed: Placement) -> tuple[Integers, Integers]:
    """What each aggregator moves in each collective call: offsets, and (A, n) lengths."""
    ranks = placed.offsets.shape[1]
    total = ranks * placed.sizes
    share = -(-total // burst.aggregators)
    before = np.minimum(np.arange(burst.aggregators)[:, None] * share, total)
    lengths = np.minimum(share, total - before)
    return placed.offsets[:, :1] + before[None], lengths


def _frame(
    burst: Burst,
    plan: Schedule,
    shown: partial[Calls],
    hidden: partial[Calls],
    workers: npt.NDArray[np.int64],
) -> Iterator[Calls]:
    """The calls around the data: open, sync, close; once, or in each phase with a new file."""
    below = "posix" if burst.layer == "mpiio" else burst.layer
    all_phases = slice(None)
    first = all_phases if burst.per_phase else slice(0, 1)
    last = all_phases if burst.per_phase else slice(-1, None)
    around = [("open", 0.0, first), ("close", CLOSE, last)]
    if burst.sync:
        around.append(("sync", SYNC, all_phases))
    for operation, share, phases in around:
        start, end = (time[phases, :, None] for time in plan.call(share))
        if burst.layer == "mpiio":
            yield shown("mpiio", operation, start, end, collective=True)
        margin = (0.1 if burst.layer == "mpiio" else 0.0) * (end - start)
        inside = (start + margin)[:, workers], (end - margin)[:, workers]
        # A buffered stream is forced to storage by its descriptor.
        yield hidden("posix" if operation == "sync" else below, operation, *inside)


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
