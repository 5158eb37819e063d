"""When processes write files of their own at the same time: intervals of busy writing."""

from __future__ import annotations

import polars as pl

from ioprism.model.layers import deepest
from ioprism.model.trace import Trace


def write_intervals(trace: Trace, *, gap: float) -> pl.DataFrame:
    """Merge writes to files that one rank alone writes into intervals of busy writing.

    Args:
        trace: a trace with single calls.
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
