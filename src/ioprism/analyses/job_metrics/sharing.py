"""Which jobs used a server at the same time as another job: their counters are mixed."""

from __future__ import annotations

import polars as pl


def shared(jobs: pl.DataFrame) -> pl.Series:
    """Return for each job whether any of its servers served another job meanwhile."""
    uses = (
        jobs.with_row_index("row")
        .select("row", "start_us", "end_us", server="servers")
        .explode("server")
        .drop_nulls("server")
        .sort("server", "start_us", "end_us", "row")
    )
    earlier_end = pl.col("end_us").cum_max().shift(1).over("server")
    next_start = pl.col("start_us").shift(-1).over("server")
    overlaps = (pl.col("start_us") < earlier_end) | (next_start < pl.col("end_us"))
    mixed = uses.filter(overlaps.fill_null(value=False))["row"].unique()
    return pl.Series("shared", range(jobs.height), dtype=pl.UInt32).is_in(mixed.implode())
