"""Which files and which ranks a job's I/O goes to."""

from __future__ import annotations

import polars as pl

from ioprism.engine.base import Engine
from ioprism.model.trace import Trace
from ioprism.views.calls.totals import Totals
from ioprism.views.counters.totals import counter_totals

# What a program says of its own steps is no call: the I/O inside it is counted below.
_CALLS = pl.col("layer") != "application"
_OPERATION = pl.col("operation").cast(pl.String)
_READ, _WRITE = _OPERATION == "read", _OPERATION == "write"
_SUMS = (
    pl.col("operations").filter(_READ).sum().alias("reads"),
    pl.col("operations").filter(_WRITE).sum().alias("writes"),
    pl.col("operations").filter(~(_READ | _WRITE)).sum().alias("metadata"),
    pl.col("bytes").filter(_READ).sum().alias("bytes_read"),
    pl.col("bytes").filter(_WRITE).sum().alias("bytes_written"),
    pl.col("seconds").sum(),
)


def by_file(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return calls, bytes and seconds of every file and layer, those that take longest first."""
    totals = counter_totals(trace).drop("rank")
    if trace.partitions:
        (calls,) = engine.run(trace, Totals(("file", "layer", "operation")))
        counted = totals["layer"].unique()
        extra = calls.filter(~pl.col("layer").is_in(counted.implode()))
        totals = pl.concat([totals, extra], how="diagonal_relaxed")
    amounts = _amounts(totals.filter(_CALLS), "file", "layer")
    names = trace.files.select("file", "path")
    return amounts.join(names, on="file", how="left", maintain_order="left")


def by_rank(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return calls, bytes and seconds of every rank and layer, in order of ranks."""
    if trace.partitions:
        (totals,) = engine.run(trace, Totals(("rank", "layer", "operation")))
    else:
        totals = counter_totals(trace).filter(pl.col("rank") >= 0)
    return _amounts(totals.filter(_CALLS), "rank", "layer").sort("rank", "layer", nulls_last=True)


def _amounts(totals: pl.DataFrame, *keys: str) -> pl.DataFrame:
    sums = totals.group_by(keys).agg(_SUMS)
    return sums.sort("seconds", *keys, descending=[True, *(False for _ in keys)], nulls_last=True)
