"""How often the servers were sampled: the Δt of the metrics, read off the counters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import SECOND, SERIES_KEY

NEARLY = 0.01  # sampling jitters: 119.8 s is meant to be 120 s


def sampling_interval_us(tables: Iterable[pl.DataFrame], *, share: float = 0.5) -> int:
    """Return the usual step between samples of some servers, a whole number of seconds.

    Args:
        tables: samples of servers.
        share: of the steps, how many are taken to be no longer than the usual one.

    Raises:
        NotEnoughDetailError: there are no two samples of any server.
    """
    steps = [
        table.sort("time_us").select(pl.col("time_us").diff().over(*SERIES_KEY)).to_series()
        for table in tables
    ]
    found = pl.concat(steps).drop_nulls() if steps else pl.Series(dtype=pl.Int64)
    positive = found.filter(found > 0).to_numpy()
    if not len(positive):
        raise NotEnoughDetailError(
            needed="at least two samples of a server",
            has="none",
            hint="ingest more raw files, or say --interval SECONDS.",
        )
    seconds = float(np.quantile(positive, share, method="higher")) / SECOND
    whole = max(1, round(seconds))
    return (
        whole * SECOND
        if abs(seconds - whole) <= NEARLY * whole or seconds < 1
        else round(seconds * SECOND)
    )
