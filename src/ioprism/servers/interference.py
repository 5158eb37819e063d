"""Who slows whom down: applications that used the same servers at the same time.

An application is one user's jobs of one name. Where servers count for each job, its bandwidth
while a neighbour moves data on its servers is compared with that of its own quiet times. Where
they do not, its run times beside a neighbour are compared with those without it.

Neighbouring samples resemble each other, so what is compared are episodes (all consecutive time
in one state is one observation) or whole runs, by the rank-sum test of Wilcoxon, Mann and
Whitney; Holm's correction accounts for the number of pairs that were looked at.
"""

from __future__ import annotations

import polars as pl

from ioprism.model.counters import CounterSource
from ioprism.servers.disturbance import Application, Disturbance, corrected
from ioprism.servers.load import MachineLoad
from ioprism.servers.neighbour_rates import by_bandwidth
from ioprism.servers.neighbour_runs import by_run_time
from ioprism.servers.settings import MetricSettings

MOST_APPLICATIONS = 16  # those with most bytes: pairs grow with the square


def interference(
    source: CounterSource, load: MachineLoad, *, settings: MetricSettings
) -> tuple[Disturbance, ...]:
    """Return every pair of applications that met often enough, the most certain first."""
    jobs, applications = _applications(load.jobs)
    if len(applications) < 1:
        return ()
    pairs = [
        *by_bandwidth(source, load, jobs, applications, settings),
        *by_run_time(jobs, applications),
    ]
    return tuple(sorted(corrected(pairs), key=lambda pair: (pair.adjusted, -pair.slowdown)))


def _applications(jobs: pl.DataFrame) -> tuple[pl.DataFrame, list[Application]]:
    """Number the applications that moved most; other jobs have no number."""
    moved = pl.sum_horizontal(pl.selectors.ends_with("_attributed", "_shared"))
    hours = (pl.col("end_us") - pl.col("start_us")).sum() / 3.6e9
    named = jobs.filter(pl.col("user").is_not_null() | pl.col("name").is_not_null())
    largest = (
        named.group_by("user", "name")
        .agg(pl.len(), hours=hours, moved=moved.sum())
        .sort("moved", "user", "name", descending=[True, False, False])
        .head(MOST_APPLICATIONS)
        .with_row_index("application")
    )
    numbered = jobs.join(
        largest.select("user", "name", "application"), on=["user", "name"], how="left",
        nulls_equal=True, maintain_order="left",
    )  # fmt: skip
    rows = largest.select("user", "name", "len", "hours").iter_rows()
    return numbered.with_columns(pl.col("application").cast(pl.Int64)), [
        Application(*row) for row in rows
    ]
