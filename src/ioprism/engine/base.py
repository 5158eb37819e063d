"""A view says what to compute in two steps; an engine says where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ioprism.model.trace import Trace

if TYPE_CHECKING:
    import polars as pl


class View(Protocol):
    """A table over all events that can be computed piece by piece.

    Combining combined tables again must change nothing, so that pieces may be joined as a
    tree. Engines join neighbours, in the order in which the trace has its pieces.
    """

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events."""
        ...

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join summaries into one of the same form."""
        ...


@runtime_checkable
class FinalizedView(View, Protocol):
    """A view with things that can only be told when all pieces are there."""

    def finalize(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join all summaries there are into the finished table; the last step."""
        ...


def finished(view: View, partials: pl.LazyFrame) -> pl.LazyFrame:
    """Join all summaries of a view."""
    return view.finalize(partials) if isinstance(view, FinalizedView) else view.combine(partials)


class Engine(Protocol):
    """Computes views over a trace."""

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given."""
        ...
