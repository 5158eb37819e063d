"""What each server moved over time, whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.analyses.job_metrics.activity import BYTE_ROWS
from ioprism.analyses.job_metrics.series import (
    LONGEST_STEP,
    Floats,
    Ints,
    locate,
    server_series,
)
from ioprism.analyses.job_metrics.settings import MetricSettings
from ioprism.model.counters import BYTES, DIRECTIONS, SERIES_KEY, CounterSource

CELLS = 60_000  # as many as a page can draw and a browser can hold with ease
MOST_BINS = 360
FEWEST_BINS = 48


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Bytes by direction, server and time bin."""

    servers: tuple[str, ...]
    edges_us: Ints
    bytes: Floats  # (direction, server, bin)


def server_load(
    source: CounterSource, *, start_us: int, end_us: int, settings: MetricSettings
) -> ServerLoad:
    """Return the load of every server between two moments, in bins of equal length."""
    servers = tuple(source.servers())
    bins = int(np.clip(CELLS // max(len(servers), 1), FEWEST_BINS, MOST_BINS))
    # A bin shorter than the sampling interval would show detail that nobody measured.
    bins = int(np.clip((end_us - start_us) // settings.interval_us, 1, bins))
    edges = np.linspace(start_us, end_us, bins + 1).astype(np.int64)
    load = np.zeros((2, len(servers), bins))
    for number, server in enumerate(servers):
        load[:, number] = _of_server(source, server, edges, settings)
    return ServerLoad(servers, edges, load)


def _of_server(source: CounterSource, server: str, edges: Ints, settings: MetricSettings) -> Floats:
    start_us, end_us = int(edges[0]) - LONGEST_STEP, int(edges[-1]) + LONGEST_STEP
    samples = source.counters(server, start_us=start_us, end_us=end_us)
    series = server_series(samples, settings)
    if series.empty:
        own = source.counters(server, start_us=start_us, end_us=end_us, per_job=True)
        return _from_jobs(own, edges)
    place = locate(series, edges)
    left = np.arange(len(edges) - 1)
    return place.between(series.totals[BYTE_ROWS], left, left + 1)


def _from_jobs(samples: pl.DataFrame, edges: Ints) -> Floats:
    """A target that counts for jobs only: growth is put where it was seen."""
    load = np.zeros((2, len(edges) - 1))
    for number, direction in enumerate(DIRECTIONS):
        name = BYTES[direction]
        value = pl.col(name).fill_null(0)
        before = value.shift(1).over(*SERIES_KEY, order_by="time_us").fill_null(0)
        grown = samples.select(
            "time_us", growth=pl.when(value >= before).then(value - before).otherwise(value)
        )
        times, growth = grown["time_us"].to_numpy(), grown["growth"].to_numpy()
        load[number] = np.histogram(times, edges, weights=growth.astype(np.float64))[0]
    return load
