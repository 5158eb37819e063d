"""Counter records of the lowest layer: one per file and rank, or for all ranks together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import add
from typing import Any, NamedTuple

from ioprism.analyses.evidence import Evidence
from ioprism.model.usage import EVERYONE, NAMELESS, Striping, Usage

LAYERS = ("posix", "stdio", "dfs", "daos")  # that reach storage
_UNKNOWN = Striping(0, ())
CLOCKS_DIFFER = 1.01  # times the run time


class Record(NamedTuple):
    """What one rank, or all together, did to one file."""

    file: int
    rank: int  # EVERYONE for all of them together
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    read_seconds: float
    write_seconds: float
    meta_seconds: float
    opens: int
    stats: int
    syncs: int
    last_read: int  # bytes of the file up to the last that was read; 0 unknown
    longest_write: float  # seconds; 0 unknown
    slowest: float  # seconds of the slowest rank
    slowest_rank: int
    byte_deviation: float  # of the ranks
    striping: Striping
    shared: bool  # whether it stands for all ranks together
    requests: int  # reads and writes
    moved: int  # bytes read and written
    busy: float  # seconds in reads and writes
    seconds: float  # in these and metadata calls
    calls: int  # all that were counted


def counter_records(evidence: Evidence) -> list[Record]:
    """Collect the records of the layers that touch storage, on files whose names are known."""
    records = [one for one in _all(evidence) if one.file != NAMELESS]
    ranks, spent = [one.rank for one in records], [one.meta_seconds for one in records]
    if believable_metadata(ranks, spent, evidence.runtime):
        return records
    return [one._replace(meta_seconds=0.0, seconds=one.busy) for one in records]


def believable_metadata(
    ranks: Sequence[int], seconds: Sequence[float], runtime: float | None
) -> bool:
    """Whether no rank spends more time in metadata calls of its own than the run lasts.

    Darshan versions exist that count from the first open to the last.
    """
    if not runtime:
        return True
    spent: dict[int, float] = {}
    for rank, own in zip(ranks, seconds, strict=True):
        if rank != EVERYONE:
            spent[rank] = spent.get(rank, 0.0) + own
    return max(spent.values(), default=0.0) <= runtime * CLOCKS_DIFFER


def _all(evidence: Evidence) -> Iterator[Record]:
    """Records of the modules whose calls reach storage; DFS calls DAOS itself."""
    usages = evidence.usages
    for layer in LAYERS:
        if layer in usages and not (layer == "daos" and "dfs" in usages):
            yield from _records(usages[layer], evidence)


def _records(usage: Usage, evidence: Evidence) -> Iterator[Record]:
    read, write, spread = usage.moves["read"], usage.moves["write"], usage.spread
    nothing: list[Any] = [0] * len(usage)
    known = evidence.files.striping
    busy = list(map(add, read.seconds, write.seconds))
    calls: Iterable[int] = usage.operations
    for others in (usage.opens, usage.stats, usage.syncs):
        calls = map(add, calls, others)
    columns = zip(
        usage.file,
        usage.rank,
        read.operations,
        write.operations,
        read.bytes,
        write.bytes,
        read.seconds,
        write.seconds,
        usage.metadata_seconds,
        usage.opens,
        usage.stats,
        usage.syncs,
        read.extent or nothing,
        write.longest or nothing,
        spread.slowest_seconds if spread else nothing,
        spread.slowest if spread else nothing,
        spread.deviation_bytes if spread else nothing,
        [known.get(file, _UNKNOWN) for file in usage.file],
        [rank == EVERYONE for rank in usage.rank],
        usage.operations,
        usage.bytes,
        busy,
        map(add, busy, usage.metadata_seconds),
        calls,
        strict=True,
    )
    return map(partial(tuple.__new__, Record), columns)  # twice as fast as by their names
