"""Leave out calls that wait for other processes: `waitpid` and `fork` are no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from ioprism.model.trace import Partition, Trace, Warn


@dataclass(frozen=True, slots=True, eq=False)
class IoPartition:
    """Events of a partition without calls of the system that touch no file and move nothing."""

    partition: Partition

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events in pieces."""
        idle = (
            (pl.col("layer") == "posix")
            & (pl.col("operation") == "other")
            & pl.col("file").is_null()
        )
        for batch in self.partition.batches(warn):
            yield batch.filter(~idle)


def has_only_io(trace: Trace) -> bool:
    """Whether nothing but I/O is recorded: so does Darshan, which also counts."""
    return "counters" in trace.detail or trace.format == "darshan"


def without_process_control(trace: Trace) -> Trace:
    """Return the trace without them."""
    if has_only_io(trace):
        return trace
    return replace(trace, partitions=tuple(IoPartition(part) for part in trace.partitions))
