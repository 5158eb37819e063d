"""A view says what to compute in two steps; an engine says where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from ioprism.model.trace import Trace, Warn

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
    """A view that can decide some things only when all pieces are there."""

    def finalize(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join all summaries there are into the finished table; the last step."""
        ...


@runtime_checkable
class ShardedView(View, Protocol):
    """A view whose summaries may be large, and can be joined in shards.

    Rows whose values differ in `shard_by` never have to meet.
    """

    shard_by: ClassVar[tuple[str, ...]]

    def memory(self, summary: pl.DataFrame) -> int:
        """Bytes that a result of this size needs, with all that analyses make of it."""
        ...


@runtime_checkable
class ContinuedPartition(Protocol):
    """A part of a file for which the parts before it matter.

    Read in order, in one process, it is a partition like any other. Elsewhere it needs the
    moves of the parts before it.
    """

    @property
    def continues(self) -> int:
        """How many of the partitions in front of it belong to the same file."""
        ...

    def prepare(self) -> PreparedPartition:
        """Read it as far as that is possible without knowing the parts before it."""
        ...


class PreparedPartition(Protocol):
    """A part that was read by itself, and needs the moves of the parts before it; picklable."""

    @property
    def moves(self) -> Any:  # noqa: ANN401 - only the format knows
        """What later parts have to know of this one."""
        ...

    def continue_after(self, earlier: Sequence[Any], warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events, given the moves of the parts before this one."""
        ...


def finish(view: View, partials: pl.LazyFrame) -> pl.LazyFrame:
    """Join all summaries of a view."""
    return view.finalize(partials) if isinstance(view, FinalizedView) else view.combine(partials)


class Engine(Protocol):
    """Computes views over a trace."""

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given."""
        ...


@runtime_checkable
class MapsPartitions(Protocol):
    """An engine with workers, which can do more with a partition than compute views."""

    def map_partitions(self, trace: Trace, work: Callable[[int, Any], Any]) -> list[Any]:
        """Apply a function to every partition and its number."""
        ...
