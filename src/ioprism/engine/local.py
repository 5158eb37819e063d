"""Compute views on this machine, on all cores, with polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from ioprism.engine.base import ShardedView, View
from ioprism.engine.room import check_room, needed_by_all, pairs, sample
from ioprism.engine.shards import Held
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Progress, Trace

# Partial tables are joined when they hold this many rows, so that memory stays bounded.
ROWS_HELD = 4_000_000
# What one event needs at most while a view is computed, and one row of a partial table.
BYTES_PER_EVENT = 400
BYTES_PER_ROW = 200
FEWEST_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """One pass over the events, batch by batch."""

    progress: Progress | None = None
    memory_limit: int | None = None  # bytes to plan with; None: batches as the reader gives them

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given.

        Raises:
            NotEnoughMemoryError: the result needs more than the limit; before the pass, if a
                sample shows it.
        """
        self._check_beforehand(trace, views)
        return tuple(one.finished(self.memory_limit) for one in self.gathered(trace, views))

    def _check_beforehand(self, trace: Trace, views: Sequence[View]) -> None:
        if self.memory_limit is None or not any(isinstance(view, ShardedView) for view in views):
            return
        samples = [sample(views, pair) for pair in pairs(trace.partitions)]
        if samples:
            check_room(needed_by_all(samples, len(trace.partitions)), self.memory_limit)

    def gathered(self, trace: Trace, views: Sequence[View]) -> list[Held]:
        """Return the summaries of all batches, of each view; those of no event if there is none."""
        held = [Held(view, self.rows_held, self.memory_limit is not None) for view in views]
        number = 0
        for number, batch in enumerate(self.batches(trace), start=1):
            _summarise(batch, held)
            if self.progress is not None:
                self.progress(number)
        if not number:
            _summarise(EVENTS.empty().lazy(), held)
        return held

    @property
    def rows_held(self) -> int:
        """How many rows of partial tables may wait to be joined."""
        if self.memory_limit is None:
            return ROWS_HELD
        return max(FEWEST_ROWS, min(ROWS_HELD, self.memory_limit // (4 * BYTES_PER_ROW)))

    def batches(self, trace: Trace) -> Iterator[pl.LazyFrame]:
        """Yield the events in pieces that fit into the memory limit."""
        if self.memory_limit is None:
            yield from trace.batches()
            return
        rows = max(FEWEST_ROWS, self.memory_limit // (2 * BYTES_PER_EVENT))
        for batch in trace.batches():
            height = batch.select(pl.len()).collect().item()
            for first in range(0, height, rows):
                yield batch.slice(first, rows)


def _summarise(batch: pl.LazyFrame, held: Sequence[Held]) -> None:
    """Add a batch to the summaries of all views, in one pass over its events."""
    partials = pl.collect_all([one.view.partial(batch) for one in held])
    for one, partial in zip(held, partials, strict=True):
        one.add(partial)
