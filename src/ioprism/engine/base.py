"""A view says what to compute in two steps; an engine says where: on this machine by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from ioprism.model.trace import MemoryPartition, Progress, Trace, Warn

if TYPE_CHECKING:
    import polars as pl

    from ioprism.engine.summaries import Summaries


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


class SummedView:
    """Lets a view add up its sums by all its other columns."""

    sums: ClassVar[tuple[str, ...]]

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the sums of the same key."""
        import polars as pl

        return partials.group_by(pl.exclude(self.sums)).agg(pl.col(self.sums).sum())


class KeptView:
    """Lets a view keep the rows of all pieces as they are."""

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Keep rows side by side."""
        return partials


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


MAX_HELD = 4_000_000  # events, about 400 MB; reading more again costs less than swapping


def in_memory(trace: Trace, *, most: int = MAX_HELD, progress: Progress | None = None) -> Trace:
    """Return the trace with its events and processes in memory, if there are at most `most`.

    Pieces whose calls alternate in time become one: the order of calls is an answer, too.
    """
    pieces: list[pl.DataFrame] = []
    rows = 0
    for number, batch in enumerate(trace.batches(), start=1):
        pieces.append(batch.collect())
        rows += pieces[-1].height
        if progress is not None:
            progress(number)
        if rows > most:
            return trace
    if not rows:
        return trace
    if _alternate(pieces):
        import polars as pl

        pieces = [pl.concat(pieces)]
    held = trace.derive(partitions=tuple(map(MemoryPartition, pieces)))
    _ = held.processes  # read here, with the calls that name them
    return held


def _alternate(pieces: Sequence[pl.DataFrame]) -> bool:
    """Whether calls of one rank are in two pieces, some of each before some of the other."""
    import polars as pl

    start, by = pl.col("start"), ("rank", "process")
    spans = [piece.group_by(by).agg(first=start.min(), last=start.max()) for piece in pieces]
    earlier = (
        pl.concat(spans)
        .sort(*by, "first")
        .select((pl.col("first") < pl.col("last").shift(1).over(by)).any())
    )
    return bool(earlier.item())


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
