"""Intensity, burstiness and parallel intensity of each job, from its activity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioprism.servers.activity import Activity
from ioprism.servers.series import Floats
from ioprism.servers.settings import MetricSettings

FEWEST_WINDOWS = 2  # with fewer there are no runs to compare


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
        total = np.where(total > 0, runtimes * 1e6 / settings.interval_us, 0.0)
    joins = _joins(activity.job, known)
    shape = (2, len(settings.thresholds), jobs)
    values = np.full((4, *shape), np.nan)
    for direction, threshold in np.ndindex(shape[:2]):
        active = activity.active[direction, threshold][known]
        values[:, direction, threshold] = _one(active, job, weights, joins, total, servers)
    few = np.ceil(runtimes * 1e6 / settings.interval_us) < FEWEST_WINDOWS
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


def _one(
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
