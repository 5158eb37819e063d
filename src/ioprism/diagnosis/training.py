"""Training runs: when processes compute, and which I/O computing does not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ioprism.diagnosis.process_control import has_only_io
from ioprism.diagnosis.rows import Floats
from ioprism.diagnosis.sampling import NOT_IO
from ioprism.diagnosis.stages import StageEvents, stage_events
from ioprism.engine.base import Engine
from ioprism.model.arrays import Cover
from ioprism.model.trace import Partition, Trace, Warn

STORAGE_LAYERS = ("posix", "stdio")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """When processes compute, and whether those that do read the samples."""

    stages: StageEvents
    computing: Mapping[int, Cover]  # by rank
    everybody: Cover  # when all that compute do so at once
    in_the_loop: float  # share of the reading time that threads spend which compute

    @property
    def loading_stage(self) -> str:
        """The name of what waits for samples: the loop's fetching, if it is recorded."""
        for kind in ("fetch", "sample"):
            events = self.stages.of(kind)
            if events.height:
                length = events.group_by("function").agg((pl.col("end") - pl.col("start")).sum())
                longest = length.sort("end", "function", descending=[True, False])
                return str(longest["function"][0])
        return "compute"

    def epoch_starts(self, rank: int) -> Floats:
        """When each epoch of a rank begins."""
        return self.stages.of("epoch").filter(rank=rank).sort("start")["start"].to_numpy()

    def hidden(self, rank: int | None) -> Cover:
        """When a rank's I/O stalls nothing: it computes, or, if it never does, all others do."""
        return self.everybody if rank is None else self.computing.get(rank, self.everybody)

    def exposed(self, trace: Trace) -> Trace:
        """Return the trace with I/O calls shortened by what computing covers."""
        return replace(
            trace, partitions=tuple(ExposedPartition(part, self) for part in trace.partitions)
        )


def find_training(trace: Trace, engine: Engine) -> Training | None:
    """Return when a training run computes; None for other programs."""
    if has_only_io(trace):
        return None
    stages = stage_events(trace, engine)
    if not stages.trains:
        return None
    computing = stages.computing
    threads = stages.of("compute")["process"].drop_nulls().unique().to_list()
    return Training(
        stages, computing, _at_once(list(computing.values())), _reading_of(trace, threads)
    )


def _reading_of(trace: Trace, threads: list[int]) -> float:
    """The share of the time in reads that these threads spend."""
    seconds = (pl.col("end") - pl.col("start")).sum()
    parts = [
        batch.filter((pl.col("operation") == "read") & pl.col("layer").is_in(STORAGE_LAYERS))
        .group_by(inside=pl.col("process").is_in(threads))
        .agg(seconds=seconds)
        .collect()
        for batch in trace.batches()
    ]
    table = pl.concat(parts)
    total = float(table["seconds"].sum())
    return float(table.filter("inside")["seconds"].sum()) / total if total > 0 else 0.0


def _at_once(covers: list[Cover]) -> Cover:
    """When all of these are on."""
    moments = np.concatenate([*(c.start for c in covers), *(c.end for c in covers)])
    change = np.repeat([1, -1], len(moments) // 2)
    order = np.lexsort((change, moments))
    on = np.cumsum(change[order])
    full = np.flatnonzero(on == len(covers))
    full = full[full + 1 < len(moments)]
    return Cover(moments[order][full], moments[order][full + 1])


@dataclass(frozen=True, slots=True, eq=False)
class ExposedPartition:
    """Events of a partition; I/O calls that computing covers are shortened, or gone."""

    partition: Partition
    run: Training

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events in pieces."""
        for batch in self.partition.batches(warn):
            yield exposed(batch.collect(), self.run).lazy()


def exposed(events: pl.DataFrame, run: Training) -> pl.DataFrame:
    """Shorten I/O calls by what computing covers; those covered wholly go.

    What remains of a call follows its first moment that is not covered, so that its end may be
    earlier than it was.
    """
    is_io = ~pl.col("layer").is_in(NOT_IO)
    calls = events.filter(is_io)
    parts = [
        _exposed(own, run.hidden(own["rank"][0]))
        for own in calls.partition_by("rank", maintain_order=True)
    ]
    return pl.concat([events.filter(~is_io), *parts])


def _exposed(own: pl.DataFrame, hidden: Cover) -> pl.DataFrame:
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    left = end - start - hidden.within(start, end)
    begin = np.minimum(hidden.first_free(start), end)
    changed = own.with_columns(start=pl.Series(begin), end=pl.Series(begin + left))
    return changed.filter(pl.Series((left > 0) | (end <= start)))
