"""Prepare a trace for several questions: events in memory, and one pass for shared views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ioprism.engine.base import Engine, View
from ioprism.model.trace import MemoryPartition, Progress, Trace

if TYPE_CHECKING:
    import polars as pl

MAX_HELD = 4_000_000  # events, about 400 MB; reading more again costs less than swapping


def in_memory(trace: Trace, *, most: int = MAX_HELD, progress: Progress | None = None) -> Trace:
    """Return the trace with its events and processes in memory, if there are at most `most`."""
    pieces: list[MemoryPartition] = []
    rows = 0
    for number, batch in enumerate(trace.batches(), start=1):
        pieces.append(MemoryPartition(batch.collect()))
        rows += pieces[-1].events.height
        if progress is not None:
            progress(number)
        if rows > most:
            return trace
    if not rows:
        return trace
    held = trace.derive(partitions=tuple(pieces))
    _ = held.processes  # read here, with the calls that name them
    return held


@dataclass(slots=True)
class SharedViews:
    """An engine for one trace that computes planned views together and keeps their tables."""

    engine: Engine
    trace: Trace
    planned: tuple[View, ...] = ()  # for the next pass, whichever question starts it
    _kept: list[tuple[View, pl.DataFrame]] = field(default_factory=list)

    def plan(self, *views: View) -> None:
        """Compute these together with the next view that is asked for."""
        self.planned += views

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in at most one pass over the events, in the order given."""
        if trace is not self.trace:
            return self.engine.run(trace, *views)
        known = [view for view, _ in self._kept]
        others = [view for view in views if view not in known and view not in self.planned]
        tables = list(self._kept)
        if others or any(view in self.planned for view in views):
            asked = (*self.planned, *others)
            tables += zip(asked, self.engine.run(trace, *asked), strict=True)
            self._kept = tables[: len(known) + len(self.planned)]
            self.planned = ()
        return tuple(next(table for one, table in tables if one == view) for view in views)
