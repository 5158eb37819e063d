"""When calls run: busy intervals, windows of time, and the intervals of writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from ioprism.model.arrays import Floats, unite
from ioprism.model.layers import deepest
from ioprism.model.schema import Layer
from ioprism.model.trace import Trace

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
class PhaseShares:
    """What each rank did in each phase of each layer; a call belongs where it starts."""

    borders: Mapping[str, tuple[Floats, Floats]]  # layer -> when its phases start, and end

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events by phase and rank."""
        return pl.concat(self._by_layer(events)) if self.borders else self._layer(events, "other")

    def _by_layer(self, events: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
        for layer in self.borders:
            yield self._layer(events, layer)

    def _layer(self, events: pl.LazyFrame, layer: str) -> pl.LazyFrame:
        starts, ends = self.borders.get(layer, (np.empty(0), np.empty(0)))
        phase = _place(starts, side="right") - 1
        # What starts behind the end of its phase goes on between phases and belongs to none.
        inside = (phase >= 0) & (_place(ends, side="left") <= phase)
        seconds = pl.col("end") - pl.col("start")
        chosen = events.filter((pl.col("layer") == layer) & inside).select(
            "layer", "rank", "operation", "bytes", phase=phase, seconds=seconds
        )
        moved = {
            d: pl.col("bytes").filter(pl.col("operation") == d).sum().alias(d)
            for d in ("read", "write")
        }
        return chosen.group_by("layer", "phase", "rank").agg(
            pl.len().cast(pl.Int64).alias("operations"), pl.col("seconds").sum(), *moved.values()
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the sums of the same phase and rank."""
        return partials.group_by("layer", "phase", "rank").agg(
            pl.col("operations", "seconds", "read", "write").sum()
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


def _bins(heat: pl.DataFrame) -> pl.DataFrame:
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
    filled = _bins(heat)
    widths = filled.unique("layer", keep="first", maintain_order=True).sort("layer")
    return united_layers(filled), dict(widths.select("layer", "bin_width").iter_rows())


def heat_shares(heat: pl.DataFrame, borders: Mapping[str, tuple[Floats, Floats]]) -> pl.DataFrame:
    """Return what each rank moved in each phase; its time is that of its busy bins."""
    filled = _bins(heat)
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
                pl.len().cast(pl.Int64).alias("operations"),
                pl.col("bin_width").sum().alias("seconds"),
                pl.col("read", "write").sum(),
            )
            .select(_SHARES.names())
        )
    return pl.concat(tables)


def window_of(starts: Floats) -> pl.Expr:
    """The last window that begins at or before a call's start."""
    borders = pl.lit(pl.Series(starts, dtype=pl.Float64))
    return borders.search_sorted(pl.col("start"), side="right").cast(pl.Int64) - 1


@dataclass(frozen=True, slots=True)
class CallsPerWindow:
    """The number of calls in each window."""

    starts: Floats  # when windows begin, in order

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        return events.select(window=window_of(self.starts)).group_by("window").agg(
            pl.len().cast(pl.Int64).alias("calls")
        )  # fmt: skip

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the counts of the same window."""
        return partials.group_by("window").agg(pl.col("calls").sum())


@dataclass(frozen=True, slots=True)
class CallsInWindows:
    """The calls of the chosen windows, as they are."""

    starts: Floats
    chosen: tuple[int, ...]
    columns: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the events inside the windows."""
        inside = window_of(self.starts).is_in(list(self.chosen))
        return events.filter(inside).select(self.columns)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join kept events."""
        return partials


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
    calls = _own_files(_writes(trace))
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


def _own_files(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.filter(pl.col("rank").n_unique().over("file") == 1)
