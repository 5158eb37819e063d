"""Characteristics by rank, file, host and storage target."""

from __future__ import annotations

import polars as pl

from ioprism.engine.base import Engine
from ioprism.model.layers import deepest
from ioprism.model.trace import Trace
from ioprism.views.calls.totals import TargetLoad, Totals
from ioprism.views.counters.totals import counter_totals

# Steps that a program names itself are not calls: the I/O inside them is counted by its layer.
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


_AMOUNTS = ("operations", "bytes", "seconds")
_RATES = {"operations": pl.Int64, "bytes_read": pl.Int64, "bytes_written": pl.Int64,
          "seconds": pl.Float64, "rate": pl.Float64}  # fmt: skip
_NO_TARGETS = pl.DataFrame(schema={"target": pl.Int64, **_RATES})
_NO_HOSTS = pl.DataFrame(schema={"host": pl.String, **_RATES})
_DATA = pl.col("operation").cast(pl.String).is_in(["read", "write"])


def by_target(trace: Trace, engine: Engine, *, files: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row per storage target that holds files; none where no layout is known.

    Traced calls count on the targets that hold their bytes. From counters, a file's calls are
    shared evenly among the targets that its bytes reach. `files` is the part of the trace's file
    table to look at, such as one file system; by default all of it.
    """
    striping = (
        (trace.files if files is None else files)
        .filter((pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0))
        .select("file", "stripe_size", "targets")
    )
    if not striping.height:
        return _NO_TARGETS
    if trace.partitions:
        (moved,) = engine.run(trace, TargetLoad(striping))
        loads = _at_deepest(moved)
    else:
        loads = _from_counters(trace, striping)
    known = striping.select(target="targets").explode("target").unique()
    return _rates(loads, "target", of=known)


def by_host(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return one row per node; none where the trace does not name the nodes of ranks."""
    hosts = trace.processes.drop_nulls("host").unique("rank", keep="first").select("rank", "host")
    if hosts["host"].n_unique() < 2:
        return _NO_HOSTS
    if trace.partitions:
        (moved,) = engine.run(trace, Totals(("rank", "layer", "operation")))
    else:
        moved = counter_totals(trace).filter(pl.col("rank") >= 0)
    loads = _at_deepest(moved.filter(_DATA)).join(hosts, on="rank")
    return _rates(loads, "host", of=hosts.select("host").unique())


def _at_deepest(moved: pl.DataFrame) -> pl.DataFrame:
    present = moved.filter(_DATA)["layer"].cast(pl.String).unique().to_list()
    return moved.filter(pl.col("layer").cast(pl.String).is_in(deepest(present)))


def _from_counters(trace: Trace, striping: pl.DataFrame) -> pl.DataFrame:
    moved = _at_deepest(counter_totals(trace).filter(_DATA))
    reached = (pl.col("bytes") + pl.col("stripe_size") - 1) // pl.col("stripe_size")
    parts = pl.min_horizontal(reached.clip(1), pl.col("targets").list.len().cast(pl.Int64))
    return (
        moved.group_by("file", "operation", maintain_order=True)
        .agg(pl.col(*_AMOUNTS).sum())
        .join(striping, on="file", maintain_order="left")
        .with_columns(parts=parts, target=pl.col("targets").list.head(parts))
        .with_columns(
            (pl.col("operations", "bytes") / pl.col("parts")).round().cast(pl.Int64),
            pl.col("seconds") / pl.col("parts"),
        )
        .explode("target")
    )


def _rates(loads: pl.DataFrame, key: str, *, of: pl.DataFrame) -> pl.DataFrame:
    """Sum by key; those of `of` without a call are there too."""
    operation = pl.col("operation").cast(pl.String)
    sums = loads.group_by(key, maintain_order=True).agg(
        pl.col("operations").sum(),
        pl.col("bytes").filter(operation == "read").sum().alias("bytes_read"),
        pl.col("bytes").filter(operation == "write").sum().alias("bytes_written"),
        pl.col("seconds").sum(),
    )
    every = of.join(sums, on=key, how="left").with_columns(pl.exclude(key).fill_null(0))
    moved = pl.col("bytes_read") + pl.col("bytes_written")
    rate = pl.when(pl.col("seconds") > 0).then(moved / pl.col("seconds"))
    return every.with_columns(rate=rate).sort(key)
