"""Views that several questions will ask for, computed in one pass over the events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ioprism.engine.base import Engine, View
from ioprism.model.trace import Trace

if TYPE_CHECKING:
    import polars as pl


class LookingAhead:
    """An engine that computes what is known to be asked later together with the first question."""

    def __init__(self, engine: Engine, trace: Trace, views: Sequence[View]) -> None:
        self._engine = engine
        self._trace = trace
        self._views = tuple(views)
        self._tables: tuple[pl.DataFrame, ...] = ()

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, or in none."""
        if trace is not self._trace:
            return self._engine.run(trace, *views)
        places = [self._views.index(view) if view in self._views else None for view in views]
        missing = [view for view, place in zip(views, places, strict=True) if place is None]
        ahead = () if self._tables else self._views
        asked = iter(self._engine.run(trace, *ahead, *missing) if ahead or missing else ())
        if ahead:
            self._tables = tuple(next(asked) for _ in ahead)
        return tuple(next(asked) if place is None else self._tables[place] for place in places)
