"""Join large summaries without holding all of them: cut by key, kept on disk, joined in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import polars as pl

from ioprism.engine.base import ShardedView, View, finished
from ioprism.engine.room import check_room

SHARDS = 16


def sharded(table: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    """Cut a table so that rows of equal keys are in the same shard; each keeps its order."""
    number = table.select(pl.struct(by).hash(seed=0) % SHARDS).to_series()
    return [table.filter(number == shard) for shard in range(SHARDS)]


@dataclass(slots=True)
class Held:
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
        self.tables = [self.combined()]
        self.rows = self.tables[0].height
        if not self.spills or not isinstance(self.view, ShardedView):
            # Joining at a fixed size would cost ever more when the result itself is large.
            self.limit = max(self.limit, 2 * self.rows)
        elif 2 * self.rows > self.limit:
            self._disk = self._disk or _Disk(self.view.shard_by)
            self._spill(self._disk)

    def combined(self) -> pl.DataFrame:
        """Return the summaries in memory as one."""
        return self.view.combine(pl.concat(self.tables).lazy()).collect()

    def shards(self, by: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield all summaries joined as far as possible, cut by key: one table per shard."""
        if self._disk is None:
            # One summary has been summed already.
            yield from sharded(self.tables[0] if len(self.tables) == 1 else self.combined(), by)
            return
        self._spill(self._disk)
        for shard in self._disk.shards():
            yield self.view.combine(shard.lazy()).collect()

    def finished(self, memory_limit: int | None = None) -> pl.DataFrame:
        """Return the finished table.

        Raises:
            NotEnoughMemoryError: the limit has no room for it and what is made of it.
        """
        if self._disk is None or not isinstance(self.view, ShardedView):
            return finished(self.view, pl.concat(self.tables).lazy()).collect()
        self._spill(self._disk)
        done: list[pl.DataFrame] = []
        needed = 0
        for shard in self._disk.shards():
            done.append(finished(self.view, shard.lazy()).collect())
            needed += self.view.memory(done[-1])
            # The first shards show already whether all of them will fit.
            check_room(needed * SHARDS // len(done), memory_limit)
        return pl.concat(done)

    def _spill(self, disk: _Disk) -> None:
        if self.tables:
            disk.add(self.combined())
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
        for number, shard in enumerate(sharded(table, self._shard_by)):
            shard.write_ipc(self._file(number, self._added), compression="lz4")
        self._added += 1

    def shards(self) -> Iterator[pl.DataFrame]:
        """Yield the shards, each with all that was added to it, in that order."""
        for number in range(SHARDS):
            files = [self._file(number, added) for added in range(self._added)]
            yield pl.concat(pl.read_ipc(file) for file in files)

    def _file(self, shard: int, added: int) -> Path:
        return self._folder / f"{shard}-{added}.arrow"
