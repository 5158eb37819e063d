"""Say before the work starts whether its result will fit into memory.

A few pairs of neighbouring partitions are summarised. What the second of a pair adds to the
first is what each further partition will add, on the average.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from ioprism.engine.base import ContinuedPartition, ShardedView, View
from ioprism.errors import NotEnoughMemoryError
from ioprism.model.trace import Partition

PROGRAM = 200 * 10**6  # bytes of the process before it has read anything
LEEWAY = 1.2  # by which a limit may be exceeded
FEWEST = 8  # partitions; fewer are read as quickly as they are sampled
ONE_PAIR_IN = 24  # partitions
MOST_PAIRS = 4


def check_room(needed: int, memory_limit: int | None) -> None:
    """Refuse what does not fit.

    Args:
        needed: bytes of results, and of what is made of them.
        memory_limit: bytes; None: unlimited.

    Raises:
        NotEnoughMemoryError: the limit has no room for it.
    """
    if memory_limit is not None and PROGRAM + needed > LEEWAY * memory_limit:
        raise NotEnoughMemoryError(needed=PROGRAM + needed, allowed=memory_limit)


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes that the results of one partition, and of it and its neighbour, need."""

    first: int
    both: int


def pairs(partitions: Sequence[Partition]) -> list[tuple[Partition, Partition]]:
    """Choose neighbouring partitions that stand for all."""
    if len(partitions) < FEWEST:
        return []
    wanted = max(1, min(MOST_PAIRS, len(partitions) // ONE_PAIR_IN))
    step = len(partitions) / wanted
    # By one off in turn: a rhythm of the job should not meet all of them, or none.
    places = [int((number + 0.5) * step) - 1 + number % 2 for number in range(wanted)]
    return [(partitions[place], partitions[place + 1]) for place in places]


def sample(views: Sequence[View], pair: tuple[Partition, Partition]) -> Sample:
    """Summarise two partitions as all of them would be."""
    large = [view for view in views if isinstance(view, ShardedView)]
    first, second = (_summaries(large, partition) for partition in pair)
    both = [
        view.combine(pl.concat([one, other]).lazy()).collect()
        for view, one, other in zip(large, first, second, strict=True)
    ]
    return Sample(_memory(large, first), _memory(large, both))


def needed_by_all(samples: Sequence[Sample], partitions: int) -> int:
    """Bytes that the results of all partitions need."""
    first = sum(one.first for one in samples) / len(samples)
    more = sum(one.both - one.first for one in samples) / len(samples)
    return int(first + more * (partitions - 1))


def _memory(views: Sequence[ShardedView], tables: Sequence[pl.DataFrame]) -> int:
    return sum(view.memory(table) for view, table in zip(views, tables, strict=True))


def _summaries(views: Sequence[ShardedView], partition: Partition) -> list[pl.DataFrame]:
    pieces = [[view.partial(batch).collect() for view in views] for batch in _batches(partition)]
    return [
        view.combine(pl.concat(tables).lazy()).collect()
        for view, tables in zip(views, zip(*pieces, strict=True), strict=True)
    ]


def _batches(partition: Partition) -> Iterator[pl.LazyFrame]:
    """Events of a partition alone: what came before it changes few of them."""
    if isinstance(partition, ContinuedPartition):
        return partition.prepared().continued((), _unheard)
    return partition.batches(_unheard)


def _unheard(message: str) -> None:
    """Warnings come again when the partition is read for the answer."""
    del message
