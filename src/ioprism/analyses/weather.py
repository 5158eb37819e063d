"""How busy a file system's servers were while a job ran, and how busy they can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.analyses.job_metrics.activity import BYTE_ROWS
from ioprism.analyses.job_metrics.interval import sampling_interval_us
from ioprism.analyses.job_metrics.series import Ints, locate, server_series
from ioprism.analyses.job_metrics.settings import MetricSettings
from ioprism.model.counters import SECOND, CounterSource

AROUND = 7 * 86_400 * SECOND  # how far before and after the job the highest load is looked for
MOST_BINS = 5_000  # before, and as many after
FEWEST_STEPS = 2  # a shorter time than so many samples apart cannot be told from its neighbours


@dataclass(frozen=True, slots=True)
class Weather:
    """What all servers together moved, whoever asked for it."""

    servers: int
    bytes: float  # in the time of the job, read and written
    seconds: float  # how long that time is
    most_bytes: float  # in any time as long, in the days around it
    coverage: float  # share of the time and the servers for which counters are known


def weather(source: CounterSource, *, start: float, end: float) -> Weather:
    """Return the load of all servers between two moments, in seconds since 1970."""
    first, last = round(start * SECOND), round(end * SECOND)
    names = source.servers()
    begin, finish = first - AROUND, last + AROUND
    tables = [source.counters(name, start_us=begin, end_us=finish) for name in names]
    if not any(table.height > 1 for table in tables):
        return Weather(len(names), 0.0, (last - first) / SECOND, 0.0, 0.0)
    settings = MetricSettings(sampling_interval_us(tables))
    edges, own = _bins(first, last, settings.interval_us)
    left = np.arange(len(edges) - 1)
    moved, known = np.zeros(len(left)), np.zeros(len(left))
    for table in tables:
        series = server_series(table, settings)
        if not series.empty:
            place = locate(series, edges)
            moved += place.between(series.totals[BYTE_ROWS], left, left + 1).sum(axis=0)
            known += place.between(series.known, left, left + 1)
    length = int(edges[1] - edges[0])
    return Weather(
        servers=len(names),
        bytes=float(moved[own]),
        seconds=length / SECOND,
        most_bytes=float(moved.max()),
        coverage=float(known[own]) / (length * len(names)),
    )


def _bins(first: int, last: int, interval: int) -> tuple[Ints, int]:
    """The time of the job, as many times as long on either side, and which of them it is."""
    length = max(last - first, FEWEST_STEPS * interval)
    begin = (first + last - length) // 2
    before = min(MOST_BINS, AROUND // length)
    return begin + length * np.arange(-before, before + 2), before
