"""Compute views on this machine, on all cores, with polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioprism.engine.base import ShardedView, View
from ioprism.model.trace import Progress, Trace

if TYPE_CHECKING:  # loaded with the first question about events: counters and signals have none
    import polars as pl

    from ioprism.engine.summaries import Summaries

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
        return tuple(one.finish(self.memory_limit) for one in self.summarise(trace, views))

    def _check_beforehand(self, trace: Trace, views: Sequence[View]) -> None:
        if self.memory_limit is None or not any(isinstance(view, ShardedView) for view in views):
            return
        from ioprism.engine.summaries import check_room, needed_by_all, pairs, sample

        samples = [sample(views, pair) for pair in pairs(trace.partitions)]
        if samples:
            check_room(needed_by_all(samples, len(trace.partitions)), self.memory_limit)

    def summarise(self, trace: Trace, views: Sequence[View]) -> list[Summaries]:
        """Return the summaries of all batches, of each view; those of no event if there is none."""
        import polars as pl

        from ioprism.engine.summaries import Summaries
        from ioprism.model.schema import EVENTS

        spills = self.memory_limit is not None
        summaries = [Summaries(view, self.rows_held, spills) for view in views]

        def add(batch: pl.LazyFrame) -> None:
            partials = pl.collect_all([view.partial(batch) for view in views])
            for one, partial in zip(summaries, partials, strict=True):
                one.add(partial)

        number = 0
        for number, batch in enumerate(self.batches(trace), start=1):
            add(batch)
            if self.progress is not None:
                self.progress(number)
        if not number:
            add(EVENTS.empty().lazy())
        return summaries

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
        import polars as pl

        rows = max(FEWEST_ROWS, self.memory_limit // (2 * BYTES_PER_EVENT))
        for batch in trace.batches():
            height = batch.select(pl.len()).collect().item()
            for first in range(0, height, rows):
                yield batch.slice(first, rows)
