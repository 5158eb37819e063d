"""Bytes that move more often than the program needs.

Codes: redundant-reads, redundant-writes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.limits import MINOR
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, propose
from ioprism.diagnosis.rows import (
    ALL_RANKS,
    METADATA,
    READ,
    WRITE,
    Flags,
    Floats,
    departures,
    first_of_each,
    io_phases,
    memory_seconds,
    unique,
)
from ioprism.model.arrays import median
from ioprism.model.verdict import Decision

MAX_WRITES = 50_000  # of one file that are compared one by one
CALLS = Decision(
    "record every call, to see whether repeated reads come from storage or from a cache",
    "export DXT_ENABLE_IO_TRACE=1",
)
WRITE_ONCE = Decision("write each part once, and compare", "ioprism compare BEFORE AFTER")
KEEP = Decision("keep what is read in memory once, and compare", "ioprism compare BEFORE AFTER")


def check(observed: Observed) -> Iterator[Proposal]:
    """Find bytes that are read again, by the same rank or by many, or written twice."""
    yield from _read_again(observed)
    yield from _read_by_many(observed)
    yield from _written_twice(observed)


def read_copies(observed: Observed) -> Floats:
    """How many times the bytes of each file are read by all ranks together."""
    rows = observed.rows
    reads = rows.kind == READ
    if observed.per_call:
        reads &= rows.offset >= 0
    return observed.by_file(rows.bytes, reads) / np.maximum(_extent(observed), 1)


def _extent(observed: Observed) -> Floats:
    """Bytes of each file up to the last one that is read."""
    rows = observed.rows
    reads = (rows.kind == READ) & (rows.file >= 0)
    extent = np.zeros(len(observed.users))
    ends = rows.offset + rows.bytes if observed.per_call else observed.extent
    np.maximum.at(extent, rows.file[reads], ends[reads].astype(np.float64))
    return extent


def _read_again(observed: Observed) -> Iterator[Proposal]:
    """A rank reads the same bytes of a file that does not change more than once."""
    rows = observed.rows
    reads = (rows.kind == READ) & (rows.bytes > 0) & (rows.file >= 0)
    # What is read again from a file that the job writes may have changed.
    written = observed.by_file(rows.bytes, rows.kind == WRITE) > 0
    reads &= ~written[np.maximum(rows.file, 0)] & ~observed.of_programs
    if not reads.any():
        return
    again = (
        _repeated_calls(observed, reads) if observed.per_call else _repeated_share(observed, reads)
    )
    repeated = float((rows.bytes * again)[reads].sum())
    distinct = float(rows.bytes[reads].sum()) - repeated
    ranks = max(1, len(unique(rows.rank[reads & (rows.rank >= 0)])))
    limits, whole = observed.limits, float(rows.bytes[reads].sum())
    if repeated < limits.repeated * whole or distinct / ranks > limits.kept_in_memory:
        return
    some = reads & (again > 0)
    likely = Scenario(observed.own * (1 - again))
    # Of counters, a cold first pass may hold most of the time.
    worst = (
        likely
        if observed.per_call
        else Scenario(observed.own * (1 - _surely_again(observed, some, again)))
    )
    change, decide = Change(likely, worst, likely), KEEP if observed.per_call else CALLS
    copies = float(rows.bytes[reads].sum()) / max(1.0, distinct)
    facts = {"copies": copies, "again": True, "readers": ranks, "bytes": distinct / ranks}
    peers = reads & ~some
    yield propose(observed, "redundant-reads", some, change, decide, facts, peers=peers)


def _repeated_calls(observed: Observed, reads: Flags) -> Floats:
    """1 for reads that begin where an earlier one of the same rank began; else 0."""
    rows = observed.rows
    some = np.flatnonzero(reads & (rows.offset >= 0))
    order = some[
        np.lexsort((rows.start[some], rows.offset[some], rows.file[some], rows.rank[some]))
    ]
    same = np.zeros(len(order), np.bool_)
    same[1:] = (
        (rows.rank[order][1:] == rows.rank[order][:-1])
        & (rows.file[order][1:] == rows.file[order][:-1])
        & (rows.offset[order][1:] == rows.offset[order][:-1])
    )
    again = np.zeros(len(rows))
    again[order[same]] = 1.0
    return again


def _repeated_share(observed: Observed, reads: Flags) -> Floats:
    """The part of each record's bytes that is read again."""
    rows = observed.rows
    users = np.where(rows.rank == ALL_RANKS, observed.ranks, 1)
    moved = rows.bytes / users
    known = reads & (observed.extent > 0) & (moved > observed.extent) & (rows.rank >= 0)
    part = np.zeros(len(rows))
    part[known] = 1 - observed.extent[known] / moved[known]
    return part


def _surely_again(observed: Observed, some: Flags, again: Floats) -> Floats:
    """The part of each record's time that is certainly spent on reading again.

    The first reads take at most as long as if each were the longest one. On local storage, which
    has a page cache, nothing else is sure.
    """
    rows = observed.rows
    first = rows.count * (1 - again) * rows.longest
    rest = np.where(rows.longest > 0, 1 - first / np.maximum(rows.total, 1e-12), 0.0)
    warm = 0.0 if observed.files.is_local(observed.main_file(some)) else observed.limits.cold_share
    return np.asarray(np.maximum(warm * again, np.clip(rest, 0.0, again)), np.float64)


def _read_by_many(observed: Observed) -> Iterator[Proposal]:
    """Many ranks read the same bytes of a file."""
    rows, limits = observed.rows, observed.limits
    reads = (rows.kind == READ) & (rows.bytes > 0) & (rows.file >= 0) & ~observed.library_rows
    if not reads.any():
        return
    copies = read_copies(observed)
    seconds = observed.by_file(observed.own, reads)
    readers = observed.ranks_of_files(reads)
    seconds[(copies < limits.copies) | (readers < limits.copies)] = 0.0
    if not seconds.any():
        return
    file = int(np.argmax(seconds))
    mine = reads & (rows.file == file)
    part = 1 / min(float(copies[file]), float(readers[file]))
    if observed.per_call and (rows.offset[mine] >= 0).all():
        again = _delivered_again(observed, mine)
        likely, worst, best = (
            observed.own * x for x in (1 - again, 1 - limits.unsure[0] * again, (1 - again) / 2)
        )
    else:
        local = observed.files.is_local(file)  # whose page cache delivers copies
        likely, best = observed.own * part, np.zeros(len(rows))
        worst = observed.own if local else np.minimum(1.0, 3 * part) * observed.own
        if local:
            likely = observed.own
    change = Change(
        *(Scenario(np.where(mine, chain, observed.own)) for chain in (likely, worst, best))
    )
    decide = KEEP if observed.per_call else CALLS
    size = float(rows.bytes[mine].sum() / copies[file])
    facts = {"copies": float(copies[file]), "readers": int(readers[file]), "bytes": size}
    yield propose(observed, "redundant-reads", mine, change, decide, facts)


def _delivered_again(observed: Observed, mine: Flags) -> float:
    """The part of storage's time on these reads that goes into blocks it has delivered before.

    Where a cache hands one delivery to all readers, their reads end together, and those after
    the first add nothing.
    """
    order = np.flatnonzero(mine)
    rows = observed.rows.select(order)
    served = departures(rows, observed.pieces.first[order])
    by_block = np.lexsort((rows.end, rows.offset))
    first = np.zeros(len(order), np.bool_)
    first[by_block[first_of_each(rows.offset[by_block])]] = True
    if first.all():
        return 0.0
    if float(served[~first].mean()) > memory_seconds(observed, median(rows.bytes)):
        return float((~first).mean())  # storage serves every reader
    return float(served[~first].sum()) / max(float(served.sum()), 1e-12)


def written_in_vain(observed: Observed) -> tuple[Flags, Floats]:
    """Writes to files that are not read back, and the part of each that is written again."""
    rows = observed.rows
    writes = (rows.kind == WRITE) & (rows.bytes > 0) & (rows.file >= 0)
    read = observed.by_file(rows.bytes, rows.kind == READ)
    written = observed.by_file(rows.bytes, writes)
    # What is read back between two writes was not written in vain.
    writes &= (read < MINOR * written)[np.maximum(rows.file, 0)]
    overwritten = _overwritten_calls if observed.per_call else _overwritten_share
    return writes, overwritten(observed, writes)


def _written_twice(observed: Observed) -> Iterator[Proposal]:
    """Bytes are written and then written again in the same phase: fill values, or double work."""
    rows = observed.rows
    writes, vain = written_in_vain(observed)
    some = vain > 0
    lost = float((rows.bytes * vain).sum())
    if lost <= 0 or lost < observed.limits.repeated * (float(rows.bytes[writes].sum()) - lost):
        return
    mine = some & (rows.file == observed.main_file(some))
    chain = observed.own * (1 - vain)
    likely = worst = Scenario(chain)
    if observed.per_call and observed.synchronised:
        # Ranks that do not write twice wait for those that do.
        after = np.minimum(
            observed.busiest_rank(chain) + observed.waiting_after(chain),
            observed.stall - observed.seconds_alone(some),
        )
        likely = worst = Scenario(np.zeros(len(rows)), floor=after, waiting=np.zeros(len(after)))
    elif not observed.per_call:  # the first of two writes may be the cheaper one
        worst = Scenario(observed.own * (1 - vain / 2))
    change, decide = Change(likely, worst, likely), WRITE_ONCE if observed.per_call else None
    facts = {"bytes": lost, "requests": round(float((rows.count * vain)[mine].sum()))}
    peers = writes & ~some
    yield propose(observed, "redundant-writes", some, change, decide, facts, peers=peers)


def _overwritten_share(observed: Observed, writes: Flags) -> Floats:
    """The part of each record's bytes that the same open file received before.

    A file that is opened again may be written again on purpose, in another step.
    """
    rows = observed.rows
    users = np.maximum(1.0, observed.by_file(np.ones(len(rows)), writes))
    users[rows.file[writes & (rows.rank == ALL_RANKS)]] = observed.ranks + 1  # one creates it
    opened = observed.by_file(rows.count, rows.kind == METADATA)
    once = (opened <= users)[np.maximum(rows.file, 0)]
    known = writes & once & (observed.extent > 0) & (rows.bytes > observed.extent)
    part = np.zeros(len(rows))
    part[known] = 1 - observed.extent[known] / rows.bytes[known]
    return part


def _overwritten_calls(observed: Observed, writes: Flags) -> Floats:
    """1 for writes whose bytes are written again in the same phase; else 0."""
    rows = observed.rows
    vain = np.zeros(len(rows))
    placed = np.flatnonzero(writes & (rows.offset >= 0))
    placed = placed[np.lexsort((rows.offset[placed], rows.file[placed]))]
    file, low = rows.file[placed], rows.offset[placed]
    # Of requests sorted by offset, two neighbours overlap if any do.
    overlap = (file[1:] == file[:-1]) & (low[1:] < low[:-1] + rows.bytes[placed[:-1]])
    for number in unique(file[1:][overlap]):
        mine = np.sort(placed[slice(*np.searchsorted(file, [number, number + 1]))])
        if len(mine) <= MAX_WRITES:
            vain[_overwritten(observed, mine)] = 1.0
    return vain


def _overwritten(observed: Observed, mine: np.ndarray) -> np.ndarray:
    """Rows whose whole range is written again later in the same phase.

    The file is cut at all borders of requests; a piece belongs to the last request that covers
    it, and requests that own no piece were in vain. Where ranks do not wait for each other, the
    job has no phases; the file's own bursts are its steps.
    """
    rows = observed.rows
    if observed.synchronised:
        phase = observed.phase[mine]
    else:
        phase = io_phases(rows.start[mine], rows.end[mine]).find(rows.start[mine])
    vain = []
    for number in unique(phase):
        some = mine[phase == number]
        some = some[np.argsort(rows.start[some], kind="stable")]
        low, high = rows.offset[some], rows.offset[some] + rows.bytes[some]
        borders = unique(np.concatenate((low, high)))
        if len(borders) - 1 >= 2 * len(some) or len(some) < 2:
            continue  # no two requests share a border: they do not overlap
        first, last = np.searchsorted(borders, low), np.searchsorted(borders, high)
        if int((last - first).sum()) > 20 * MAX_WRITES:
            continue
        owner = np.full(len(borders) - 1, -1, np.int64)
        for place, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            owner[begin:end] = place
        vain.append(some[~np.isin(np.arange(len(some)), owner)])
    return np.concatenate(vain) if vain else np.empty(0, np.int64)
