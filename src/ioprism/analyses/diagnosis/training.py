"""Training runs: only I/O that computing does not cover holds them up; who reads the samples?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import READ, Flags, Floats
from ioprism.analyses.diagnosis.observations import BELOW
from ioprism.analyses.diagnosis.process_control import has_only_io
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.analyses.diagnosis.sampling import NOT_IO
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.analyses.diagnosis.stages import StageEvents, stage_events
from ioprism.engine.base import Engine
from ioprism.model.trace import Partition, Trace, Warn
from ioprism.records import dataclass
from ioprism.views.time.cover import Cover

IN_THE_LOOP = 0.5  # of the reading time is spent by threads that compute: nobody reads ahead


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """When processes compute, and whether those that do read the samples."""

    stages: StageEvents
    computing: Mapping[int, Cover]  # by rank
    everybody: Cover  # when all that compute do so at once
    in_the_loop: float  # share of the reading time that threads spend which compute

    def hidden(self, rank: int | None) -> Cover:
        """When a rank's I/O holds nobody up: it computes, or, if it never does, all others do."""
        return self.everybody if rank is None else self.computing.get(rank, self.everybody)

    def uncovered(self, trace: Trace) -> Trace:
        """Return the trace with I/O calls shortened by what computing covers."""
        return replace(
            trace, partitions=tuple(UncoveredPartition(part, self) for part in trace.partitions)
        )


def training(trace: Trace, engine: Engine) -> Training | None:
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
        batch.filter((pl.col("operation") == "read") & pl.col("layer").is_in(BELOW))
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
class UncoveredPartition:
    """Events of a partition; I/O calls that computing covers are shortened, or gone."""

    partition: Partition
    run: Training

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events in pieces."""
        for batch in self.partition.batches(warn):
            yield uncovered(batch.collect(), self.run).lazy()


def uncovered(events: pl.DataFrame, run: Training) -> pl.DataFrame:
    """Shorten I/O calls by what computing covers; those covered wholly go.

    What remains of a call follows its first moment that is not covered, so that its end may be
    earlier than it was.
    """
    is_io = ~pl.col("layer").is_in(NOT_IO)
    calls = events.filter(is_io)
    parts = [
        _uncovered(own, run.hidden(own["rank"][0]))
        for own in calls.partition_by("rank", maintain_order=True)
    ]
    return pl.concat([events.filter(~is_io), *parts])


def _uncovered(own: pl.DataFrame, hidden: Cover) -> pl.DataFrame:
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    left = end - start - hidden.within(start, end)
    begin = np.minimum(hidden.first_free(start), end)
    changed = own.with_columns(start=pl.Series(begin), end=pl.Series(begin + left))
    return changed.filter(pl.Series((left > 0) | (end <= start)))


def find(at: Situation, run: Training) -> Iterator[Candidate]:
    """Samples that the training loop reads itself: a worker could read them while it computes."""
    if run.in_the_loop < IN_THE_LOOP:
        return
    loads = hideable(at, run)
    saved, hidden = loads.saved(at, first=False), loads.saved(at, first=True)
    reads = at.calls.where(at.calls.kind == READ)
    if not saved.any() or not len(reads):
        return
    culprit = {"stage": _stage(run), "directory": _directory(at)}
    slow = CallGroup(
        len(reads), int(reads.bytes.sum()), float(np.median(reads.duration)),
        float(reads.bytes.sum() / max(reads.duration.sum(), 1e-12)),
    )  # fmt: skip
    yield Candidate(
        code="no-prefetch",
        culprit=culprit,
        seconds=saved,
        low=0.9 * float(saved.sum()),  # a worker shares the node with the loop
        high=float(hidden.sum()),  # workers that live on read the first batch ahead, too
        p_value=at.chance(at.calls.kind == READ),
        contrast=Contrast("reads in the training loop", slow),
        facts={"batches": loads.batches, "epochs": loads.epochs},
    )


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """What ranks read between two stretches of computing, call by call."""

    covered: Floats  # seconds of each call that the computing before could have covered
    first: Flags  # calls of the first load of an epoch: nothing was computed before it
    batches: int  # loads of a rank
    epochs: int

    def saved(self, at: Situation, *, first: bool) -> Floats:
        """Seconds by phase that the middle rank would not wait; with the first loads or not."""
        covered = self.covered if first else np.where(self.first, 0.0, self.covered)
        total = np.bincount(at.calls.rank, covered, minlength=at.ranks)
        spent = np.bincount(at.calls.rank, at.own, minlength=at.ranks)
        share = at.by_rank(covered).sum(axis=1) / np.maximum(at.by_rank(at.own).sum(axis=1), 1e-12)
        by_phase = at.held * share
        wanted = float(np.median(total[spent > 0]))
        scale = wanted / max(float(by_phase.sum()), 1e-12)
        saved: Floats = np.minimum(at.held, by_phase * scale)
        return saved


def hideable(at: Situation, run: Training) -> Loads:
    """Set what each rank reads against what it computed just before."""
    covered, first = np.zeros(len(at.calls)), np.zeros(len(at.calls), np.bool_)
    epochs = run.stages.of("epoch").sort("start")
    batches = rounds = 0
    for place, number in enumerate(at.seen.rank_numbers.tolist()):
        cover = run.computing.get(number)
        own = np.flatnonzero(at.calls.rank == place)
        if cover is None or not len(own):
            continue
        load = np.searchsorted(cover.start, at.calls.start[own], side="right")
        read = np.bincount(load, at.own[own])
        length = np.concatenate(([np.inf], cover.end - cover.start))[: len(read)]
        covered[own] = at.own[own] * np.minimum(1.0, length / np.maximum(read, 1e-12))[load]
        begins = epochs.filter(rank=number)["start"].to_numpy()
        before = np.concatenate(([-np.inf], cover.start))[load]
        epoch = np.searchsorted(begins, at.calls.start[own], side="right")
        first[own] = (load == 0) | (epoch > np.searchsorted(begins, before, side="right"))
        batches, rounds = max(batches, len(np.unique(load))), max(rounds, len(begins))
    return Loads(covered, first, batches, max(1, rounds))


def _stage(run: Training) -> str:
    """The name of what waits for samples: the loop's own fetching, if it tells."""
    for kind in ("fetch", "sample"):
        events = run.stages.of(kind)
        if events.height:
            length = events.group_by("function").agg((pl.col("end") - pl.col("start")).sum())
            return str(length.sort("end", "function", descending=[True, False])["function"][0])
    return "compute"


def _directory(at: Situation) -> str:
    """The folder that most bytes are read from."""
    reads = at.calls.where((at.calls.kind == READ) & (at.calls.file >= 0))
    if not len(reads):
        return ""
    moved = np.bincount(reads.file, reads.bytes.astype(float))
    folders: dict[str, float] = {}
    for file in np.flatnonzero(moved):
        folder = str(PurePosixPath(at.path(int(file))).parent)
        folders[folder] = folders.get(folder, 0.0) + float(moved[file])
    return max(folders, key=lambda name: (folders[name], name))
