"""Training runs: when processes compute, and which I/O computing does not overlap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
import polars as pl

from ioprism.diagnosis.rows import Floats
from ioprism.diagnosis.sampling import NOT_IO
from ioprism.engine.base import Engine
from ioprism.model.arrays import Cover
from ioprism.model.trace import Partition, Trace, Warn
from ioprism.model.verdict import EpochShare, Stage
from ioprism.views.totals import ApplicationEvents

# Words that training frameworks and tracers use, the first that fits counts. A loop's own events
# are `.iter`, waiting for the next item, and `.yield`, what is done with it.
KINDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "checkpoint": r"checkpoint|save_state|load_state|(^|\.)(capture|restart)$",
        "compute": r"compute|forward|backward|train_?step|training_step|optimizer",
        "sample": r"__getitem__|read_index|(get|read|load)_sample|(^|\.)item$|preprocess",
        "fetch": r"(?<!epoch)\.iter$|fetch|__next__|(get|next|load)_batch",
        "epoch": r"epoch|(^|[._])train$",
        "application": r"(^|\.)(run|main|application)$",
    }.items()
}
SHOWN = ("application", "epoch", "compute", "fetch", "sample", "checkpoint")


@dataclass(frozen=True, slots=True, eq=False)
class StageEvents:
    """Application events that have a meaning: start, end, rank, process, function, kind."""

    table: pl.DataFrame

    def of(self, kind: str) -> pl.DataFrame:
        """Those of one kind."""
        return self.table.filter(kind=kind)

    @property
    def computing(self) -> dict[Any, Cover]:
        """When each rank computes."""
        return {key[0]: cover_of(own) for key, own in self.of("compute").group_by("rank")}

    @property
    def trains(self) -> bool:
        """Whether the program tells computing from fetching samples."""
        kinds = set(self.table["kind"].unique())
        return "compute" in kinds and bool(kinds & {"fetch", "sample"})


def stage_events(trace: Trace, engine: Engine) -> StageEvents:
    """Read the events of the application that have a meaning."""
    (table,) = engine.run(trace, ApplicationEvents())
    kinds = {name: kind_of(name) for name in table["function"].drop_nulls().unique().to_list()}
    known = pl.col("function").replace_strict(kinds, default=None, return_dtype=pl.String)
    return StageEvents(table.with_columns(kind=known).drop_nulls("kind"))


def kind_of(function: str) -> str | None:
    """Return the kind of stage that a function's name stands for."""
    return next((kind for kind, words in KINDS.items() if words.search(function)), None)


def cover_of(events: pl.DataFrame) -> Cover:
    """The time that events take up."""
    return Cover(events["start"].to_numpy(), events["end"].to_numpy())


def list_stages(events: StageEvents) -> tuple[Stage, ...]:
    """Return the stages in order of nesting; none where the application tells nothing."""
    computing = events.computing
    whole = cover_of(events.of("application")) if events.of("application").height else None
    length = whole.seconds if whole else cover_of(events.table).seconds
    epochs = list(_epochs(events))
    result = []
    for kind in SHOWN:
        own = events.of(kind)
        if own.is_empty():
            continue
        all_of_it, outside = cover_of(own), _outside(own, computing)
        shares = tuple(_in_epoch(all_of_it, outside, *epoch) for epoch in epochs)
        functions = tuple(sorted(own["function"].unique()))
        seconds = all_of_it.seconds
        share = seconds / length if length > 0 else 0.0
        result.append(Stage(kind, functions, seconds, outside.seconds, share, shares))
    return tuple(result)


def _epochs(events: StageEvents) -> Iterator[tuple[float, float]]:
    """When each epoch begins and ends: the n-th of every process belong together."""
    own = events.of("epoch")
    if own.is_empty():
        return
    # Where epochs and training are both told, the most frequent is the epoch.
    counts = own.group_by("function").len().sort("len", "function", descending=[True, False])
    chosen = own.filter(function=counts["function"][0]).sort("rank", "start")
    number = pl.int_range(pl.len()).over("rank").alias("number")
    spans = (
        chosen.with_columns(number)
        .group_by("number")
        .agg(pl.col("start").min(), pl.col("end").max())
    )
    yield from spans.sort("number").select("start", "end").iter_rows()


def _outside(own: pl.DataFrame, computing: Mapping[object, Cover]) -> Cover:
    """The parts of events in which their process does not compute itself."""
    starts, ends = [np.empty(0)], [np.empty(0)]
    for key, events in own.group_by("rank"):
        start, end = events["start"].to_numpy(), events["end"].to_numpy()
        hidden = computing.get(key[0])
        begin, finish = (start, end) if hidden is None else hidden.gaps_in(start, end)
        starts.append(begin)
        ends.append(finish)
    return Cover(np.concatenate(starts), np.concatenate(ends))


def _in_epoch(all_of_it: Cover, outside: Cover, start: float, end: float) -> EpochShare:
    edges = np.array([start]), np.array([end])
    seconds, unhidden = (float(cover.within(*edges)[0]) for cover in (all_of_it, outside))
    return EpochShare(seconds, unhidden, seconds / (end - start) if end > start else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPartition:
    """A partition whose events are changed, or left out, as they are read."""

    partition: Partition
    change: Callable[[pl.LazyFrame], pl.LazyFrame]

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events in pieces."""
        return map(self.change, self.partition.batches(warn))


def change_events(trace: Trace, change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Trace:
    """Return the trace with changed events."""
    changed = tuple(ChangedPartition(part, change) for part in trace.partitions)
    return replace(trace, partitions=changed)


def has_only_io(trace: Trace) -> bool:
    """Whether nothing but I/O is recorded: so does Darshan, which also counts."""
    return "counters" in trace.detail or trace.format == "darshan"


def without_process_control(trace: Trace) -> Trace:
    """Return the trace without calls of the system that touch no file and move nothing."""
    if has_only_io(trace):
        return trace
    idle = (
        (pl.col("layer") == "posix") & (pl.col("operation") == "other") & pl.col("file").is_null()
    )
    return change_events(trace, methodcaller("filter", ~idle))


STORAGE_LAYERS = ("posix", "stdio")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """When processes compute, and whether those that do read the samples."""

    stages: StageEvents
    computing: Mapping[int, Cover]  # by rank
    everybody: Cover  # when all computing processes compute
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
        return change_events(trace, partial(exposed, run=self))


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


def exposed(batch: pl.LazyFrame, run: Training) -> pl.LazyFrame:
    """Shorten I/O calls by what computing covers; those covered wholly go.

    What remains of a call follows its first moment that is not covered, so that its end may be
    earlier than it was.
    """
    events, is_io = batch.collect(), ~pl.col("layer").is_in(NOT_IO)
    calls = events.filter(is_io)
    parts = [
        _cut_overlap(own, run.hidden(own["rank"][0]))
        for own in calls.partition_by("rank", maintain_order=True)
    ]
    return pl.concat([events.filter(~is_io), *parts]).lazy()


def _cut_overlap(own: pl.DataFrame, hidden: Cover) -> pl.DataFrame:
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    left = end - start - hidden.within(start, end)
    begin = np.minimum(hidden.first_free(start), end)
    changed = own.with_columns(start=pl.Series(begin), end=pl.Series(begin + left))
    return changed.filter(pl.Series((left > 0) | (end <= start)))
