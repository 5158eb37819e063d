"""Whose bytes a server moved: what it counts for each job, and each job's part of the rest.

A Lustre server may keep counters for each job. Where it does not, its time is cut wherever a job
begins or ends. What it moved while one job used it belongs to that job; while several did, each
gets a part in proportion to its nodes behind the server; the rest belongs to no known job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import SERIES_KEY, VALUES
from ioprism.servers.activity import Placed, Places, ranges
from ioprism.servers.series import (
    BYTE_ROWS,
    SPACING,
    Floats,
    Ints,
    MetricSettings,
    Series,
    combine,
    empty_series,
    locate,
    running_sums,
)


def identifier(column: str = "job") -> pl.Expr:
    """Return the scheduler's part of a job identifier such as `<job>:<user>:<node>`."""
    return pl.col(column).str.split(":").list.first().alias("id")


def own_counters(
    samples: pl.DataFrame, jobs: pl.DataFrame, settings: MetricSettings
) -> tuple[Series, Placed]:
    """Lay the samples of each job on a separate stretch; return the series and its jobs.

    Args:
        samples: a server's samples; those without a job are ignored.
        jobs: the jobs, with `row` (their number), `job`, `start_us` and `end_us`.
        settings: how to treat resets.
    """
    rows = samples_of_runs(samples, jobs, settings)
    if not rows.height:
        return empty_series(np.zeros(len(VALUES), dtype=bool)), Placed(
            np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        )
    rows = pl.concat([rows, _standstills(rows, settings)])
    first, last = jobs["start_us"].to_numpy().min(), jobs["end_us"].to_numpy().max()
    origin, width = int(first) - SPACING, int(last - first) + 2 * SPACING
    placed = rows["stretch"].unique().sort().to_numpy().astype(np.intp)
    number = {row: place for place, row in enumerate(placed.tolist())}
    place = pl.col("stretch").replace_strict(number, return_dtype=pl.Int64)
    laid = rows.with_columns(
        time_us=(pl.col("time_us") - origin).clip(0, width - 1) + place * width, part=pl.col("raw")
    )
    series = combine(laid.sort("stretch", "part", "time_us"), settings, gaps_matter=False)
    shifts = np.arange(len(placed), dtype=np.int64) * width - origin
    return series, Placed(placed, shifts)


def samples_of_runs(
    samples: pl.DataFrame, jobs: pl.DataFrame, settings: MetricSettings
) -> pl.DataFrame:
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


def growth_per_sample(samples: pl.DataFrame) -> pl.DataFrame:
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


def without_counted(series: Series, samples: pl.DataFrame) -> Series:
    """Return what a server moved beyond what it counted for jobs: the part of all other jobs."""
    if series.empty or not samples.height:
        return series
    growth = growth_per_sample(samples).sort("time_us")
    place = np.searchsorted(growth["time_us"].to_numpy(), series.times, side="right")
    counted = running_sums(growth.select(VALUES).to_numpy().T.astype(np.float64))[:, place]
    rest = np.maximum(np.diff(series.totals) - np.diff(counted), 0.0)
    return replace(series, totals=running_sums(rest))


def derive_jobs(samples: pl.DataFrame, interval_us: int) -> pl.DataFrame:
    """Return the jobs that the counters show: from the first I/O to the last."""
    own = samples.filter(pl.col("job").is_not_null() & (pl.col("job") != ""))
    began = pl.coalesce("since_us", pl.col("time_us") - interval_us)
    return (
        own.group_by(identifier())
        .agg(start_us=began.min(), end_us=pl.col("time_us").max())
        .rename({"id": "job"})
    )


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The jobs that used one server, and the spans of time between their starts and ends."""

    jobs: Places  # (use) the job's number in the list of all jobs, ascending
    weights: Floats  # (use) its nodes behind this server
    first: Places  # (use) its first span
    last: Places  # (use) the span after its last
    moments: Ints  # (span + 1) µs
    users: Ints  # (span) how many jobs used the server
    weight: Floats  # (span) of all of them

    def is_shared(self, uses: Places) -> NDArray[np.bool_]:
        """Whether another job used the server at any time of a use."""
        several = np.concatenate([[0], np.cumsum(self.users > 1)])
        return np.asarray(several[self.last[uses]] > several[self.first[uses]])


def occupancies(jobs: pl.DataFrame) -> Iterator[tuple[str, Occupancy]]:
    """Yield every server that jobs name, with who used it when.

    Args:
        jobs: `number`, `start_us`, `end_us`, `servers` (one for each node) and `nodes`.
    """
    per_name = (pl.col("nodes").clip(1) / pl.col("servers").list.len()).fill_null(1.0)
    uses = (
        jobs.select("number", "start_us", "end_us", per_name=per_name, server="servers")
        .explode("server")
        .drop_nulls("server")
        .group_by("server", "number")
        .agg(pl.col("start_us", "end_us").first(), weight=pl.col("per_name").sum())
        .sort("server", "number")
    )
    for (server,), table in uses.partition_by("server", as_dict=True).items():
        yield str(server), _occupancy(table)


def _occupancy(uses: pl.DataFrame) -> Occupancy:
    starts, ends = uses["start_us"].to_numpy(), uses["end_us"].to_numpy()
    weights = uses["weight"].to_numpy()
    moments, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    first, last = place[: len(starts)], place[len(starts) :]
    ones = np.ones(len(starts))
    count = np.bincount(place, np.concatenate([ones, -ones]), len(moments))
    weight = np.bincount(place, np.concatenate([weights, -weights]), len(moments))
    return Occupancy(
        jobs=uses["number"].to_numpy().astype(np.intp),
        weights=weights,
        first=first,
        last=last,
        moments=moments,
        users=np.rint(np.cumsum(count)[:-1]).astype(np.int64),
        weight=np.cumsum(weight)[:-1].astype(np.float64),
    )


def job_bytes(series: Series, occupancy: Occupancy, uses: Places) -> tuple[Floats, Floats]:
    """Return the bytes of each use: moved while alone, and its part of those moved with others.

    The first axis is the direction.
    """
    alone, together = occupancy.users == 1, occupancy.users > 1
    place = locate(series, occupancy.moments)
    moved = place.steps(series.totals[BYTE_ROWS])
    weight = np.where(together, occupancy.weight, 1.0)
    first, last = occupancy.first[uses], occupancy.last[uses]
    attributed = _sum_between(moved * alone, first, last)
    shared = _sum_between(moved * together / weight, first, last) * occupancy.weights[uses]
    return attributed, shared


def _sum_between(values: Floats, first: Places, last: Places) -> Floats:
    sums = running_sums(values)
    return np.asarray(np.maximum(sums[:, last] - sums[:, first], 0.0))


def split_series(
    series: Series, occupancy: Occupancy, uses: Places, settings: MetricSettings
) -> tuple[Series, NDArray[np.int64]]:
    """Return each use's part of a server's counters, on a separate stretch.

    With `mark`, a server that others use as well says nothing about a job: that time is unknown.

    Returns:
        One series, and how far each use's time is shifted in it.
    """
    begin = occupancy.moments[occupancy.first[uses]]
    end = occupancy.moments[occupancy.last[uses]]
    inner = occupancy.moments[occupancy.first[uses].min() : occupancy.last[uses].max() + 1]
    grid = np.unique(np.concatenate([series.times, inner]))
    first, last = np.searchsorted(grid, begin), np.searchsorted(grid, end)
    width = int(end.max() - begin.min()) + SPACING
    shifts = np.arange(len(uses), dtype=np.int64) * width - int(begin.min())
    points = ranges(first, last - first + 1)
    owner = np.repeat(np.arange(len(uses)), last - first + 1)
    steps = np.minimum(points, len(grid) - 2)
    span = np.searchsorted(occupancy.moments, grid[:-1], side="right") - 1
    span = np.clip(span, 0, len(occupancy.users) - 1)[steps]
    # Each node has the same part of a step; all of it where its job is alone.
    each = 1.0 / np.maximum(occupancy.weight, 1e-12) if settings.shared == "split" else 0.0
    parts = np.where(occupancy.users > 1, each, 1.0)[span]
    whose = np.where(points < last[owner], parts, 0.0)
    whose *= np.where(occupancy.users[span] > 1, occupancy.weights[uses][owner], 1.0)
    place = locate(series, grid)
    growth = place.steps(series.totals)[:, steps] * whose
    known = place.steps(series.known)[steps] * (whose > 0)
    divided = Series(
        times=grid[points] + shifts[owner],
        totals=running_sums(growth[:, :-1]),
        known=running_sums(known[:-1]),
        resets=series.resets[place.step[:-1][steps]][:-1],
        counted=series.counted,
        unplaced=np.zeros(len(series.unplaced)),
    )
    return divided, shifts
