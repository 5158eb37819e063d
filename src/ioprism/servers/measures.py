"""Intensity, burstiness, parallel intensity and totals of each job, and the table of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import BYTES, DIRECTIONS, OPERATIONS, SECOND, VALUES
from ioprism.servers.activity import Activity, Placed
from ioprism.servers.series import BYTE_ROWS, Floats, Ints, MetricSettings, Moments, Series, locate

MIN_WINDOWS = 2  # fewer have no runs to compare
FACTS = ("job", "start_us", "end_us", "user", "account", "partition", "name", "state")
FLAGS = ("shared", "gap", "reset", "missing")
# How a job's bytes are known: its servers served no other job, or counted them per job, or what
# they moved for several jobs was split by nodes, or not attributed; or counters are missing.
ATTRIBUTIONS = ("exclusive", "measured", "split", "marked", "unknown")
MIN_COVERAGE = 0.95  # metrics of jobs with less coverage are flagged
MEASURES = ("intensity", "burstiness", "parallel_intensity")


@dataclass(frozen=True, slots=True)
class Measures:
    """The paper's metrics of several jobs; NaN where they have no meaning."""

    intensity: Floats  # (direction, threshold, job)
    burstiness: Floats
    parallel_intensity: Floats
    has_io: NDArray[np.bool_]
    max_bandwidth: Floats  # (direction, job) bytes per second
    max_server_bandwidth: Floats
    max_operation_rate: Floats
    unknown: Floats  # (job) Δt in which no server's counters are known: left out above


def measure(
    activity: Activity, *, servers: NDArray[np.int64], runtimes: Floats, settings: MetricSettings
) -> Measures:
    """Return the metrics of Eqs. 5 to 9 of the paper.

    Args:
        activity: what the servers did, in stretches ordered by job and time.
        servers: how many servers each job could use, |S|.
        runtimes: the jobs' run times in seconds.
        settings: the mode.
    """
    jobs = len(servers)
    known = activity.known > 0
    job, weights = activity.job[known], activity.weights[known]
    total = _sums(job, weights, jobs)
    every = _sums(activity.job, activity.weights, jobs)
    if settings.grid == "job" and settings.window == "literal":
        total = np.where(total > 0, runtimes * SECOND / settings.interval_us, 0.0)
    joins = _joins(activity.job, known)
    shape = (2, len(settings.thresholds), jobs)
    values = np.full((4, *shape), np.nan)
    for direction, threshold in np.ndindex(shape[:2]):
        active = activity.active[direction, threshold][known]
        values[:, direction, threshold] = _measures_of_threshold(
            active, job, weights, joins, total, servers
        )
    few = np.ceil(runtimes * SECOND / settings.interval_us) < MIN_WINDOWS
    return Measures(
        intensity=values[0],
        burstiness=np.where(few, np.nan, values[1]),
        parallel_intensity=values[2],
        has_io=values[3] > 0,
        max_bandwidth=_highest(activity.bandwidth, activity.job, jobs),
        max_server_bandwidth=_highest(activity.server_bandwidth, activity.job, jobs),
        max_operation_rate=_highest(activity.operation_rate, activity.job, jobs),
        unknown=every - _sums(job, weights, jobs),
    )


def _joins(job: NDArray[np.intp], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a known stretch directly follows another of the same job."""
    follows = np.zeros(len(job), dtype=bool)
    follows[1:] = (job[1:] == job[:-1]) & known[:-1]
    return follows[known]


def _measures_of_threshold(
    active: NDArray[np.int32],
    job: NDArray[np.intp],
    weights: Floats,
    joins: NDArray[np.bool_],
    total: Floats,
    servers: NDArray[np.int64],
) -> Floats:
    """Return intensity, burstiness, parallel intensity and time with I/O for one threshold."""
    jobs = len(servers)
    busy = active > 0
    busy_time = _sums(job, weights * busy, jobs)
    begins = np.ones(len(busy), dtype=bool)
    begins[1:] = ~joins[1:] | (busy[1:] != busy[:-1])
    run_length = _mean_run(busy_time, _sums(job, begins & busy, jobs))
    idle_time = _sums(job, weights * ~busy, jobs)
    idle_length = _mean_run(idle_time, _sums(job, begins & ~busy, jobs))
    served = _sums(job, weights * active, jobs)
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = np.where(total > 0, busy_time / total, np.nan)
        ratio = np.where(idle_length > 0, run_length / idle_length, np.inf)
        burstiness = np.where(total > 0, 1.0 - np.tanh(ratio), np.nan)
        # (|S|·Π − 1) / (|S| − 1), where |S|·Π is the mean number of active servers.
        parallel = np.clip((served / busy_time - 1.0) / (servers - 1), 0.0, 1.0)
    sensible = (busy_time > 0) & (servers > 1)
    return np.stack([intensity, burstiness, np.where(sensible, parallel, np.nan), busy_time])


def _sums(job: NDArray[np.intp], values: NDArray[Any], jobs: int) -> Floats:
    return np.bincount(job, values, jobs).astype(np.float64)


def _mean_run(time: Floats, runs: Floats) -> Floats:
    return np.where(runs > 0, time / np.maximum(runs, 1), 0.0)


def _highest(rates: Floats, job: NDArray[np.intp], jobs: int) -> Floats:
    """Return each job's highest value; its stretches stand together."""
    highest = np.zeros((2, jobs))
    if len(job):
        first = np.concatenate([[0], np.flatnonzero(np.diff(job)) + 1])
        highest[:, job[first]] = np.maximum.reduceat(rates, first, axis=1)
    return highest


class JobTotals:
    """Adds up, server by server, the growth of every counter over each job."""

    def __init__(self, starts: Ints, ends: Ints) -> None:
        jobs = len(starts)
        self._starts, self._ends = starts, ends
        self.counters = np.zeros((len(VALUES), jobs))
        self.counted = np.zeros((len(VALUES), jobs), dtype=bool)
        self.known_us = np.zeros(jobs)  # summed over servers
        self.boundary_bytes = np.zeros((2, jobs))
        self.servers_seen = np.zeros(jobs, dtype=np.int64)
        self.resets = np.zeros(jobs, dtype=bool)
        # While a server served other jobs as well: the job's part of the bytes.
        self.shared_bytes = np.zeros((2, jobs))
        self.shared = np.zeros(jobs, dtype=bool)

    def add(self, series: Series, placed: Placed) -> None:
        """Add one server's growth over the jobs that used it."""
        jobs = placed.jobs
        if series.empty:
            return
        count = len(jobs)
        begin, end = self._starts[jobs] + placed.shifts, self._ends[jobs] + placed.shifts
        place = locate(series, np.concatenate([begin, end]))
        first, last = np.arange(count), np.arange(count, 2 * count)
        self.counters[:, jobs] += place.between(series.totals, first, last)
        self.counted[:, jobs] |= series.counted[:, None]
        self.known_us[jobs] += place.between(series.known, first, last)
        self.servers_seen[jobs] += 1
        self.boundary_bytes[:, jobs] += _boundary(series, place, count)
        lasts = np.maximum(np.searchsorted(series.times, end, side="left"), 1)
        self.resets[jobs] |= _any(series.resets, place.step[:count], lasts)

    def coverage(self, servers: NDArray[np.int64]) -> Floats:
        """The share of each job's time, over its servers, in which counters are known."""
        whole = np.maximum(servers, 1) * (self._ends - self._starts)
        return np.asarray(np.clip(self.known_us / whole, 0.0, 1.0))


def _any(flags: Ints, firsts: NDArray[np.intp], lasts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether any step from the first up to, not with, the last is flagged."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(sums[np.clip(lasts, 0, len(flags))] > sums[firsts])


def _boundary(series: Series, place: Moments, count: int) -> Floats:
    """Bytes of steps that a job's start or end cuts: they may be its own or another's."""
    growth = np.diff(series.totals[BYTE_ROWS], axis=1)
    cut = (place.share > 0) & (place.share < 1)
    begin, end = place.step[:count], place.step[count:]
    at_end = cut[count:] & ~(cut[:count] & (begin == end))
    return np.asarray(growth[:, begin] * cut[:count] + growth[:, end] * at_end)


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """All metrics of all jobs, and what was left out of them."""

    table: pl.DataFrame
    settings: MetricSettings
    warnings: tuple[str, ...] = field(default=())
    split: str = "evenly"  # how bytes that jobs share were split: by nodes, evenly, or not

    @property
    def attributions(self) -> dict[str, int]:
        """How many jobs' bytes are known in which way."""
        counts = dict(self.table["attribution"].value_counts().iter_rows())
        return {name: int(counts.get(name, 0)) for name in ATTRIBUTIONS}


def metric_column(direction: str, measure: str, threshold: int) -> str:
    """Name the column of a measure that depends on a threshold: `read_intensity_131072`."""
    return f"{direction}_{measure}_{threshold}"


def metric_columns(
    jobs: pl.DataFrame,
    *,
    measures: Measures,
    totals: JobTotals,
    servers: NDArray[np.int64],
    own: NDArray[np.bool_],
    settings: MetricSettings,
) -> pl.DataFrame:
    """Return one row per job: facts, flags, totals, then each direction's metrics.

    Args:
        jobs: the jobs' facts.
        measures: what depends on windows.
        totals: what does not.
        servers: how many servers each job could use.
        own: whether servers count the job separately, so that no other job disturbs it.
        settings: the thresholds.
    """
    coverage = np.where(own, np.nan, totals.coverage(servers))
    split = "split" if settings.shared == "split" else "marked"
    by_servers = np.where(totals.shared, split, "exclusive")
    seen = np.where(totals.servers_seen > 0, by_servers, "unknown")
    attribution = np.where(own, "measured", seen)
    columns: dict[str, NDArray[np.generic] | pl.Series] = {
        "servers": servers,
        "coverage": coverage,
        "attribution": attribution,
        "shared": totals.shared & ~own,
        "gap": (coverage < MIN_COVERAGE) & ~np.isin(attribution, ("measured", "marked")),
        "reset": totals.resets,
        "missing": (totals.servers_seen < servers) & ~own,
        "opens": _growth(totals, "oc"),
        "closes": _growth(totals, "cc"),
        "unknown": measures.unknown * settings.interval_us / SECOND,
    }
    for number, direction in enumerate(DIRECTIONS):
        columns |= _of_direction(direction, number, measures, totals, settings)
    values = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    return pl.concat([jobs.select(FACTS), values], how="horizontal")


def _of_direction(
    direction: str, number: int, measures: Measures, totals: JobTotals, settings: MetricSettings
) -> dict[str, NDArray[np.generic] | pl.Series]:
    columns: dict[str, NDArray[np.generic] | pl.Series] = {
        f"{direction}_bytes": _growth(totals, BYTES[direction]),
        f"{direction}_shared_bytes": totals.shared_bytes[number],
        f"{direction}_operations": _growth(totals, OPERATIONS[direction]),
        f"{direction}_max_bandwidth": measures.max_bandwidth[number],
        f"{direction}_max_server_bandwidth": measures.max_server_bandwidth[number],
        f"{direction}_max_operation_rate": measures.max_operation_rate[number],
        f"{direction}_boundary_bytes": totals.boundary_bytes[number],
    }
    for place, threshold in enumerate(settings.thresholds):
        for name in MEASURES:
            values = getattr(measures, name)[number, place]
            columns[metric_column(direction, name, threshold)] = values
        columns[metric_column(direction, "has_io", threshold)] = measures.has_io[number, place]
    return columns


def _growth(totals: JobTotals, counter: str) -> NDArray[np.float64]:
    """Return a counter's growth, NaN for jobs none of whose servers counts it."""
    row = VALUES.index(counter)
    return np.where(totals.counted[row], totals.counters[row], np.nan)
