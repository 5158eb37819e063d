"""Prepare a trace for several questions: events in memory, and one pass for shared views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ioprism.engine.base import Engine, View
from ioprism.model.trace import MemoryPartition, Progress, Trace

if TYPE_CHECKING:
    import polars as pl

MAX_HELD = 4_000_000  # events, about 400 MB; reading more again costs less than swapping


def in_memory(trace: Trace, *, most: int = MAX_HELD, progress: Progress | None = None) -> Trace:
    """Return the trace with its events in memory, if there are at most `most`."""
    pieces: list[MemoryPartition] = []
    rows = 0
    for number, batch in enumerate(trace.batches(), start=1):
        pieces.append(MemoryPartition(batch.collect()))
        rows += pieces[-1].events.height
        if progress is not None:
            progress(number)
        if rows > most:
            return trace
    return trace.derive(partitions=tuple(pieces)) if rows else trace


@dataclass(slots=True)
class SharedViews:
    """An engine for one trace that computes `views` once, together with the first question."""

    engine: Engine
    trace: Trace
    views: Sequence[View]
    _tables: list[pl.DataFrame] = field(default_factory=list)

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in at most one pass over the events, in the order given."""
        if trace is not self.trace:
            return self.engine.run(trace, *views)
        others = [view for view in views if view not in self.views]
        first = () if self._tables else self.views
        tables = self.engine.run(trace, *first, *others) if first or others else ()
        self._tables += tables[: len(first)]
        rest = iter(tables[len(first) :])
        return tuple(
            self._tables[self.views.index(view)] if view in self.views else next(rest)
            for view in views
        )
