"""Which rows of the main view are I/O, and counted once.

Darshan's counters stand in for what its events do not show. They know neither when nor by which
call: `time` and `function` are null, and so is the process where Darshan reduced a shared file to
one record. The size bin is that of the mean request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from ioprism.bottleneck_search.result import Settings
from ioprism.engine.base import Engine
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.model.arrays import believable_metadata
from ioprism.model.schema import OPERATIONS, Layer, Operation, without_data
from ioprism.model.trace import LAYERS, Trace
from ioprism.views.call_class import SLOTS, call_class
from ioprism.views.counters import counter_totals, slowest_ranks
from ioprism.views.main_view import empty_main_view, nanoseconds
from ioprism.views.records import PER_SECOND, Rows, whole_number
from ioprism.views.totals import at_deepest, deepest_layers


def counted_rows(trace: Trace, *, event_layers: Collection[str]) -> pl.DataFrame:
    """Return rows for layers without events, and for metadata calls of those with events.

    Args:
        trace: its counters are read.
        event_layers: the layers whose reads and writes are known from events.
    """
    empty = empty_main_view()
    totals = counter_totals(trace)
    if totals.is_empty():
        return empty
    moves = pl.col("operation").cast(pl.String).is_in(["read", "write"])
    known = pl.col("layer").cast(pl.String).is_in(list(event_layers))
    counted = totals.filter(~(moves & known)).join(first_processes(trace), on="rank", how="left")
    mean = pl.when(moves).then(pl.col("bytes").fill_null(0) // pl.max_horizontal("operations", 1))
    rows = counted.select(
        "process",
        "file",
        pl.lit(None, dtype=pl.Int64).alias("time"),
        pl.struct("layer", "operation", mean.alias("bytes")).alias("call"),
        pl.lit(None, dtype=pl.Categorical()).alias("function"),
        pl.col("operations").cast(pl.Float64).alias("count"),
        pl.col("bytes").fill_null(0),
        nanoseconds(pl.col("seconds").fill_null(0.0)).alias("nanoseconds"),
        pl.lit(None, dtype=pl.Float64).alias("slowest"),
        pl.lit(None, dtype=pl.Int64).alias("reach"),
    )
    classes = rows["call"].struct.unnest().select(call_class(pl.lit(0)).alias("class"))
    return rows.drop("call").hstack(classes).select(empty.columns).cast(empty.schema)


def first_processes(trace: Trace) -> pl.DataFrame:
    """The first process of every rank."""
    return trace.processes.sort("process").unique("rank", keep="first").select("rank", "process")


TIMED = ("time", "phase", "function")  # views that need a per-call trace


def _layer() -> pl.Expr:
    return pl.col("class") // (SLOTS * len(OPERATIONS))


def _operation() -> pl.Expr:
    return pl.col("class") // SLOTS % len(OPERATIONS)


@dataclass(frozen=True, slots=True, eq=False)
class IoRows:
    """The rows that count, and how many calls were left out because they are not I/O."""

    rows: Rows
    calls_without_io: int


def main_view(trace: Trace, settings: Settings, engine: Engine) -> pl.DataFrame:
    """Compute the main view of all events, and of counters for what events do not show."""
    (events,) = engine.run(trace, settings.main_view)
    if settings.compatible:
        return events
    codes = events.select(_layer()).to_series().unique().to_list()
    counted = counted_rows(trace, event_layers=[LAYERS[code] for code in codes])
    believed = _with_syncs(_drop_impossible_times(counted, trace.job.runtime), events, trace)
    return pl.concat([events, believed]) if counted.height else events


def _drop_impossible_times(counted: pl.DataFrame, runtime: float | None) -> pl.DataFrame:
    """Drop metadata times that cannot be, as a diagnosis does: opens that wait for a pipe."""
    metadata = _operation() > OPERATIONS.index("write")
    own = counted.filter(metadata).select(
        rank=pl.col("process").cast(pl.Int64).fill_null(-1),  # one record for all ranks
        seconds=pl.col("nanoseconds") / PER_SECOND,
    )
    if believable_metadata(own["rank"].to_list(), own["seconds"].to_list(), runtime):
        return counted
    nothing = pl.when(metadata).then(0).otherwise(pl.col("nanoseconds"))
    return counted.with_columns(nothing.cast(counted.schema["nanoseconds"]).alias("nanoseconds"))


def _with_syncs(counted: pl.DataFrame, events: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give syncs their time: Darshan adds it to that of writes, which extended tracing leaves out.

    Only of processes whose calls are traced: else the difference may be calls that are missing.
    """
    syncs = (_operation() == OPERATIONS.index("sync")) & (_layer() == LAYERS.index("posix"))
    writes = (_operation() == OPERATIONS.index("write")) & (_layer() == LAYERS.index("posix"))
    traced = (
        events.filter(writes)
        .group_by("process", "file")
        .agg(pl.col("nanoseconds").sum().alias("traced"), pl.col("count").sum().alias("made"))
    )
    if not traced.height or not counted.filter(syncs).height:
        return counted
    totals = counter_totals(trace).filter(
        pl.col("layer").cast(pl.String) == "posix", pl.col("operation").cast(pl.String) == "write"
    )
    whole = totals.join(first_processes(trace), on="rank").join(traced, on=["process", "file"])
    complete = whole.filter(pl.col("made") >= pl.col("operations"))
    beyond = (pl.col("seconds") * PER_SECOND - pl.col("traced")).clip(lower_bound=0)
    waited = complete.select("process", "file", waited=whole_number(beyond))
    told = counted.join(waited, on=["process", "file"], how="left", maintain_order="left")
    time = pl.when(syncs).then(pl.col("waited").fill_null(0)).otherwise(pl.col("nanoseconds"))
    return told.with_columns(time.cast(counted.schema["nanoseconds"]).alias("nanoseconds")).drop(
        "waited"
    )


def io_rows(main: pl.DataFrame, trace: Trace, settings: Settings) -> IoRows:
    """Select the rows that are I/O of the wanted interfaces, each byte counted once.

    Raises:
        NotEnoughDetailError: only views that need single calls are asked for, and there are none.
        UsageError: no interface has the name asked for.
    """
    other = OPERATIONS.index("other")
    if settings.compatible:
        wanted = main.filter(pl.col("file").is_not_null())
        without_io = 0.0
    else:
        wanted = main.filter(_operation() != other)
        without_io = float(main["count"].sum()) - float(wanted["count"].sum())
    chosen = _of_layer(wanted, trace, settings.layer)
    rows = Rows(
        chosen,
        trace.files,
        trace.processes,
        _possible_views(wanted, trace, settings.views),
        _slowest_parts(chosen, trace),
    )
    return IoRows(rows, round(without_io))


def _slowest_parts(main: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """The slowest process of each file that has one record for all ranks, and its part of it."""
    of_all = main.filter(pl.col("process").is_null()).with_columns(
        layer=pl.lit(pl.Series(LAYERS, dtype=Layer)).gather(_layer())
    )
    whole = of_all.group_by("file", "layer").agg(pl.col("nanoseconds").sum() / PER_SECOND)
    slowest = slowest_ranks(trace).join(whole, on=["file", "layer"])
    known = slowest.filter(pl.col("nanoseconds") > 0).join(first_processes(trace), on="rank")
    part = (pl.col("seconds") / pl.col("nanoseconds")).clip(1 / max(1, trace.job.ranks or 1), 1.0)
    return (
        known.sort("nanoseconds").select("file", "process", part=part).unique("file", keep="last")
    )


def on_storage(rows: Rows) -> Rows:
    """Leave out the console and what the kernel makes up: storage has no part in them."""
    elsewhere = pl.col("file").is_in(without_data(rows.files).implode())
    main = rows.main.filter(~elsewhere.fill_null(value=False))
    return rows if main.height == rows.main.height else replace(rows, main=main)


def _of_layer(main: pl.DataFrame, trace: Trace, layer: str) -> pl.DataFrame:
    if layer == "all":
        return main
    if layer != "deepest":
        if layer not in LAYERS:
            raise UsageError(
                f"unknown layer {layer!r}.\nHint: layers are deepest, all, {', '.join(LAYERS)}."
            )
        return main.filter(_layer() == LAYERS.index(layer))
    if main.select(_layer()).to_series().n_unique() <= 1:
        return main
    named = main.with_columns(
        layer=pl.lit(pl.Series(LAYERS, dtype=Layer)).gather(_layer()),
        operation=pl.lit(pl.Series(OPERATIONS, dtype=Operation)).gather(_operation()),
    )
    totals = named.group_by("file", "layer", "operation").agg(
        pl.col("count").sum().alias("operations"), pl.col("bytes").sum()
    )
    return at_deepest(named, deepest_layers(totals, trace)).select(main.columns)


def _possible_views(main: pl.DataFrame, trace: Trace, views: tuple[str, ...]) -> tuple[str, ...]:
    if main.height == 0 or main["time"].null_count() < main.height:
        return views
    possible = tuple(view for view in views if view not in TIMED)
    if not possible:
        raise NotEnoughDetailError(
            needed="a per-call trace",
            has="counters only",
            hint="use --views process,file, or record with DXT enabled next time.",
        )
    if possible != views:
        left_out = ", ".join(view for view in views if view in TIMED)
        trace.completeness.warn(
            f"the trace has counters only: the view {left_out} needs a per-call trace; left out"
        )
    return possible
