"""What a server's counters amount to at any moment: resets undone, gaps and disorder known.

Several jobs' own counters of one target are laid one after another on a long line (each on its
own stretch), so that one search answers for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import (
    BYTES,
    DIRECTIONS,
    FILE_SYSTEM,
    NODE_TOTAL,
    OPERATIONS,
    SECOND,
    SERIES_KEY,
    VALUES,
)
from ioprism.servers.limits import NEGLIGIBLE, SAMPLING_JITTER, SMALLEST_RESET
from ioprism.units import DAY, HOUR

Grid = Literal["job", "native"]
Window = Literal["clip", "clip_abs", "full", "literal"]
Reset = Literal["auto", "restart", "drop"]
Sharing = Literal["split", "mark"]

GRIDS, WINDOWS, RESETS, SHARINGS = map(get_args, (Grid, Window, Reset, Sharing))
THRESHOLDS = (0, 128 * 1024, 1024 * 1024)  # bytes per Δt: the paper's c
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BYTE_ROWS = [VALUES.index(BYTES[direction]) for direction in DIRECTIONS]
OPERATION_ROWS = [VALUES.index(OPERATIONS[direction]) for direction in DIRECTIONS]

# A longer step is not interpolated: its bytes cannot be attributed to any job.
LONGEST_STEP = round(DAY * SECOND)
SPACING = LONGEST_STEP  # between the stretches of two jobs on one line


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How counters become metrics (El Sayed et al., 'Parallel I/O Characterisation …')."""

    interval_us: int  # Δt: the paper samples every 120 s; here it is taken from the counters
    thresholds: tuple[int, ...] = THRESHOLDS
    grid: Grid = "job"  # windows from the job's start, as in the paper
    window: Window = "clip"  # the paper's own ("literal") gives intensities above 1
    reset: Reset = "auto"  # "drop" for totals of a node (unmounts), else "restart"
    shared: Sharing = "split"  # bytes of jobs that ran together: by nodes, or not attributed
    min_runtime: float = HOUR  # seconds: the paper looks at jobs of at least an hour
    gap_factor: float = 1.5  # a longer step than this many Δt means that samples were lost


@dataclass(frozen=True, slots=True)
class Series:
    """Cumulative counters at the sample times, piecewise linear in between."""

    times: Ints  # µs, ascending
    totals: Floats  # (counter, sample): since the first sample, resets undone
    known: Floats  # (sample): µs since the first sample, without gaps
    resets: Ints  # (step): whether the counters were reset in it
    counted: Bools  # (counter): whether the source counts it at all
    unplaced: Floats  # (counter): growth in steps too long to say when, part of no total above

    @property
    def empty(self) -> bool:
        """Whether there is nothing to interpolate."""
        return len(self.times) < 2


@dataclass(frozen=True, slots=True)
class Moments:
    """Places of some times in a series: after which sample, and how far towards the next."""

    step: NDArray[np.intp]
    share: Floats

    def between(self, values: Floats, first: Ints, last: Ints) -> Floats:
        """What values grew by between pairs of moments; exact where moments are samples."""
        growth = np.diff(values, axis=-1)
        whole = np.take(values, self.step, axis=-1)
        part = np.take(growth, self.step, axis=-1) * self.share
        return (np.take(whole, last, -1) - np.take(whole, first, -1)) + (
            np.take(part, last, -1) - np.take(part, first, -1)
        )

    def steps(self, values: Floats) -> Floats:
        """What values grew by from each moment to the next."""
        first = np.arange(len(self.step) - 1)
        return self.between(values, first, first + 1)


def locate(series: Series, moments: Ints) -> Moments:
    """Find moments in a series; outside of it the counters stand still."""
    times = series.times
    step = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, len(times) - 2)
    length = np.maximum(times[step + 1] - times[step], 1)
    return Moments(step, np.clip((moments - times[step]) / length, 0.0, 1.0))


def server_series(samples: pl.DataFrame, settings: MetricSettings) -> Series:
    """Return a server's own counters as one series, all its file systems together."""
    own = samples
    if own["job"].null_count() < own.height:
        own = own.filter(pl.col("job").is_null())
    sources = own["source"].unique()
    if FILE_SYSTEM in sources and NODE_TOTAL in sources:
        own = own.filter(pl.col("source") != NODE_TOTAL)  # they would be counted twice
    rows = own.with_columns(stretch=pl.lit(0, dtype=pl.Int64))
    return combine(rows, settings, gaps_matter=True)


def combine(rows: pl.DataFrame, settings: MetricSettings, *, gaps_matter: bool) -> Series:
    """Join the parts of each stretch: their sum at the samples of any of them.

    Args:
        rows: samples with `stretch`: their stretch of the line.
        settings: how to treat resets and gaps.
        gaps_matter: whether a long step means lost samples, or just that nothing happened.
    """
    if rows["part"].n_unique() <= 1:
        return _part_series(_sort_rows(rows), settings, gaps_matter=gaps_matter)
    rank = rows.select(pl.col("part").rank("dense").over("stretch")).to_series()
    parts = int(rank.max() or 0)  # type: ignore[arg-type]
    several = [
        _part_series(_sort_rows(rows.filter(rank == number)), settings,
              gaps_matter=gaps_matter)
        for number in range(1, parts + 1)
    ]  # fmt: skip
    return _add_up([part for part in several if not part.empty])


def _part_series(rows: pl.DataFrame, settings: MetricSettings, *, gaps_matter: bool) -> Series:
    counted = np.array([rows[name].null_count() < rows.height for name in VALUES])
    values = np.stack([_without_nulls(rows[name]) for name in VALUES])
    times, stretches = rows["time_us"].to_numpy(), rows["stretch"].to_numpy()
    since = _without_nulls(rows["since_us"])
    kept = _in_order(values, stretches, since)
    if not kept.all():
        values, times = values[:, kept], times[kept]
        stretches, since = stretches[kept], since[kept]
    if len(times) < 2:
        return empty_series(counted)
    same = stretches[1:] == stretches[:-1]
    lengths = np.where(same, np.diff(times), 0)
    growth = np.diff(values, axis=1)
    reset = same & (np.any(growth < 0, axis=0) | (np.diff(since) != 0))
    node_total = rows.height > 0 and rows["source"][0] == NODE_TOTAL
    drops = node_total if settings.reset == "auto" else settings.reset == "drop"
    dropped = reset & drops
    growth[:, reset] = values[:, 1:][:, reset]
    # After a pause of a server it is unknown when its bytes moved; a job's bytes moved at the end.
    too_long = (lengths > LONGEST_STEP) & gaps_matter
    unplaced = growth[:, too_long & ~dropped].sum(axis=1).astype(np.float64)
    growth[:, ~same | dropped | too_long] = 0
    long = (lengths > settings.gap_factor * settings.interval_us) & gaps_matter
    return Series(
        times=times,
        totals=running_sums(growth.astype(np.float64)),
        known=running_sums(np.where(long | dropped, 0, lengths).astype(np.float64)),
        resets=reset.astype(np.int64),
        counted=counted,
        unplaced=unplaced,
    )


def _without_nulls(values: pl.Series) -> Ints:
    if values.null_count() == len(values):
        return np.zeros(len(values), dtype=np.int64)
    return np.asarray(values.fill_null(0) if values.null_count() else values)


def _sort_rows(rows: pl.DataFrame) -> pl.DataFrame:
    alone = rows["since_us"].null_count() == rows.height and rows["stretch"].n_unique() <= 1
    if alone and rows["time_us"].is_sorted():
        return rows
    return rows.sort("stretch", "time_us", "since_us")


def _in_order(values: Ints, stretches: Ints, since: Ints) -> Bools:
    """Leave out samples that fall a little and recover with the next: clocks that jump."""
    kept = np.ones(values.shape[1], dtype=bool)
    if values.shape[1] < 3:
        return kept
    falls = np.flatnonzero(np.any(values[:, 1:-1] < values[:, :-2], axis=0)) + 1
    before, now, after = values[:, falls - 1], values[:, falls], values[:, falls + 1]
    one_series = (stretches[falls + 1] == stretches[falls - 1]) & (
        since[falls + 1] == since[falls - 1]
    )
    a_little = np.all(now >= SMALLEST_RESET * before, axis=0)
    recovers = np.all(after >= before, axis=0)
    kept[falls] = ~(one_series & a_little & recovers)
    return kept


def running_sums(growth: Floats) -> Floats:
    """Return what has grown before each step, and after the last one."""
    sums = np.zeros((*growth.shape[:-1], growth.shape[-1] + 1))
    np.cumsum(growth, axis=-1, out=sums[..., 1:])
    return sums


def _add_up(parts: list[Series]) -> Series:
    """Add series up at the union of their times; a gap of one part is a gap of the whole."""
    if not parts:
        return empty_series(np.zeros(len(VALUES), dtype=bool))
    times = np.unique(np.concatenate([part.times for part in parts]))
    totals = np.zeros((len(VALUES), len(times)))
    growth = np.full(len(times) - 1, np.inf)
    resets = np.zeros(len(times) - 1, dtype=np.int64)
    edges = np.arange(len(times))
    for part in parts:
        place = locate(part, times)
        totals += place.between(part.totals, np.zeros_like(edges), edges)
        inside = (times[1:] > part.times[0]) & (times[:-1] < part.times[-1])
        known = place.between(part.known, edges[:-1], edges[1:])
        growth = np.where(inside, np.minimum(growth, known), growth)
        resets |= part.resets[place.step[:-1]] * inside
    return Series(
        times=times,
        totals=totals,
        known=running_sums(np.where(np.isfinite(growth), growth, 0.0)),
        resets=resets,
        counted=np.any([part.counted for part in parts], axis=0),
        unplaced=np.sum([part.unplaced for part in parts], axis=0),
    )


def empty_series(counted: Bools) -> Series:
    """Return a series without samples."""
    return Series(
        np.zeros(0, dtype=np.int64),
        np.zeros((len(VALUES), 0)),
        np.zeros(0),
        np.zeros(0, dtype=np.int64),
        counted,
        np.zeros(len(VALUES)),
    )


def sampling_interval_us(tables: Iterable[pl.DataFrame], *, per_job: bool = False) -> int:
    """Return the usual step between samples of some servers, a whole number of seconds.

    Args:
        tables: samples of servers.
        per_job: whether they are counters by job. Their times are those of I/O, and pauses make
            many steps too long, or too short where a scrape's time is known as well: the most
            frequent step counts, not the median.

    Raises:
        NotEnoughDetailError: no server has two samples.
    """
    steps = [
        table.sort("time_us").select(pl.col("time_us").diff().over(*SERIES_KEY)).to_series()
        for table in tables
    ]
    intervals = pl.concat(steps).drop_nulls() if steps else pl.Series(dtype=pl.Int64)
    positive = intervals.filter(intervals > 0).to_numpy()
    if not len(positive):
        raise NotEnoughDetailError(
            needed="at least two samples of a server",
            has="none",
            source="the store",
            hint="ingest more raw files, or use --interval SECONDS.",
        )
    usual = _most_frequent(positive) if per_job else positive
    seconds = float(np.median(usual)) / SECOND
    whole = max(1, round(seconds))
    jitters = abs(seconds - whole) <= SAMPLING_JITTER * whole or seconds < 1
    return whole * SECOND if jitters else round(seconds * SECOND)


def _most_frequent(steps: Ints) -> Ints:
    """Return the steps of the fullest range of lengths; of ranges as full, the shortest."""
    size = np.rint(np.log(np.maximum(steps / SECOND, 1.0)) / NEGLIGIBLE).astype(np.int64)
    counts = np.convolve(np.bincount(size), (1, 1, 1))[1:-1]
    return steps[np.abs(size - int(np.argmax(counts))) <= 1]
