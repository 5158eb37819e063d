"""The calls of a job as marks on a picture: each by itself, or runs of them where they are many.

A run joins the calls of one rank, layer and operation that begin in the same stretch of time.
It keeps their sums, so that bandwidth and busy time drawn from runs stay exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from ioprism.engine.base import Engine, KeptView
from ioprism.formats.darshan.meaning import MODULES, Module
from ioprism.model.schema import OPERATIONS, Layer, Operation
from ioprism.model.trace import Trace
from ioprism.views.bandwidth import SHORTEST
from ioprism.views.intervals import heat_bins

MOST_MARKS = 1_600_000  # about 12 MB of page
COLUMNS = 8192  # of the finest runs; a wide screen shows a quarter of them
NO_RANK = -1
RANKS, STRETCHES = 2**25, 2**30  # more than a key needs of either

MARKS = pl.Schema(
    {
        "layer": Layer,
        "rank": pl.Int32(),
        "operation": Operation,
        "start": pl.Float64(),
        "end": pl.Float64(),
        "file": pl.UInt32(),  # null: several, or none
        "bytes": pl.Int64(),
        "offset": pl.Int64(),  # of the first byte
        "reach": pl.Int64(),  # behind the last byte
        "seconds": pl.Float64(),  # spent in calls
        "calls": pl.UInt32(),
        "process": pl.UInt32(),  # row of the process table; null: several, or unknown
        "function": pl.Categorical(),  # the call's own name; null: several, or unknown
    }
)
# Streams lie together, so that what is stored of a call, its difference, is small.
_ORDER = ("layer", "rank", "process", "file", "operation", "start", "end", "offset")


@dataclass(frozen=True, slots=True)
class Span:
    """When calls run and how many there are, of all layers together."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events."""
        return events.select(
            pl.col("start").min(),
            pl.col("end").max(),
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("rank").max(),
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join summaries."""
        return partials.select(
            pl.col("start").min(), pl.col("end").max(), pl.col("calls").sum(), pl.col("rank").max()
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a picture that is asked for."""

    start: float  # seconds
    end: float
    ranks: tuple[int, int] | None = None  # first and last; None: all

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the calls that touch the window."""
        touching = events.filter(pl.col("end") >= self.start, pl.col("start") <= self.end)
        return (
            touching
            if self.ranks is None
            else touching.filter(pl.col("rank").is_between(*self.ranks))
        )


@dataclass(frozen=True, slots=True)
class CallMarks(KeptView):
    """Every call as a separate mark."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Take the calls out of some of the events."""
        return events.select(
            pl.col("layer", "operation", "start", "end", "file", "bytes", "offset"),
            pl.col("process", "function"),
            pl.col("rank").fill_null(NO_RANK),
            reach=pl.col("offset") + pl.col("bytes"),
            seconds=pl.col("end") - pl.col("start"),
            calls=pl.lit(1, dtype=pl.UInt32),
        )


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of calls: one for each layer, rank, operation and stretch of time."""

    width: float  # seconds of a stretch
    rank_step: int = 1  # ranks that share a row of the picture

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Join the calls of some of the events."""
        calls = CallMarks().partial(events).with_columns(low=pl.col("file"), high=pl.col("file"))
        return self.combine(calls.drop("file", "process", "function"))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join runs of the same stretch."""
        runs = partials.group_by(self._key()).agg(
            pl.col("layer", "operation").first(),
            (pl.col("rank").first() // self.rank_step * self.rank_step).alias("rank"),
            pl.col("start", "low", "offset").min(),
            pl.col("end", "high", "reach").max(),
            pl.col("bytes", "seconds", "calls").sum(),
        )
        return runs.drop("key")

    def _key(self) -> pl.Expr:
        """One number for layer, operation, row and stretch: grouping by one is far quicker."""
        layer, operation = (pl.col(name).to_physical() for name in ("layer", "operation"))
        row = (pl.col("rank") // self.rank_step + 1).cast(pl.Int64)
        stretch = (pl.col("start") / self.width).floor().cast(pl.Int64)
        kind = layer.cast(pl.Int64) * len(OPERATIONS) + operation.cast(pl.Int64)
        return ((kind * RANKS + row) * STRETCHES + stretch).alias("key")


def marks_of_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Turn combined runs into marks: a run knows its file if all its calls share it."""
    same = pl.col("low") == pl.col("high")
    return runs.with_columns(
        _nothing("process", "function"), file=pl.when(same).then("low")
    ).select(MARKS.names())


def _nothing(*columns: str) -> list[pl.Expr]:
    return [pl.lit(None, dtype=MARKS[name]).alias(name) for name in columns]


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What a picture of calls over time shows."""

    marks: pl.DataFrame  # see MARKS; stream by stream, each by start
    start: float  # seconds since the job started
    end: float
    calls: int  # that the marks stand for
    width: float | None = None  # seconds of a run's stretch; None: every call has its mark
    source: str = "calls"  # "heat map": a mark is a bin; "counters": first to last call on a file
    rank_step: int = 1  # ranks that share a row

    @property
    def whole(self) -> bool:
        """Whether every call is there by itself."""
        return self.width is None and self.source == "calls"


def timeline(trace: Trace, engine: Engine, *, most: int = MOST_MARKS) -> Timeline:
    """Return the marks of a whole trace, at most about `most` of them."""
    if not trace.partitions:
        return heat_map_timeline(trace)
    (span,) = engine.run(trace, Span())
    start, end, calls, _ = span.row(0)
    if not calls:
        return heat_map_timeline(trace)
    view = timeline_view(span, most=most)
    (marks,) = engine.run(trace, view)
    if isinstance(view, CallMarks):
        return Timeline(order_marks(marks), start, end, calls)
    width = view.width
    while marks.height > most:
        width *= 2
        marks = Runs(width).combine(marks.lazy()).collect()
    return Timeline(order_runs(marks_of_runs(marks)), start, end, calls, width)


def timeline_view(span: pl.DataFrame, *, most: int = MOST_MARKS) -> CallMarks | Runs:
    """Return the view that a picture of calls with this `Span` needs."""
    start, end, calls, last_rank = span.row(0)
    if calls <= most:
        return CallMarks()
    # Finer runs than these would have to be joined again, if most ranks are busy all the time.
    return Runs(stretch(start, end, min(COLUMNS, max(512, 2 * most // ((last_rank or 0) + 1)))))


def stretch(start: float, end: float, columns: int) -> float:
    """Return the width of a picture's column, in seconds; never 0."""
    return max(end - start, SHORTEST) / columns


def order_marks(marks: pl.DataFrame) -> pl.DataFrame:
    """Return marks with their columns and rows in order."""
    return marks.select(MARKS.names()).cast(MARKS).sort(_ORDER)


def order_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return runs in order: a rank and operation has one in each stretch, whatever its file."""
    return runs.sort("layer", "rank", "operation", "start")


def heat_map_timeline(trace: Trace) -> Timeline:
    """Return the bins of Darshan's heat maps as marks, for logs without calls."""
    runtime = trace.job.runtime or 0.0
    table = trace.counters.get("HEATMAP")
    if table is None or not table.height:
        return counter_timeline(trace)
    parts = [_bins(table, direction) for direction in ("read", "write")]
    marks = order_marks(pl.concat(parts))
    last = marks["end"].to_numpy()
    end = float(last.max()) if len(last) else runtime
    widths = (width for width in table["bin_width"].drop_nulls() if math.isfinite(width))
    return Timeline(marks, 0.0, max(end, runtime), 0, max(widths, default=1.0), "heat map")


def _bins(table: pl.DataFrame, direction: str) -> pl.DataFrame:
    bins = heat_bins(table).filter((pl.col("bin_width") > 0) & (pl.col(direction) > 0))
    return bins.select(
        *_nothing("file", "offset", "reach", "process", "function"),
        "layer",
        pl.col("rank").fill_null(NO_RANK),
        "start",
        pl.lit(direction, dtype=Operation).alias("operation"),
        end=pl.col("start") + pl.col("bin_width"),
        bytes=pl.col(direction).cast(pl.Int64),
        seconds=pl.col("bin_width"),
        calls=pl.lit(0, dtype=pl.UInt32),
    ).select(MARKS.names()).cast(MARKS)  # fmt: skip


def counter_timeline(trace: Trace) -> Timeline:
    """Return when each rank first and last used each file, where there are counters only."""
    runtime = trace.job.runtime or 0.0
    parts = [
        _file_spans(table, module, operation)
        for name, module in MODULES.items()
        if (table := trace.counters.get(name)) is not None
        for operation in ("read", "write", "metadata")
    ]
    marks = order_marks(
        pl.concat([MARKS.to_frame(), *(part for part in parts if part is not None)])
    )
    if not marks.height:
        return Timeline(marks, 0.0, runtime, 0)
    end = float(marks["end"].to_numpy().max())
    return Timeline(marks.head(MOST_MARKS), 0.0, max(end, runtime), 0, None, "counters")


def _file_spans(table: pl.DataFrame, module: Module, operation: str) -> pl.DataFrame | None:
    """From the first to the last read, write or open and close of each record."""
    first, last = _span_counters(module, operation)
    needed = [first, last, module.seconds(operation)]
    if not module.moves_data or not set(needed) <= set(table.columns):
        return None
    moves = operation != "metadata"
    kind = operation if moves else "open"
    counted = [
        module.counter_name(name) for name in (module.calls[operation] if moves else module.opens)
    ]
    calls = pl.sum_horizontal([name for name in counted if name in table.columns])
    size = pl.col(module.bytes(operation)) if moves else pl.lit(None)
    # A record without such calls has zeros for both times.
    return table.filter((calls > 0) & (pl.col(last) > 0) & (pl.col(last) >= pl.col(first))).select(
        *_nothing("offset", "reach", "process", "function"),
        "file",
        pl.col("rank").fill_null(NO_RANK),
        pl.lit(module.layer, dtype=Layer).alias("layer"),
        pl.lit(kind, dtype=Operation).alias("operation"),
        pl.col(first).alias("start"),
        pl.col(last).alias("end"),
        bytes=size.cast(pl.Int64),
        # Of a record of all ranks, seconds are a sum over ranks: more than the span can hold.
        seconds=pl.min_horizontal(pl.col(needed[2]), pl.col(last) - pl.col(first)),
        calls=calls.clip(0, 2**32 - 1).cast(pl.UInt32),
    ).select(MARKS.names()).cast(MARKS)  # fmt: skip


def _span_counters(module: Module, operation: str) -> tuple[str, str]:
    first, last = ("OPEN", "CLOSE") if operation == "metadata" else [operation.upper()] * 2
    names = f"F_{first}_START_TIMESTAMP", f"F_{last}_END_TIMESTAMP"
    return module.counter_name(names[0]), module.counter_name(names[1])
