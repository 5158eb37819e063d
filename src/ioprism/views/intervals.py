"""When calls run and how they change the bandwidth: busy intervals, windows, exact steps, bins.

A request moves its bytes evenly from its start to its end. Up to `EXACT_CALLS` requests the
step function is exact, with an edge wherever a request starts or ends. Beyond that it is the
exact integral over `BINS` equal bins, so that memory does not grow with the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import polars as pl

from ioprism.engine.base import Engine, KeptView, SummedView
from ioprism.model.arrays import Floats, StepFunction, unite
from ioprism.model.schema import Layer
from ioprism.model.trace import Trace, counted_layers, deepest
from ioprism.views.bandwidth import DERIVED_KEYS, DIRECTIONS, SHORTEST, running

_INTERVALS = pl.Schema({"layer": Layer, "start": pl.Float64(), "end": pl.Float64()})


@dataclass(frozen=True, slots=True)
class BusyIntervals:
    """Disjoint intervals in which at least one rank is in a call, per layer."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Unite the calls of some of the events."""
        chosen = events.select("layer", "start", "end")
        return chosen.map_batches(united_layers, schema=_INTERVALS, projection_pushdown=False)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Unite united intervals."""
        return self.partial(partials)


def united_layers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the disjoint intervals of each layer that rows of layer, start and end cover."""
    tables = [_INTERVALS.to_frame()]
    layers = frame["layer"].unique().sort().to_list()
    for layer in layers:
        rows = frame if len(layers) == 1 else frame.filter(layer=layer)
        starts, ends = unite(rows["start"].to_numpy(), rows["end"].to_numpy())
        tables.append(
            pl.DataFrame({"start": starts, "end": ends}).select(
                pl.lit(layer, dtype=Layer).alias("layer"), "start", "end"
            )
        )
    return pl.concat(tables)


@dataclass(frozen=True, slots=True)
class PhaseShares(SummedView):
    """What each rank did in each phase of each layer; a call belongs where it starts."""

    sums: ClassVar = ("operations", "seconds", "read", "write")
    borders: Mapping[str, tuple[Floats, Floats]]  # layer -> when its phases start, and end

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events by phase and rank."""
        layers = self.borders or ("other",)  # a table without rows has its columns, too
        return pl.concat([self._layer(events, layer) for layer in layers])

    def _layer(self, events: pl.LazyFrame, layer: str) -> pl.LazyFrame:
        starts, ends = self.borders.get(layer, (np.empty(0), np.empty(0)))
        phase = window_of(starts)
        # What starts behind the end of its phase goes on between phases and belongs to none.
        inside = (phase >= 0) & (_place(ends, side="left") <= phase)
        seconds = pl.col("end") - pl.col("start")
        chosen = events.filter((pl.col("layer") == layer) & inside).select(
            "layer", "rank", "operation", "bytes", phase=phase, seconds=seconds
        )
        moved = {d: pl.col("bytes").filter(operation=d).sum() for d in DIRECTIONS}
        return chosen.group_by("layer", "phase", "rank").agg(
            pl.len().cast(pl.Int64).alias("operations"), pl.col("seconds").sum(), **moved
        )


def _place(borders: Floats, *, side: Literal["left", "right"]) -> pl.Expr:
    """How many borders lie before the start of each call."""
    return (
        pl.lit(pl.Series(borders, dtype=pl.Float64))
        .search_sorted(pl.col("start"), side=side)
        .cast(pl.Int64)
    )


_SHARES = pl.Schema(
    {
        "layer": Layer, "phase": pl.Int64(), "rank": pl.Int32(), "operations": pl.Int64(),
        "seconds": pl.Float64(), "read": pl.Int64(), "write": pl.Int64(),
    }
)  # fmt: skip


def heat_bins(heat: pl.DataFrame) -> pl.DataFrame:
    """One row per rank, layer and bin in which bytes were moved."""
    return (
        heat.filter(pl.col("layer").is_not_null())
        .with_columns(bin=pl.int_ranges(0, pl.col("write").list.len()))
        .explode("write", "read", "bin")
        .filter((pl.col("write") > 0) | (pl.col("read") > 0))
        .with_columns(
            start=pl.col("bin") * pl.col("bin_width"), end=(pl.col("bin") + 1) * pl.col("bin_width")
        )
    )


def heat_intervals(heat: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, float]]:
    """Return the busy intervals of each layer, and how wide its bins are."""
    filled = heat_bins(heat)
    widths = filled.unique("layer", keep="first", maintain_order=True).sort("layer")
    return united_layers(filled), dict(widths.select("layer", "bin_width").iter_rows())


def heat_shares(heat: pl.DataFrame, borders: Mapping[str, tuple[Floats, Floats]]) -> pl.DataFrame:
    """Return what each rank moved in each phase; its time is that of its busy bins.

    How many calls that took is not known.
    """
    filled = heat_bins(heat)
    tables = [_SHARES.to_frame()]
    for layer, (starts, ends) in borders.items():
        rows = filled.filter(layer=layer)
        middle = (rows["start"].to_numpy() + rows["end"].to_numpy()) / 2
        phase = np.searchsorted(starts, middle, side="right") - 1
        inside = (phase >= 0) & (np.searchsorted(ends, middle) <= phase)
        tables.append(
            rows.with_columns(phase=pl.Series(phase, dtype=pl.Int64))
            .filter(pl.Series(inside))
            .group_by("layer", "phase", "rank")
            .agg(
                pl.lit(None, pl.Int64).alias("operations"),
                pl.col("bin_width").sum().alias("seconds"),
                pl.col("read", "write").sum(),
            )
            .select(_SHARES.names())
        )
    return pl.concat(tables)


def window_of(starts: Floats) -> pl.Expr:
    """The last window that begins at or before a call's start."""
    return _place(starts, side="right") - 1


@dataclass(frozen=True, slots=True)
class CallsPerWindow(SummedView):
    """The number of calls in each window."""

    sums: ClassVar = ("calls",)
    starts: Floats  # when windows begin, in order

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        return events.select(window=window_of(self.starts)).group_by("window").agg(
            pl.len().cast(pl.Int64).alias("calls")
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallsInWindows(KeptView):
    """The calls of the chosen windows, as they are."""

    starts: Floats
    chosen: tuple[int, ...]
    columns: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the events inside the windows."""
        inside = window_of(self.starts).is_in(list(self.chosen))
        return events.filter(inside).select(self.columns)


@dataclass(frozen=True, slots=True)
class FirstCalls:
    """The calls as they are, but no more than `most` and one: so many are not all."""

    most: int
    columns: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the first of some events."""
        return self.combine(events.select(self.columns))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the first of kept events."""
        return partials.head(self.most + 1)


def write_intervals(trace: Trace, *, gap: float) -> pl.DataFrame:
    """Merge writes to files that one rank alone writes into intervals of busy writing.

    Args:
        trace: a per-call trace.
        gap: seconds without any write that end an interval.

    Returns:
        start, end, ranks, hosts (null where unknown) and bytes of each interval.
    """
    calls = _writes(trace).filter(pl.col("rank").n_unique().over("file") == 1)
    hosts = trace.processes.select("process", "host")
    return (
        calls.join(hosts, on="process", how="left")
        .sort("start")
        .with_columns(busy_until=pl.col("end").cum_max().shift(1))
        .with_columns(
            number=(pl.col("start") > pl.col("busy_until") + gap).fill_null(False).cum_sum()
        )
        .group_by("number", maintain_order=True)
        .agg(
            pl.col("start").min(),
            pl.col("end").max(),
            pl.col("rank").n_unique().alias("ranks"),
            pl.col("host").drop_nulls().n_unique().alias("hosts"),
            pl.col("bytes").sum(),
        )
        .with_columns(hosts=pl.when(pl.col("hosts") > 0).then("hosts"))
        .drop("number")
    )


def _writes(trace: Trace) -> pl.DataFrame:
    """Collect the writes of the deepest interface, piece by piece."""
    columns = ("start", "end", "rank", "process", "file", "layer", "bytes")
    wanted = (pl.col("operation") == "write") & (pl.col("bytes") > 0)
    pieces = [batch.filter(wanted).select(columns).collect() for batch in trace.batches()]
    calls = pl.concat(pieces) if pieces else pl.DataFrame(schema=dict.fromkeys(columns, pl.Null))
    present = calls["layer"].cast(pl.String).unique().to_list()
    return calls.filter(pl.col("layer").cast(pl.String).is_in(deepest(present)))


EXACT_CALLS = 4_000_000
BINS = 2**20


@dataclass(frozen=True, slots=True)
class Selection:
    """Which requests count."""

    layers: tuple[tuple[str, tuple[str, ...] | None], ...]  # operation -> layers; None: all

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the requests that move bytes in these directions through these layers."""
        wanted = [
            (pl.col("operation") == operation)
            & (pl.lit(True) if layers is None else pl.col("layer").is_in(layers))
            for operation, layers in self.layers
        ]
        return events.filter((pl.col("bytes") > 0) & pl.any_horizontal(wanted))


DATA = Selection((("read", None), ("write", None)))


@dataclass(frozen=True, slots=True)
class Extent:
    """When requests run, how many there are and what they move, by layer and operation."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events."""
        return (
            DATA.of(events)
            .group_by("layer", "operation")
            .agg(
                pl.col("start").min(),
                pl.col("end").max(),
                pl.len().cast(pl.Int64).alias("calls"),
                pl.col("bytes").cast(pl.Float64).sum(),
            )
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join summaries."""
        return partials.group_by("layer", "operation").agg(
            pl.col("start").min(), pl.col("end").max(), pl.col("calls", "bytes").sum()
        )


@dataclass(frozen=True, slots=True)
class Changes(SummedView):
    """By how much the bandwidth changes at which moment, for each key."""

    sums: ClassVar = ("change", "calls")
    selection: Selection
    by: tuple[str, ...] = ()

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """List the changes that some of the events make."""
        calls = self.selection.of(events).select(
            *self.by,
            "start",
            end=pl.max_horizontal("end", pl.col("start") + SHORTEST),
            bytes=pl.col("bytes").cast(pl.Float64),
        )
        rate = pl.col("bytes") / (pl.col("end") - pl.col("start"))
        begins = calls.select(*self.by, time="start", change=rate, calls=pl.lit(1))
        ends = calls.select(*self.by, time="end", change=-rate, calls=pl.lit(-1))
        return self.combine(pl.concat([begins, ends]))


@dataclass(frozen=True, slots=True)
class BinnedChanges(SummedView):
    """The same in equal bins: what a bin gets itself, and the change it hands on.

    A request that starts inside bin k at rate r adds ``r * (end of bin - start)`` to that bin
    and ``r * width`` to each later one, until its own end takes both away.
    """

    sums: ClassVar = ("area", "change", "calls")
    selection: Selection
    start: float
    width: float
    bins: int
    by: tuple[str, ...] = ()

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Spread some of the events over the bins."""
        calls = self.selection.of(events).select(
            *self.by,
            first=self._bin(pl.col("start")),
            last=self._bin(pl.col("end")),
            start="start",
            end="end",
            bytes=pl.col("bytes").cast(pl.Float64),
        )
        inside = calls.filter(pl.col("first") == pl.col("last")).select(
            *self.by, bin="first", area="bytes", change=pl.lit(0.0), calls=pl.lit(0)
        )
        across = calls.filter(pl.col("first") < pl.col("last")).with_columns(
            rate=pl.col("bytes") / (pl.col("end") - pl.col("start"))
        )
        rate = pl.col("rate")
        begins = across.select(
            *self.by,
            bin="first",
            area=rate * (self._edge("first") - pl.col("start")),
            change=rate,
            calls=pl.lit(1),
        )
        ends = across.select(
            *self.by,
            bin="last",
            area=-rate * (self._edge("last") - pl.col("end")),
            change=-rate,
            calls=pl.lit(-1),
        )
        return self.combine(pl.concat([inside, begins, ends]))

    def _bin(self, moment: pl.Expr) -> pl.Expr:
        number = ((moment - self.start) / self.width).floor()
        return number.clip(0, self.bins - 1).cast(pl.Int64)

    def _edge(self, column: str) -> pl.Expr:
        return self.start + (pl.col(column) + 1) * self.width

    def steps(self, table: pl.DataFrame) -> StepFunction:
        """Return the bandwidth in each bin."""
        number = table["bin"].to_numpy()
        area, change, calls = (
            np.bincount(number, table[name].to_numpy(), self.bins).astype(np.float64)
            for name in ("area", "change", "calls")
        )
        added = running(change, np.rint(calls).astype(np.int64))
        before = np.concatenate((np.zeros(1), added[:-1]))
        edges = self.start + self.width * np.arange(self.bins + 1, dtype=np.float64)
        return StepFunction(edges, np.maximum(area / self.width + before, 0.0))


def call_bandwidths(
    trace: Trace, engine: Engine, *, direction: str, layer: str | None, key: str | None
) -> Mapping[object, StepFunction]:
    """Return the bandwidth of each value of a key, or of None for all; empty without requests."""
    column, table = _key_column(trace, key)
    view = bandwidth_view(
        trace, engine, direction=direction, layer=layer, by=(column,) if column else ()
    )
    if view is None:
        return {}
    (changes,) = engine.run(trace, view)
    return _split(changes, view, column, table, key)


def bandwidth_view(
    trace: Trace,
    engine: Engine,
    *,
    direction: str,
    layer: str | None = None,
    by: tuple[str, ...] = (),
) -> Changes | BinnedChanges | None:
    """Return the view that shows the bandwidth of a direction; None without requests."""
    directions = DIRECTIONS if direction == "both" else (direction,)
    asked = None if layer is None else (layer,)
    selection = Selection(tuple((d, asked) for d in directions))
    (whole,) = engine.run(trace, Extent())
    extent = selection.of(whole.lazy()).collect()
    if not extent.height:
        return None
    if asked is None:
        moved = {
            d: dict(extent.filter(operation=d).select("layer", "bytes").iter_rows())
            for d in directions
        }
        selection = Selection(tuple((d, counted_layers(moved[d], d)) for d in directions))
        extent = selection.of(extent.lazy()).collect()
    if extent["calls"].sum() <= EXACT_CALLS:
        return Changes(selection, by)
    start, end = float(extent["start"].to_numpy().min()), float(extent["end"].to_numpy().max())
    return BinnedChanges(selection, start, max(end - start, SHORTEST) / BINS, BINS, by)


def _key_column(trace: Trace, key: str | None) -> tuple[str | None, pl.DataFrame | None]:
    """The event column behind a key, and the table that leads from one to the other."""
    if key is None or key not in DERIVED_KEYS:
        return key, None
    column, name = DERIVED_KEYS[key]
    tables = {"file": trace.files, "process": trace.processes}
    return column, tables[column].select(column, pl.col(name).alias(key))


def _split(
    changes: pl.DataFrame,
    view: Changes | BinnedChanges,
    column: str | None,
    table: pl.DataFrame | None,
    key: str | None,
) -> Mapping[object, StepFunction]:
    if column is None or key is None:
        return {None: _steps(changes, view)}
    if table is not None:
        joined = changes.join(table, on=column, how="left", nulls_equal=True)
        changes = view.combine(joined.drop(column).lazy()).collect()
    parts = changes.partition_by(key, as_dict=True, include_key=False)
    return {name: _steps(part, view) for (name,), part in parts.items()}


def _steps(changes: pl.DataFrame, view: Changes | BinnedChanges) -> StepFunction:
    if isinstance(view, BinnedChanges):
        return view.steps(changes)
    ordered = changes.sort("time")
    values = running(ordered["change"].to_numpy(), ordered["calls"].to_numpy())[:-1]
    return StepFunction(ordered["time"].to_numpy(), np.maximum(values, 0.0))
