"""When and by how much single requests change the bandwidth: exact, or in equal bins.

A request moves its bytes evenly from its start to its end. Up to `EXACT_CALLS` requests the
step function is exact, with an edge wherever a request starts or ends. Beyond that it is the
exact integral over `BINS` equal bins, so that memory does not grow with the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.engine.base import Engine, View
from ioprism.model.layers import counted_layers
from ioprism.model.signal import StepFunction
from ioprism.model.trace import Trace
from ioprism.views.time.bandwidth import DERIVED_KEYS, DIRECTIONS, SHORTEST, running

EXACT_CALLS = 4_000_000
BINS = 2**20


@dataclass(frozen=True, slots=True)
class Selection:
    """Which requests count."""

    layers: tuple[tuple[str, tuple[str, ...] | None], ...]  # operation -> layers; None: all

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the requests that move bytes in these directions through these layers."""
        wanted = [self._of(operation, layers) for operation, layers in self.layers]
        return events.filter((pl.col("bytes") > 0) & pl.any_horizontal(wanted))

    @staticmethod
    def _of(operation: str, layers: tuple[str, ...] | None) -> pl.Expr:
        fits = pl.col("operation") == operation
        return fits if layers is None else fits & pl.col("layer").is_in(layers)


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
class Changes:
    """By how much the bandwidth changes at which moment, for each key."""

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

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add changes of the same moment."""
        return partials.group_by(*self.by, "time").agg(pl.col("change", "calls").sum())


@dataclass(frozen=True, slots=True)
class BinnedChanges:
    """The same in equal bins: what a bin gets itself, and the change it hands on.

    A request that starts inside bin k at rate r adds ``r * (end of bin - start)`` to that bin
    and ``r * width`` to each later one, until its own end takes both away.
    """

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

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add what falls into the same bin."""
        return partials.group_by(*self.by, "bin").agg(pl.col("area", "change", "calls").sum())

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
    (whole,) = engine.run(trace, Extent())
    extent = Selection(tuple((d, asked) for d in directions)).of(whole.lazy()).collect()
    if not extent.height:
        return None
    if asked is None:
        selection = Selection(tuple((d, _layers_that_count(extent, d)) for d in directions))
        extent = selection.of(extent.lazy()).collect()
    else:
        selection = Selection(tuple((d, asked) for d in directions))
    if extent["calls"].sum() <= EXACT_CALLS:
        return Changes(selection, by)
    start, end = float(extent["start"].to_numpy().min()), float(extent["end"].to_numpy().max())
    return BinnedChanges(selection, start, max(end - start, SHORTEST) / BINS, BINS, by)


def _layers_that_count(extent: pl.DataFrame, direction: str) -> tuple[str, ...]:
    rows = extent.filter(operation=direction).select("layer", "bytes").iter_rows()
    return counted_layers(dict(rows), direction)


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
        combined: View = type(view)(
            **{n: getattr(view, n) for n in view.__slots__ if n != "by"}, by=(key,)
        )
        changes = combined.combine(joined.drop(column).lazy()).collect()
    parts = changes.partition_by(key, as_dict=True, include_key=False)
    return {name: _steps(part, view) for (name,), part in parts.items()}


def _steps(changes: pl.DataFrame, view: Changes | BinnedChanges) -> StepFunction:
    if isinstance(view, BinnedChanges):
        return view.steps(changes)
    ordered = changes.sort("time")
    values = running(ordered["change"].to_numpy(), ordered["calls"].to_numpy())[:-1]
    return StepFunction(ordered["time"].to_numpy(), np.maximum(values, 0.0))
