"""What MPI-IO makes of the program's calls.

Codes: read-modify-write, collective-not-aggregated, few-aggregators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ioprism.diagnosis.checks.requests import fixed_share
from ioprism.diagnosis.limits import MINOR, NEARLY_ALL
from ioprism.diagnosis.observed import LibraryFile, Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, propose
from ioprism.diagnosis.rows import (
    ALL_RANKS,
    METADATA,
    READ,
    WRITE,
    Flags,
    Floats,
    unique,
    weighted_median,
)
from ioprism.model.arrays import median, quantile
from ioprism.model.verdict import Decision

RECORD = Decision("record MPI-IO and POSIX calls", "export DXT_ENABLE_IO_TRACE=1")


def check(observed: Observed) -> Iterator[Proposal]:
    """Find files whose library makes more, smaller or other calls than the program."""
    rows = observed.rows
    sieved: list[LibraryFile] = []
    scattered: list[LibraryFile] = []
    for entry in observed.library_files:
        mine = (rows.file == entry.file) & rows.moves_data
        if not mine.any():
            continue
        if _is_sieved(observed, entry, mine):
            sieved.append(entry)
            continue
        if not entry.collective:
            continue
        if entry.ranks > 1 and _is_scattered(observed, entry, mine):
            scattered.append(entry)
        elif (rows.rank[mine] == ALL_RANKS).any():
            yield from _one_aggregator(observed, entry, mine)
        else:
            yield from _few_aggregators(observed, entry, mine)
    yield from _not_aggregated(observed, scattered)
    yield from _read_modify_write(observed, sieved)
    if not observed.library_files and "offsets" in observed.detail:
        yield from _rewritten_ranges(observed)


def _is_sieved(observed: Observed, entry: LibraryFile, mine: Flags) -> bool:
    """The program only writes, but the library reads (and writes) more than that."""
    rows = observed.rows
    read, written = (int(rows.bytes[mine & (rows.kind == kind)].sum()) for kind in (READ, WRITE))
    asked_read, asked = entry.asked
    extra_bytes = read + max(0, written - asked)
    if not asked or not written or asked_read > MINOR * extra_bytes:
        return False
    if extra_bytes < observed.limits.extra_bytes * asked:
        return False
    # Reads, and what is written beyond the program's bytes after them, must be worth a change.
    reads, writes = mine & (rows.kind == READ), mine & (rows.kind == WRITE)
    pairs = min(1.0, float(rows.count[reads].sum()) / max(float(rows.count[writes].sum()), 1.0))
    if pairs < MINOR:
        return False
    beyond = pairs * max(0.0, 1 - asked / written)
    extra = float(observed.own[reads].sum()) + beyond * float(observed.own[writes].sum())
    return extra >= MINOR * float(observed.own[mine].sum())


def _read_modify_write(observed: Observed, entries: list[LibraryFile]) -> Iterator[Proposal]:
    if not entries:
        return
    rows = observed.rows
    files = [entry.file for entry in entries]
    mine = np.isin(rows.file, files) & (rows.moves_data | _locks(observed))
    writes = mine & (rows.kind == WRITE)
    asked = sum(entry.asked[1] for entry in entries)
    shrunk = min(1.0, asked / max(1, int(rows.bytes[writes].sum())))
    quick = observed.own
    if observed.per_call:
        quick = np.minimum(observed.own, quantile(rows.seconds[writes], observed.limits.few))
    # Locks around each read and write are waited for inside the library: they go as well.
    locked = observed.library * _share_of(observed, mine)
    rest = observed.library - locked

    waits = mine & (rows.kind == METADATA)

    def scenario(writing: Floats, locks: float) -> Scenario:
        chain = np.where(
            writes, writing * shrunk, np.where(mine, observed.own * locks * waits, observed.own)
        )
        return Scenario(chain, waiting=_waiting(observed, rest + locked * locks, mine))

    change = Change(
        scenario(quick, MINOR), scenario(observed.own, 0.5), scenario(np.zeros(len(rows)), 0.0)
    )
    worst_file = max(
        entries,
        key=lambda entry: entry.seconds or float(observed.own[rows.file == entry.file].sum()),
    )
    culprit = {"file": observed.files.path(worst_file.file)}
    yield _sieving(observed, mine, change, asked, culprit)


def _sieving(
    observed: Observed, mine: Flags, change: Change, asked: int, culprit: dict[str, Any] | None
) -> Proposal:
    rows = observed.rows
    reads, writes = (mine & (rows.kind == kind) for kind in (READ, WRITE))
    read, written = (int(rows.bytes[some].sum()) for some in (reads, writes))
    number = round(float(rows.count[reads].sum()))
    facts = {"asked": asked, "read": read, "written": written, "reads": number}
    code = "read-modify-write"
    return propose(
        observed, code, mine, change, RECORD, facts, culprit=culprit, slow=reads, peers=writes
    )


def _locks(observed: Observed) -> Flags:
    """Metadata calls between requests of their rank on the same file: locks, where recorded."""
    rows = observed.rows
    if not observed.per_call:
        return np.zeros(len(rows), np.bool_)
    key = observed.rank_file
    first, last = np.full(int(key.max()) + 1, np.inf), np.full(int(key.max()) + 1, -np.inf)
    data, near = rows.moves_data, observed.limits.min_wait
    np.minimum.at(first, key[data], rows.start[data])
    np.maximum.at(last, key[data], rows.end[data])
    inside = (rows.end >= first[key] - near) & (rows.start <= last[key] + near)
    return np.asarray((rows.kind == METADATA) & ~rows.inferred & inside)


def _share_of(observed: Observed, mine: Flags) -> Floats:
    """The part of each phase's calls that some rows are."""
    every = np.ones(len(mine), np.bool_)
    total = observed.by_phase(observed.own, every)
    return observed.by_phase(observed.own, mine) / np.maximum(total, 1e-12)


def _waiting(observed: Observed, library: Floats, mine: Flags) -> Floats:
    """Seconds outside calls: inside the library, and in other ranks' calls that remain."""
    inside = np.minimum(observed.waiting, observed.library)
    others = observed.waiting - inside
    return np.minimum(inside, library) + others * (1 - _share_of(observed, mine))


def _rewritten_ranges(observed: Observed) -> Iterator[Proposal]:
    """Ranks read ranges only to write them again: data sieving, seen from below."""
    rows = observed.rows
    data = np.flatnonzero(rows.moves_data & (rows.bytes > 0) & (rows.offset >= 0))
    if len(data) < 2:
        return
    first, second = data[:-1], data[1:]
    pairs = (
        (rows.rank[first] == rows.rank[second])
        & (rows.file[first] == rows.file[second])
        & (rows.kind[first] == READ)
        & (rows.kind[second] == WRITE)
        & (rows.offset[first] == rows.offset[second])
    )
    read, written = first[pairs], second[pairs]
    reads = int(((rows.kind == READ) & np.isin(rows.file, rows.file[read])).sum())
    if len(read) < 2 * observed.limits.min_calls or len(read) < 0.5 * reads:
        return
    mine = np.isin(rows.file, unique(rows.file[read])) & (rows.moves_data | (rows.kind == METADATA))
    # How much of what is written is new is not known without the layer above.
    reading = mine & (rows.kind == READ)
    locks = mine & (rows.kind == METADATA)
    likely = Scenario(np.where(reading | locks, 0.0, observed.own))
    worst = Scenario(np.where(reading, 0.0, observed.own))
    best = Scenario(np.where(mine, 0.0, observed.own))
    asked = int(rows.bytes[written].sum())
    yield _sieving(observed, mine, Change(likely, worst, best), asked, None)


def _is_scattered(observed: Observed, entry: LibraryFile, mine: Flags) -> bool:
    """Whether collective calls reach POSIX as many small pieces."""
    rows = observed.rows
    size = weighted_median(rows.mean_bytes[mine], rows.bytes[mine].astype(np.float64))
    many = float(rows.count[mine].sum()) >= NEARLY_ALL * entry.calls
    return many and size < observed.limits.block


def _not_aggregated(observed: Observed, entries: list[LibraryFile]) -> Iterator[Proposal]:
    if not entries:
        return
    rows = observed.rows
    mine = np.isin(rows.file, [entry.file for entry in entries]) & rows.moves_data
    # In large contiguous pieces, the bytes remain; the fixed cost per piece and the locks go.
    size = float(np.average(rows.mean_bytes[mine], weights=rows.count[mine]))
    pieces = 1 - size / observed.limits.block

    def scenario(fixed: float) -> Scenario:
        return Scenario(np.where(mine, observed.own * (1 - fixed * pieces), observed.own))

    likely, low, high = fixed_share(observed, mine, size)
    change = Change(scenario(likely), scenario(low), scenario(high))
    asked = sum(sum(entry.asked) for entry in entries)
    facts = {
        "bytes_per_request": median(rows.mean_bytes[mine]),
        "asked_bytes": asked / max(1, sum(entry.calls for entry in entries)),
    }
    yield propose(observed, "collective-not-aggregated", mine, change, RECORD, facts)


def _few_aggregators(observed: Observed, entry: LibraryFile, mine: Flags) -> Iterator[Proposal]:
    """Fewer ranks than nodes do the I/O of collective calls."""
    nodes, writers = observed.nodes, unique(observed.rows.rank[mine])
    if len(writers) >= nodes or len(writers) >= len(observed.files.targets(entry.file)) > 1:
        return  # one for each target: more of them would not reach more storage
    own = observed.by_rank(observed.own, mine)
    rest = np.maximum(0.0, observed.stall - own.max(axis=1))
    # The data of all ranks pass the aggregators' nodes: more of them receive more.
    exchange = np.minimum(rest, observed.waiting)
    received = rest - exchange * (1 - len(writers) / nodes)
    work = observed.even_target(np.where(mine, observed.service.occupied, 0.0))
    nothing = np.zeros(len(mine))

    def scenario(factor: float) -> Scenario:
        floor = np.maximum(own.sum(axis=1) / nodes, work * factor)
        return Scenario(nothing, floor=floor, waiting=received)

    least, most = observed.service.doubt
    change = Change(scenario(1.0), scenario(most), scenario(least))
    rank = int(observed.rank_numbers[writers[0]])
    culprit = {"rank": rank, "file": observed.files.path(entry.file)}
    facts = {"aggregators": len(writers), "nodes": nodes}
    yield propose(observed, "few-aggregators", mine, change, RECORD, facts, culprit=culprit)


def _one_aggregator(observed: Observed, entry: LibraryFile, mine: Flags) -> Iterator[Proposal]:
    """A record of all ranks in which one rank moves nearly all bytes of collective calls.

    Counters show the slowest rank's seconds: where they are nearly all seconds of the record, one
    rank does the I/O.
    """
    rows, limits = observed.rows, observed.limits
    spent, total = float(rows.seconds[mine].sum()), float(rows.total[mine].sum())
    targets = len(observed.files.targets(entry.file))
    if observed.ranks < limits.min_ranks or total <= 0 or spent < limits.serial_share * total:
        return
    part = 1 / max(1, targets) if targets else 1 / observed.ranks
    least, likely, most = limits.service_share
    if targets == 1:
        return  # one aggregator for the one target

    def scenario(share: float) -> Scenario:
        return Scenario(
            np.where(mine, observed.own * max(1 / observed.ranks, part * share), observed.own)
        )

    change = Change(scenario(likely), scenario(most), scenario(least))
    facts = {"aggregators": 1, "nodes": observed.nodes}
    yield propose(observed, "few-aggregators", mine, change, RECORD, facts)
