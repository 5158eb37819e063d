"""Whether an application moves data slower beside another, where servers count by job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import CounterSource
from ioprism.servers.activity import BYTE_ROWS
from ioprism.servers.disturbance import FEWEST, Application, Disturbance, rank_sum
from ioprism.servers.load import MachineLoad
from ioprism.servers.own_counters import own_counters
from ioprism.servers.series import Floats, Ints, locate
from ioprism.servers.settings import MetricSettings
from ioprism.servers.windows import Places, ranges

MOST_BINS = 20_000
NOTICEABLE = 0.1  # of its own rate: what others must move to count as neighbours
QUIET = 0.25  # where others never rest: the quarter of the time in which they move least

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Rates:
    """What applications moved in each bin, and what others moved on their servers meanwhile."""

    seconds: float
    own: Floats  # (application, bin) bytes
    runs: Floats  # (application, bin) jobs that moved some of them
    beside: Floats  # (application, neighbour, bin) bytes on the application's servers
    others: Floats  # (application, bin) of everybody else there


def by_bandwidth(
    source: CounterSource,
    load: MachineLoad,
    jobs: pl.DataFrame,
    applications: list[Application],
    settings: MetricSettings,
) -> Iterator[Disturbance]:
    """Compare an application's rate while a neighbour is active with its quiet times."""
    if not source.per_job_servers():
        return
    rates = _rates(source, load, jobs, len(applications), settings)
    for number, application in enumerate(applications):
        active = _inner(rates.own[number] > 0)
        if active.sum() < 2 * FEWEST:
            continue
        own = rates.own[number] / np.maximum(rates.runs[number], 1.0)
        noticeable = NOTICEABLE * float(np.median(rates.own[number][active]))
        others = rates.others[number]
        quiet = active & (others <= max(noticeable, float(np.quantile(others[active], QUIET))))
        for other, neighbour in enumerate(applications):
            there = rates.beside[number, other] >= noticeable
            if other != number:
                yield from _compared(
                    application, neighbour, own, active & there, quiet & ~there, rates.seconds
                )


def _inner(active: Bools) -> Bools:
    """Leave out bins at the edges of activity: they are filled in part only."""
    inner = active.copy()
    inner[1:] &= active[:-1]
    inner[:-1] &= active[1:]
    return inner if inner.sum() >= 2 * FEWEST else active


def _compared(
    application: Application,
    neighbour: Application,
    own: Floats,
    beside: Bools,
    quiet: Bools,
    seconds: float,
) -> Iterator[Disturbance]:
    slow, fast = _episodes(own, beside), _episodes(own, quiet)
    if min(len(slow), len(fast)) >= FEWEST:
        yield Disturbance(
            application,
            neighbour,
            "bandwidth",
            float(np.exp(np.median(fast) - np.median(slow))),
            len(slow),
            len(fast),
            float(beside.sum()) * seconds / 3600,
            rank_sum(fast, slow),
            1.0,
        )


def _episodes(own: Floats, state: Bools) -> Floats:
    """Return the mean logarithm of the rate of each stretch of time in one state."""
    begins = state & ~np.concatenate([[False], state[:-1]])
    number = np.cumsum(begins)[state] - 1
    logs = np.log(own[state])
    return np.asarray(np.bincount(number, logs) / np.maximum(np.bincount(number), 1))


def _rates(
    source: CounterSource,
    load: MachineLoad,
    jobs: pl.DataFrame,
    applications: int,
    settings: MetricSettings,
) -> _Rates:
    start, end = int(load.edges_us[0]), int(load.edges_us[-1])
    bins = int(np.clip((end - start) // settings.interval_us, 1, MOST_BINS))
    edges = np.linspace(start, end, bins + 1).astype(np.int64)
    own, runs = np.zeros((applications, bins)), np.zeros((applications, bins))
    beside = np.zeros((applications, applications, bins))
    others = np.zeros((applications, bins))
    for server in source.per_job_servers():
        samples = source.counters(server, start_us=start, end_us=end, per_job=True)
        moved, count = _of_server(samples, jobs, edges, applications, settings)
        used = moved[:-1].any(axis=1)
        own += moved[:-1]
        runs = np.maximum(runs, count[:-1])
        beside[used] += moved[:-1]
        everybody = moved.sum(axis=0)
        others[used] += (everybody - moved[:-1])[used]
    return _Rates((end - start) / bins / 1e6, own, runs, beside, others)


def _of_server(
    samples: pl.DataFrame,
    jobs: pl.DataFrame,
    edges: Ints,
    applications: int,
    settings: MetricSettings,
) -> tuple[Floats, Floats]:
    """Return bytes and active jobs of each application in each bin; the last row is the rest."""
    bins = len(edges) - 1
    sums, counts = np.zeros((2, applications + 1, bins))
    own = own_counters(samples, jobs.with_columns(row=pl.col("number")), settings)
    if own is None:
        return sums, counts
    numbers = own.placed.jobs
    first, last = _bins_of(jobs, numbers, edges)
    points = ranges(first, last - first + 1)
    owner = np.repeat(np.arange(len(numbers)), last - first + 1)
    place = locate(own.series, edges[points] + own.placed.shifts[owner])
    left = np.flatnonzero(owner[1:] == owner[:-1])
    moved = place.between(own.series.totals[BYTE_ROWS].sum(axis=0), left, left + 1)
    of = jobs["application"].fill_null(applications).to_numpy()[numbers][owner[left]]
    np.add.at(sums, (of, points[left]), moved)
    np.add.at(counts, (of, points[left]), moved > 0)
    return sums, counts


def _bins_of(jobs: pl.DataFrame, numbers: Places, edges: Ints) -> tuple[Places, Places]:
    starts, ends = (jobs[name].to_numpy()[numbers] for name in ("start_us", "end_us"))
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, len(edges) - 2)
    last = np.clip(np.searchsorted(edges, ends), first + 1, len(edges) - 1)
    return first, last
