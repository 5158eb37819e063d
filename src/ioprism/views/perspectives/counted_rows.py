"""Darshan's counters as rows of the main view, for what its events do not show.

Counters know neither when nor by which call: `time` and `function` are null, and so is the
process where Darshan reduced a shared file to one record. The size bin is that of the mean
request.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from ioprism.model.trace import Trace
from ioprism.views.calls.call_class import call_class
from ioprism.views.counters.totals import counter_totals
from ioprism.views.perspectives.main_view import empty_main_view, nanoseconds


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
