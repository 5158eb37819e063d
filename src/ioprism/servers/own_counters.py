"""The counters that a Lustre server keeps for each job, laid out on one line per server."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ioprism.model.counters import SERIES_KEY, VALUES
from ioprism.servers.activity import Placed
from ioprism.servers.series import SPACING, Series, combined, running_sums
from ioprism.servers.settings import MetricSettings


@dataclass(frozen=True, slots=True)
class OwnCounters:
    """One server's per-job counters, and which jobs have them."""

    series: Series
    placed: Placed


def identifier(column: str = "job") -> pl.Expr:
    """Return the scheduler's part of a job identifier such as `<job>:<user>:<node>`."""
    return pl.col(column).str.split(":").list.first().alias("id")


def own_counters(
    samples: pl.DataFrame, jobs: pl.DataFrame, settings: MetricSettings
) -> OwnCounters | None:
    """Lay the samples of each job on a stretch of its own; None if no job has any.

    Args:
        samples: a server's samples; those without a job are passed over.
        jobs: the jobs, with `row` (their number), `job`, `start_us` and `end_us`.
        settings: how to treat resets.
    """
    rows = of_runs(samples, jobs, settings)
    if not rows.height:
        return None
    rows = pl.concat([rows, _standstills(rows, settings)])
    first, last = jobs["start_us"].to_numpy().min(), jobs["end_us"].to_numpy().max()
    origin, width = int(first) - SPACING, int(last - first) + 2 * SPACING
    placed = rows["stretch"].unique().sort().to_numpy().astype(np.intp)
    number = {row: place for place, row in enumerate(placed.tolist())}
    place = pl.col("stretch").replace_strict(number, return_dtype=pl.Int64)
    laid = rows.with_columns(
        time_us=(pl.col("time_us") - origin).clip(0, width - 1) + place * width,
        part=pl.col("raw"),
    )
    series = combined(laid.sort("stretch", "part", "time_us"), settings, gaps_matter=False)
    shifts = np.arange(len(placed), dtype=np.int64) * width - origin
    return OwnCounters(series, Placed(placed, shifts))


def of_runs(samples: pl.DataFrame, jobs: pl.DataFrame, settings: MetricSettings) -> pl.DataFrame:
    """Give each sample to the latest run of its job that had begun by then."""
    own = samples.filter(pl.col("job").is_not_null() & (pl.col("job") != ""))
    runs = jobs.select(
        "start_us", "end_us", id="job", stretch=pl.col("row").cast(pl.Int64),
        time_us=pl.col("start_us") - settings.interval_us,
    ).sort("time_us")  # fmt: skip
    whole = own.with_columns(raw="job", id="job")
    short = own.with_columns(identifier(), raw="job").filter(pl.col("id") != pl.col("job"))
    return (
        pl.concat([whole, short], how="diagonal")
        .sort("time_us")
        .join_asof(runs, on="time_us", by="id", strategy="backward", check_sortedness=False)
        .drop_nulls("stretch")
        .drop("id", "job")
    )


def _standstills(rows: pl.DataFrame, settings: MetricSettings) -> pl.DataFrame:
    """Return samples that say how long a counter had not moved before it grew.

    A sample's time is that of the job's last I/O, so a long step means that nothing happened and
    then something did: the growth belongs to the end of the step. It began when the server says
    that it opened a new entry, else one sampling interval before the sample.
    """
    interval = settings.interval_us
    key = ("stretch", "raw")
    ordered = rows.sort(*key, "time_us", "since_us")
    before = {
        name: pl.col(name).shift(1).over(*key).alias(f"{name}_before")
        for name in ("time_us", "since_us", *VALUES)
    }
    known = ordered.with_columns(*before.values())
    anew = (pl.col("since_us") > pl.col("time_us_before")).fill_null(value=False)
    began = pl.coalesce("since_us", pl.max_horizontal("start_us", pl.col("time_us") - interval))
    zeros = [(pl.col(name) * 0).alias(name) for name in VALUES]
    first = known.filter(pl.col("time_us_before").is_null() & (began < pl.col("time_us")))
    again = known.filter(anew).with_columns(time_us="since_us")
    paused = pl.col("time_us") - pl.col("time_us_before") > settings.gap_factor * interval
    resumed = pl.when(anew).then(pl.col("since_us") - 1).otherwise(pl.col("time_us") - interval)
    still = known.filter(anew | paused).with_columns(
        time_us=resumed, since_us="since_us_before",
        **{name: f"{name}_before" for name in VALUES},
    )  # fmt: skip
    begun = pl.concat(
        [first.with_columns(zeros).with_columns(time_us=began), again.with_columns(zeros)]
    )
    return pl.concat([begun, still]).select(ordered.columns)


def grown(samples: pl.DataFrame) -> pl.DataFrame:
    """Return what each counter by job grew by since its previous sample, at each sample."""
    ordered = samples.sort(*SERIES_KEY, "time_us", "since_us")
    since = pl.col("since_us")
    anew = (since != since.shift(1).over(*SERIES_KEY)).fill_null(value=False)
    columns = []
    for name in VALUES:
        value = pl.col(name).fill_null(0)
        before = value.shift(1).over(*SERIES_KEY).fill_null(0)
        goes_on = (value >= before) & ~anew
        columns.append(pl.when(goes_on).then(value - before).otherwise(value).alias(name))
    return ordered.select("time_us", *columns)


def not_counted(series: Series, samples: pl.DataFrame) -> Series:
    """Return what a server moved beyond what it counted for jobs: all that others can have."""
    if series.empty or not samples.height:
        return series
    growth = grown(samples).sort("time_us")
    place = np.searchsorted(growth["time_us"].to_numpy(), series.times, side="right")
    counted = running_sums(growth.select(VALUES).to_numpy().T.astype(np.float64))[:, place]
    rest = np.maximum(np.diff(series.totals) - np.diff(counted), 0.0)
    return replace(series, totals=running_sums(rest))


def derived_jobs(samples: pl.DataFrame, interval_us: int) -> pl.DataFrame:
    """Return jobs as the counters themselves tell them: from the first I/O to the last."""
    own = samples.filter(pl.col("job").is_not_null() & (pl.col("job") != ""))
    began = pl.coalesce("since_us", pl.col("time_us") - interval_us)
    return (
        own.group_by(identifier())
        .agg(start_us=began.min(), end_us=pl.col("time_us").max())
        .rename({"id": "job"})
    )
