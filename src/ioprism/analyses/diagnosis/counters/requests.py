"""Requests, libraries and syncs in counters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.counters import opens
from ioprism.analyses.diagnosis.counters.counted import LEAST_SECONDS, NEARLY_ALL, Counted
from ioprism.analyses.diagnosis.counters.load import few_targets
from ioprism.analyses.diagnosis.counters.records import Record
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.limits import (
    BLOCK,
    COPIES,
    FAST,
    LEAST,
    LIKELY,
    MANY,
    MOST,
    REQUEST,
    SLOW,
    USUAL,
)
from ioprism.model.usage import EVERYONE, Usage

FEWEST_SMALL = 100  # requests, to be called many


def find(at: Counted) -> Iterator[Candidate]:
    """Find what requests, libraries and syncs cost."""
    repeated = list(_redundant(at))
    narrow = [] if repeated else list(few_targets(at))
    yield from (*repeated, *narrow)
    # One aggregator for each target: the striping explains why there are few.
    striped = {one.culprit["file"] for one in narrow}
    yield from (
        one for one in _layers(at)
        if not (one.code == "few-aggregators" and one.culprit["file"] in striped)
    )  # fmt: skip
    yield from _sync(at)
    yield from opens.find(at)
    yield from _small(at)


def _redundant(at: Counted) -> Iterator[Candidate]:
    """All ranks together read a file's bytes many times."""
    asked = _asked_reads(at)

    def copies(one: Record) -> float:
        return min(one.bytes_read, asked.get(one.file, math.inf)) / one.last_read

    read = [one for one in at.records if one.shared and one.last_read > 1]
    some = [one for one in read if copies(one) >= COPIES]
    if not some:
        return
    longest = max(some, key=lambda one: one.read_seconds)
    seconds = at.busiest(lambda one: one.read_seconds, [longest])
    rest = max(0.0, at.held - seconds)
    after = seconds / copies(longest)
    yield at.candidate(
        "redundant-reads", {"file": at.path(longest.file)},
        (rest + after, rest, rest + 3 * after), [longest],
        copies=copies(longest), bytes=float(longest.last_read),
    )  # fmt: skip


def _asked_reads(at: Counted) -> dict[int, int]:
    """Bytes that the program reads of each file through MPI-IO, which may read more than that."""
    asked: dict[int, int] = {}
    if at.mpiio is not None:
        for file, size in zip(at.mpiio.file, at.mpiio.moves["read"].bytes, strict=True):
            asked[file] = asked.get(file, 0) + size
    return asked


def _layers(at: Counted) -> Iterator[Candidate]:
    """MPI-IO against POSIX, for files that all ranks share."""
    if at.mpiio is None:
        return
    below: dict[int, Record] = {}
    for one in at.records:
        if one.shared:
            below.setdefault(one.file, one)
    for entry, (file, rank) in enumerate(zip(at.mpiio.file, at.mpiio.rank, strict=True)):
        if rank == EVERYONE and file in below:
            rewritten = list(_read_modify_write(at, below[file], at.mpiio, entry))
            yield from rewritten or _few_aggregators(at, below[file], at.mpiio, entry)


def _read_modify_write(at: Counted, below: Record, above: Usage, entry: int) -> Iterator[Candidate]:
    """POSIX reads what the program only writes."""
    wanted, asked = (above.moves[way].bytes[entry] for way in ("read", "write"))
    if not asked or wanted > 0.1 * below.bytes_read or below.bytes_read < 0.2 * asked:
        return
    rest = max(0.0, at.held - below.slowest)
    writes, opening = (
        below.slowest * seconds / max(LEAST_SECONDS, below.seconds)
        for seconds in (below.write_seconds, below.meta_seconds)
    )
    rest += opening
    after = writes * min(1.0, asked / max(1, below.bytes_written))
    yield at.candidate(
        "read-modify-write", {"file": at.path(below.file)},
        (rest + 0.6 * after, rest, rest + after), [below],
        asked=asked, read=float(below.bytes_read), written=float(below.bytes_written),
    )  # fmt: skip


def _few_aggregators(at: Counted, below: Record, above: Usage, entry: int) -> Iterator[Candidate]:
    """One rank does the I/O of collective calls: ranks differ in bytes as much as they can."""
    mean = below.moved / at.ranks
    aggregators = at.ranks / (1 + below.byte_deviation**2 / max(mean**2, 1.0))
    collective = any(way.collective and way.collective[entry] for way in above.moves.values())
    if not collective or aggregators >= 1.5 or at.ranks < MANY:
        return
    rest = max(0.0, at.held - below.slowest)
    likely, least, most = (
        rest + below.slowest * max(1 / at.ranks, at.even_part([below]) * share)
        for share in (LIKELY, LEAST, MOST)
    )
    # The data of all ranks pass the aggregator's node: at best that goes with it.
    longest = above.spread.slowest_seconds[entry] if above.spread else 0.0
    exchanged = at.held - max(below.slowest, longest)
    yield at.candidate(
        "few-aggregators", {"rank": below.slowest_rank, "file": at.path(below.file)},
        (likely, min(least, exchanged), most), [below], aggregators=1,
    )  # fmt: skip


def _sync(at: Counted) -> Iterator[Candidate]:
    """Syncs, whose time Darshan adds to that of writes."""
    some = [one for one in at.records if one.syncs > 1]
    if not some:
        return
    left = at.work_left(
        lambda one: _writing(one) + one.read_seconds,
        at.busiest(lambda one: one.write_seconds - _writing(one), some),
        _least_work,
    )
    bare = at.work_left(_least_work, at.busiest(lambda one: one.seconds - _least_work(one), some))
    meta = max(at.by_rank(lambda one: one.meta_seconds))
    most, files = max(some, key=lambda one: one.syncs), sorted({one.file for one in some})
    yield at.candidate(
        "frequent-sync", {"operation": "sync", "file": at.path(most.file)},
        (left[0] + meta, min(0.7 * left[1], bare[1]) + meta, 2 * left[0] + meta), some,
        syncs=float(sum(one.syncs for one in at.records)),
        directory=common_directory([at.path(f) for f in files]) if len(files) > 1 else "",
    )  # fmt: skip


def _writing(one: Record) -> float:
    """Seconds in writes without those in syncs.

    A write takes at least its bytes at a usual rate. At most, write times spread as an exponential
    distribution does: the longest of n is then about ln(n) times their mean.
    """
    if one.syncs <= 1:
        return one.write_seconds
    least = _least_writing(one)
    most = one.longest_write * one.writes / max(2.0, math.log(max(1, one.writes)))
    return min(one.write_seconds, math.sqrt(max(most, least) * least))


def _least_writing(one: Record) -> float:
    return REQUEST * one.writes + one.bytes_written / USUAL


def _least_work(one: Record) -> float:
    """Seconds that reads and writes keep targets busy, where syncs tell waiting from them."""
    least = _least_writing(one) if one.syncs > 1 else math.inf
    return min(one.write_seconds, least) + one.read_seconds


def _asked_alone(at: Counted, some: Iterable[Record]) -> bool:
    """Whether the program itself asks for these requests, one by one, through MPI-IO."""
    if at.mpiio is None:
        return False
    files = {one.file for one in some}
    columns = [moves.independent or [0] * len(at.mpiio) for moves in at.mpiio.moves.values()]
    made = sum(
        sum(counts) for file, *counts in zip(at.mpiio.file, *columns, strict=True) if file in files
    )
    return made >= NEARLY_ALL * sum(one.requests for one in some)


def _small(at: Counted) -> Iterator[Candidate]:
    """The fixed cost of each request, against rates that storage targets have."""
    moving = [one for one in at.records if one.requests]
    some = [
        one for one in moving
        if one.requests > 1 and one.moved < BLOCK * one.requests and one.syncs <= 1
    ]  # fmt: skip
    number = sum(one.requests for one in some)
    if number < FEWEST_SMALL:
        return
    mean = sum(one.moved for one in some) / number
    ranks = {one.rank for one in some}
    queue = max(1.0, len(ranks) / len(at.targets)) if at.targets else 1.0
    each = sum(one.busy for one in some) / number / queue
    own = max(at.by_rank(lambda one: one.busy, some))
    if _asked_alone(at, some):  # MPI-IO's own cost for each request goes with it
        own = min(at.held, own + at.slowest_rank(at.held)[1])
    rest = max(0.0, at.held - own)
    likely, least, most = (
        rest + own * (1 - max(0.0, 1 - mean / rate / max(each, LEAST_SECONDS)) * (1 - mean / BLOCK))
        for rate in (USUAL, FAST, SLOW)
    )
    longest = max(some, key=lambda one: one.busy)
    culprit: dict[str, object] = {
        "bytes_per_request": round(mean), "file": at.path(longest.file)
    }  # fmt: skip
    others = {one.rank for one in moving if one.moved >= BLOCK * one.requests}
    if EVERYONE not in ranks and len(others - ranks) > len(ranks):
        culprit["ranks"] = sorted(ranks)
    yield at.candidate(
        "small-requests", culprit, (likely, least, most), some,
        requests=float(number), bytes_per_request=mean, direction=_direction(some),
    )  # fmt: skip


def _direction(some: Sequence[Record]) -> str | None:
    """Whether these records have reads or writes only; None where they have both."""
    reads, writes = any(one.reads for one in some), any(one.writes for one in some)
    return None if reads == writes else "read" if reads else "write"
