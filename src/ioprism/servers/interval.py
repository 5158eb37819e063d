"""How often the servers were sampled: the Δt of the metrics, read off the counters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import SECOND, SERIES_KEY
from ioprism.servers.series import Ints

ALIKE = 0.05  # steps that differ by this share are of one length
NEARLY = 0.01  # sampling jitters: 119.8 s is meant to be 120 s


def sampling_interval_us(tables: Iterable[pl.DataFrame], *, per_job: bool = False) -> int:
    """Return the usual step between samples of some servers, a whole number of seconds.

    Args:
        tables: samples of servers.
        per_job: whether they are counters by job. Their times are those of I/O, and pauses make
            many steps too long, or too short where a scrape's time is known as well: the most
            frequent step counts, not the median.

    Raises:
        NotEnoughDetailError: there are no two samples of any server.
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
    return (
        whole * SECOND
        if abs(seconds - whole) <= NEARLY * whole or seconds < 1
        else round(seconds * SECOND)
    )


def _most_frequent(steps: Ints) -> Ints:
    """Return the steps of the fullest range of lengths; of ranges as full, the shortest."""
    size = np.rint(np.log(np.maximum(steps / SECOND, 1.0)) / ALIKE).astype(np.int64)
    counts = np.convolve(np.bincount(size), (1, 1, 1))[1:-1]
    return steps[np.abs(size - int(np.argmax(counts))) <= 1]
