"""Calls that move no data: opens, stats and closes; forcing data to storage."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import METADATA, READ, SYNC, WRITE, Flags, Floats
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.limits import LIBRARY, MANY_FILES, TINY
from ioprism.analyses.diagnosis.program_files import program_calls
from ioprism.analyses.diagnosis.shared_server import crowding, departures
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.views.time.cover import Cover


def find(at: Situation) -> Iterator[Candidate]:
    """Find metadata and sync calls that hold the job up."""
    library = library_calls(at)
    yield from _library_start(at, library)
    yield from _frequent_sync(at)
    yield from _metadata(at, library)


def without(
    at: Situation, some: Flags, kept: Floats, *, waited: Floats | None = None
) -> tuple[Floats, float, float]:
    """Savings by phase, low and high, when only `kept` of these calls' seconds remain.

    Calls that move data then come faster after each other: they may have to wait for targets.
    For at most so many seconds each call has `waited` behind those that go.
    """
    quick = np.minimum(at.own, at.queues.lone)
    rest = at.own if waited is None else np.maximum(quick, at.own - waited)
    own = np.where(some, at.own * kept, rest)
    chain, waiting = at.busiest_rank(own), at.waiting_after(own)
    work = at.busiest_target(np.where(some, at.queues.held * kept, at.queues.held))
    least, most = at.queues.doubt
    after = [np.maximum(chain, work * factor) + waiting for factor in (most, 1.0, least)]
    saved = [np.maximum(0.0, at.held - part) for part in after]
    low, high = 0.93 * float(saved[0].sum()), 1.03 * float(saved[2].sum())
    return _with_shared_server(at, some, kept, (saved[1], low, high))


def _with_shared_server(
    at: Situation, some: Flags, kept: Floats, alone: tuple[Floats, float, float]
) -> tuple[Floats, float, float]:
    """Savings where calls of all ranks wait for each other, as far as they do."""
    crowded = crowding(at, at.calls.moves_data & ~some) if at.seen.waits else 0.0
    if not crowded:
        return alone
    gone = np.where(some, departures(at.calls) * (1 - kept), 0.0)
    served = np.minimum(at.held, np.bincount(at.seen.phase, gone, minlength=at.phases))
    saved, low, high = alone
    sums = float(served.sum())
    return (1 - crowded) * saved + crowded * served, min(low, 0.93 * sums), max(high, 1.03 * sums)


def _frequent_sync(at: Situation) -> Iterator[Candidate]:
    """Data is forced to storage more often than once per file and phase."""
    syncs = at.calls.kind == SYNC
    if not syncs.any():
        return
    kept = _needed(at, at.calls.kind == WRITE, at.seen.syncs)[at.calls.rank]
    if float(np.median(kept[syncs])) > 0.5:
        return
    saved, low, high = without(at, syncs, kept, waited=_behind(at, syncs))
    culprit: dict[str, object] = {"operation": "sync", **at.named_file(syncs)}
    made = at.seen.syncs
    if len(makers := at.few_ranks_of(syncs)):
        culprit["ranks"] = at.seen.rank_numbers[makers].tolist()
        made = made[makers]
    several = len(np.unique(at.calls.file[syncs & (at.calls.file >= 0)])) > 1
    yield Candidate(
        "frequent-sync", culprit, saved, low, high, at.chance(syncs),
        contrast_of(at, syncs, at.calls.moves_data, "frequent-sync"),
        {"syncs": int(made.sum()), "directory": _directory(at, syncs) if several else ""},
    )  # fmt: skip


def _behind(at: Situation, some: Flags) -> Floats:
    """Seconds of each write in which any of some other calls is under way."""
    busy = Cover(at.calls.start[some], at.calls.end[some])
    return np.where(at.calls.kind == WRITE, busy.within(at.calls.start, at.calls.end), 0.0)


def _needed(at: Situation, some: Flags, made: Floats) -> Floats:
    """The part of each rank's calls that is needed: one for each file and phase of `some`."""
    some = some & (at.calls.file >= 0)
    files = int(at.calls.file.max(initial=0)) + 1
    key = (at.seen.phase[some] * at.ranks + at.calls.rank[some]) * files
    pairs = np.unique(key + at.calls.file[some])
    needed = np.bincount(pairs // files % at.ranks, minlength=at.ranks)
    return np.minimum(1.0, np.maximum(1, needed) / np.maximum(made, 1))


def library_calls(at: Situation) -> Flags:
    """Calls on small files that most ranks read and none writes, where there are many of them."""
    known = at.calls.file >= 0
    files = int(at.calls.file.max(initial=-1)) + 1
    pairs = np.unique(at.calls.file[known] * at.ranks + at.calls.rank[known])
    users = np.bincount(pairs // at.ranks, minlength=files)
    reads, writes = (
        np.bincount(at.calls.file[known & (at.calls.kind == kind)],
                    at.calls.bytes[known & (at.calls.kind == kind)], minlength=files)
        for kind in (READ, WRITE)
    )  # fmt: skip
    each = reads / np.maximum(users, 1)
    # What all ranks look up without reading is the search for the files that they do read.
    wanted = (users >= max(2, 0.5 * at.ranks)) & (writes == 0) & (each < LIBRARY)
    if (wanted & (reads > 0)).sum() < MANY_FILES:
        return np.zeros(len(at.calls), np.bool_)
    return np.asarray(known & wanted[np.maximum(at.calls.file, 0)])


def _library_start(at: Situation, some: Flags) -> Iterator[Candidate]:
    """Every rank loads the same small files: one rank of each node could."""
    if not some.any():
        return
    files = np.unique(at.calls.file[some])
    nodes = at.nodes
    if nodes == 1:
        return  # its memory keeps what the first rank has read
    per_node = max(1.0, at.ranks / nodes)
    kept = np.full(len(at.calls), 1 / per_node)
    saved, low, high = without(at, some, kept)
    yield Candidate(
        "library-start", {"directory": _directory(at, some)}, saved, 0.8 * low, high,
        at.chance(some),
        contrast_of(at, some, None, "library-start"),
        {"files": len(files), "ranks": at.ranks, "nodes": nodes},
    )  # fmt: skip


def _metadata(at: Situation, library: Flags) -> Iterator[Candidate]:
    """Opens, stats and closes: as few as the data needs, one open for each rank."""
    start = library | program_calls(at)
    some = (at.calls.kind == METADATA) & ~start
    if not some.any() and not at.seen.unplaced.any():
        return
    tiny = _tiny(at) & ~start
    kept = _needed(at, at.calls.moves_data & ~tiny & ~start, _opens(at, some))[at.calls.rank]
    files, counts = np.unique(at.calls.file[some & (at.calls.file >= 0)], return_counts=True)
    # What lies in many tiny files goes into few: their requests are joined as well.
    saved, low, high = without(at, some | tiny, kept)
    culprit: dict[str, object] = {"operation": "open"}
    if len(files) > 2 * at.ranks:
        directory = _counted_directory(at, start) if at.calls.inferred[some].any() else ""
        directory = directory or _directory(at, some)
        culprit |= {"directory": directory} if directory not in ("", "/") else {}
    culprit |= at.task_of(some)
    yield Candidate(
        "metadata", culprit, saved, low, high, at.chance(some | tiny),
        contrast_of(at, some, at.calls.moves_data, "metadata"),
        {"files": len(files), "calls": int(some.sum()), "calls_per_file":
         float(np.median(counts)) if len(counts) else 0.0},
    )  # fmt: skip


def _counted_directory(at: Situation, program: Flags) -> str:
    """The directory of most metadata seconds by counters, which know the file but no moment."""
    counted = at.seen.counters.get("POSIX")
    if counted is None:
        return ""
    name = "POSIX_F_META_TIME"
    sums = counted.drop_nulls("file").group_by("file").agg(pl.col(name).clip(lower_bound=0).sum())
    loaded = np.unique(at.calls.file[program]).tolist()
    spent = sums.filter((pl.col(name) > 0) & ~pl.col("file").is_in(loaded)).sort("file")
    names = at.seen.files["path"].gather(spent["file"].to_list()).to_list()
    return common_directory(names, spent[name].to_list())


def _opens(at: Situation, some: Flags) -> Floats:
    """How many of each rank's opens are among these metadata calls: as large a part as of all."""
    metadata = at.calls.kind == METADATA
    chosen, every = (np.bincount(at.calls.rank[f], minlength=at.ranks) for f in (some, metadata))
    return at.seen.opens * chosen / np.maximum(every, 1)


def _directory(at: Situation, some: Flags) -> str:
    """The directory in which most of the seconds of some calls are spent."""
    known = some & (at.calls.file >= 0)
    seconds = np.bincount(at.calls.file[known], at.own[known])
    files = np.flatnonzero(seconds)
    names = at.seen.files["path"].gather(files.tolist()).to_list()
    return common_directory(names, seconds[files].tolist())


def _tiny(at: Situation) -> Flags:
    """Calls on files that hold next to nothing, where there are many of them for each rank."""
    known = at.calls.moves_data & (at.calls.file >= 0)
    size = np.bincount(at.calls.file[known], at.calls.bytes[known])
    files = np.flatnonzero((size > 0) & (size < TINY))
    if len(files) < 10 * at.ranks:
        return np.zeros(len(at.calls), np.bool_)
    return known & np.isin(at.calls.file, files)
