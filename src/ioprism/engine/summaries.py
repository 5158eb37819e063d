"""Summaries of views: do they fit into memory, and how are large ones joined?

Whether a result fits is estimated before the work starts: a few pairs of neighbouring partitions
are summarised, and what the second of a pair adds to the first is what each further partition
adds on average. Large summaries are cut into shards by key, kept on disk and joined one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import polars as pl

from ioprism.engine.base import ContinuedPartition, ShardedView, View, finish
from ioprism.errors import NotEnoughMemoryError
from ioprism.model.trace import Completeness, Partition

SHARDS = 16
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


PartialSizes = tuple[int, int]  # bytes that a partition's results need, and with its neighbour's


def pairs(partitions: Sequence[Partition]) -> list[tuple[Partition, Partition]]:
    """Choose neighbouring partitions that stand for all."""
    if len(partitions) < FEWEST:
        return []
    wanted = max(1, min(MOST_PAIRS, len(partitions) // ONE_PAIR_IN))
    step = len(partitions) / wanted
    # Off by one in turn: a periodic job should not hit all of them, or none.
    places = [int((number + 0.5) * step) - 1 + number % 2 for number in range(wanted)]
    return [(partitions[place], partitions[place + 1]) for place in places]


def sample(views: Sequence[View], pair: tuple[Partition, Partition]) -> PartialSizes:
    """Summarise two partitions as all of them would be."""
    large = [view for view in views if isinstance(view, ShardedView)]
    first, second = (_summaries(large, partition) for partition in pair)
    both = [
        view.combine(pl.concat([one, other]).lazy()).collect()
        for view, one, other in zip(large, first, second, strict=True)
    ]
    return _memory(large, first), _memory(large, both)


def needed_by_all(samples: Sequence[PartialSizes], partitions: int) -> int:
    """Bytes that the results of all partitions need."""
    first = sum(one for one, _ in samples) / len(samples)
    more = sum(both - one for one, both in samples) / len(samples)
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
    """Events of a partition by itself: what came before it changes few of them."""
    ignored = Completeness().warn  # warnings come again when it is read for the answer
    if isinstance(partition, ContinuedPartition):
        return partition.prepare().continue_after((), ignored)
    return partition.batches(ignored)


def cut_into_shards(table: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    """Cut a table so that rows of equal keys are in the same shard; each keeps its order."""
    number = table.select(pl.struct(by).hash(seed=0) % SHARDS).to_series()
    return [table.filter(number == shard) for shard in range(SHARDS)]


@dataclass(slots=True)
class Summaries:
    """Summaries of one view that wait to be joined; too many of them are put on disk."""

    view: View
    limit: int  # rows in memory
    spills: bool = False  # whether memory is limited, so that larger results are put on disk
    tables: list[pl.DataFrame] = field(default_factory=list)
    rows: int = 0
    _disk: _Disk | None = None

    def add(self, partial: pl.DataFrame) -> None:
        """Take one more summary; join them when there are too many rows."""
        self.tables.append(partial)
        self.rows += partial.height
        if self.rows <= self.limit:
            return
        self.tables = [self.combine()]
        self.rows = self.tables[0].height
        if not self.spills or not isinstance(self.view, ShardedView):
            # Joining at a fixed size would cost ever more when the result itself is large.
            self.limit = max(self.limit, 2 * self.rows)
        elif 2 * self.rows > self.limit:
            self._disk = self._disk or _Disk(self.view.shard_by)
            self._spill(self._disk)

    def combine(self) -> pl.DataFrame:
        """Return the summaries in memory as one."""
        return self.view.combine(pl.concat(self.tables).lazy()).collect()

    def shards(self, by: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield all summaries joined as far as possible, cut by key: one table per shard."""
        if self._disk is None:
            # One summary has been summed already.
            yield from cut_into_shards(
                self.tables[0] if len(self.tables) == 1 else self.combine(), by
            )
            return
        self._spill(self._disk)
        for shard in self._disk.shards():
            yield self.view.combine(shard.lazy()).collect()

    def finish(self, memory_limit: int | None = None) -> pl.DataFrame:
        """Return the finished table.

        Raises:
            NotEnoughMemoryError: the limit has no room for it and what is made of it.
        """
        if self._disk is None or not isinstance(self.view, ShardedView):
            return finish(self.view, pl.concat(self.tables).lazy()).collect()
        self._spill(self._disk)
        done: list[pl.DataFrame] = []
        needed = 0
        for shard in self._disk.shards():
            done.append(finish(self.view, shard.lazy()).collect())
            needed += self.view.memory(done[-1])
            # The first shards show already whether all of them will fit.
            check_room(needed * SHARDS // len(done), memory_limit)
        return pl.concat(done)

    def _spill(self, disk: _Disk) -> None:
        if self.tables:
            disk.add(self.combine())
            self.tables, self.rows = [], 0


class _Disk:
    """Summaries in a folder that is gone with this object, each cut into shards."""

    def __init__(self, shard_by: Sequence[str]) -> None:
        self._shard_by = shard_by
        self._folder = Path(mkdtemp(prefix="ioprism-"))
        finalize(self, rmtree, self._folder, ignore_errors=True)
        self._added = 0

    def add(self, table: pl.DataFrame) -> None:
        """Put one more summary there."""
        for number, shard in enumerate(cut_into_shards(table, self._shard_by)):
            shard.write_ipc(self._file(number, self._added), compression="lz4")
        self._added += 1

    def shards(self) -> Iterator[pl.DataFrame]:
        """Yield the shards, each with all that was added to it, in that order."""
        for number in range(SHARDS):
            files = [self._file(number, added) for added in range(self._added)]
            yield pl.concat(pl.read_ipc(file) for file in files)

    def _file(self, shard: int, added: int) -> Path:
        return self._folder / f"{shard}-{added}.arrow"
