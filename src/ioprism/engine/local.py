"""Compute views on this machine, on all cores, with polars."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ioprism.engine.base import View
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Progress, Trace

# Partial tables are joined when they hold this many rows, so that memory stays bounded.
ROWS_HELD = 2_000_000


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """One pass over the events, batch by batch."""

    progress: Progress | None = None

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given."""
        empty = EVENTS.empty().lazy()
        held = [[partial] for partial in pl.collect_all([view.partial(empty) for view in views])]
        for number, batch in enumerate(trace.batches(), start=1):
            partials = pl.collect_all([view.partial(batch) for view in views])
            for view, tables, partial in zip(views, held, partials, strict=True):
                tables.append(partial)
                if sum(table.height for table in tables) > ROWS_HELD:
                    tables[:] = [_combined(view, tables)]
            if self.progress is not None:
                self.progress(number)
        return tuple(_combined(view, tables) for view, tables in zip(views, held, strict=True))


def _combined(view: View, tables: list[pl.DataFrame]) -> pl.DataFrame:
    return view.combine(pl.concat(tables).lazy()).collect()
