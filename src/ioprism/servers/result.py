"""The table of job metrics: one row a job, columns named by direction and threshold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import BYTES, DIRECTIONS, OPERATIONS, VALUES
from ioprism.servers.measures import Measures
from ioprism.servers.settings import MetricSettings
from ioprism.servers.totals import JobTotals

FACTS = ("job", "start_us", "end_us", "user", "account", "partition", "name", "state")
FLAGS = ("shared", "gap", "reset", "missing")
# How a job's bytes are known: its servers served nobody else, or counted it apart, or what they
# moved while others used them as well was split by nodes, or left to nobody; or there are none.
ATTRIBUTIONS = ("exclusive", "measured", "split", "marked", "unknown")
ENOUGH_COVERAGE = 0.95  # less than a twentieth of the time unknown changes no metric visibly
MEASURES = ("intensity", "burstiness", "parallel_intensity")


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


def column(direction: str, measure: str, threshold: int) -> str:
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
    """Return one row a job: facts, flags, totals, then each direction's metrics.

    Args:
        jobs: the jobs' facts.
        measures: what depends on windows.
        totals: what does not.
        servers: how many servers each job could use.
        own: whether a job has counters of its own, which no other job can disturb.
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
        "gap": (coverage < ENOUGH_COVERAGE) & ~np.isin(attribution, ("measured", "marked")),
        "reset": totals.resets,
        "missing": (totals.servers_seen < servers) & ~own,
        "opens": _told(totals, "oc"),
        "closes": _told(totals, "cc"),
        "unknown": measures.unknown * settings.interval_us / 1e6,
    }
    for number, direction in enumerate(DIRECTIONS):
        columns |= _of_direction(direction, number, measures, totals, settings)
    values = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    return pl.concat([jobs.select(FACTS), values], how="horizontal")


def _of_direction(
    direction: str, number: int, measures: Measures, totals: JobTotals, settings: MetricSettings
) -> dict[str, NDArray[np.generic] | pl.Series]:
    columns: dict[str, NDArray[np.generic] | pl.Series] = {
        f"{direction}_bytes": _told(totals, BYTES[direction]),
        f"{direction}_shared_bytes": totals.shared_bytes[number],
        f"{direction}_operations": _told(totals, OPERATIONS[direction]),
        f"{direction}_max_bandwidth": measures.max_bandwidth[number],
        f"{direction}_max_server_bandwidth": measures.max_server_bandwidth[number],
        f"{direction}_max_operation_rate": measures.max_operation_rate[number],
        f"{direction}_boundary_bytes": totals.boundary_bytes[number],
    }
    for place, threshold in enumerate(settings.thresholds):
        for name in MEASURES:
            values = getattr(measures, name)[number, place]
            columns[column(direction, name, threshold)] = values
        columns[column(direction, "has_io", threshold)] = measures.has_io[number, place]
    return columns


def _told(totals: JobTotals, counter: str) -> NDArray[np.float64]:
    """Return a counter's growth, NaN for jobs none of whose servers counts it."""
    row = VALUES.index(counter)
    return np.where(totals.told[row], totals.counters[row], np.nan)
