"""What a record is called: codes of a view back to paths, processes and times."""

from __future__ import annotations

import polars as pl

from ioprism.views.perspectives.codes import Perspective


def record_names(
    perspective: Perspective,
    codes: pl.Series,
    *,
    files: pl.DataFrame,
    processes: pl.DataFrame,
    bucket: float,
    origin: float = 0.0,
) -> pl.Series:
    """Return the names of these codes: text, or seconds for times. Null: the trace does not say."""
    values = perspective.values.gather(codes.cast(pl.UInt32)).alias(perspective.name)
    if perspective.name in ("time", "phase"):
        return values * bucket + origin
    if perspective.name == "file":
        return _looked_up(values, files.select("file", "path"))
    if perspective.name == "process":
        return _looked_up(values, processes.select("process", _process_name(processes)))
    return values


def _looked_up(values: pl.Series, table: pl.DataFrame) -> pl.Series:
    key, name = table.columns
    rows = pl.DataFrame({key: values.cast(pl.UInt32)})
    return rows.join(table, on=key, how="left", maintain_order="left")[name].alias(values.name)


def _process_name(processes: pl.DataFrame) -> pl.Expr:
    """`rank 3 on node7`, and the thread where ranks alone do not tell processes apart."""
    name = pl.format("rank {}", "rank")
    if processes["rank"].n_unique() < processes.height:
        name = pl.concat_str(name, pl.format(" thread {}", "tid").fill_null(""))
    named = pl.concat_str(name, pl.format(" on {}", "host").fill_null(""))
    if processes["application"].n_unique() > 1:
        named = pl.concat_str(named, pl.format(" ({})", "application").fill_null(""))
    return named.alias("name")
