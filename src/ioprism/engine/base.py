"""A view says what to compute in two steps; an engine says where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ioprism.model.trace import Trace

if TYPE_CHECKING:
    import polars as pl


class View(Protocol):
    """A table over all events that can be computed piece by piece.

    Combining combined tables again must change nothing, so that pieces may be joined as a
    tree, in any order.
    """

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events."""
        ...

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join summaries into one of the same form."""
        ...


class Engine(Protocol):
    """Computes views over a trace."""

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given."""
        ...
