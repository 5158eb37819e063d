"""Whom to contact: users whose jobs could do better, with the hours that are at stake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ioprism.model.counters import DIRECTIONS
from ioprism.servers.disturbance import Disturbance
from ioprism.servers.fleet import SMALL
from ioprism.servers.result import JobMetrics, column

BUSY = 0.1  # a job that does I/O for less of its time would not gain much
ALONE = 0.1  # parallel intensity below which servers are used one at a time
SEVERAL = 4  # servers: with fewer there is little to spread


@dataclass(frozen=True, slots=True)
class Contact:
    """A user and one reason to talk; hours are of the jobs concerned."""

    user: str | None
    reason: str  # small_requests, one_server_at_a_time, disturbs_others
    jobs: int
    job_hours: float  # run time
    hours_at_stake: float  # of it with I/O; or what others lose beside them
    bytes: float


def contacts(
    metrics: JobMetrics, disturbances: Sequence[Disturbance], *, top: int = 20
) -> tuple[Contact, ...]:
    """Return users and reasons, most hours at stake first."""
    lowest = metrics.settings.thresholds[0]
    table = metrics.table.with_columns(
        hours=(pl.col("end_us") - pl.col("start_us")) / 3.6e9,
        busy=pl.max_horizontal(pl.col(column(d, "intensity", lowest)) for d in DIRECTIONS),
        moved=pl.sum_horizontal(f"{d}_bytes" for d in DIRECTIONS),
    )
    busy = table.filter((pl.col("busy") >= BUSY) & (pl.col("attribution") != "marked"))
    rows = [
        *_by_user(busy.filter(_small()), "small_requests"),
        *_by_user(busy.filter(_one_at_a_time(lowest)), "one_server_at_a_time"),
        *_disturbers(disturbances),
    ]
    return tuple(sorted(rows, key=lambda contact: -contact.hours_at_stake)[:top])


def _small() -> pl.Expr:
    operations = pl.sum_horizontal(f"{d}_operations" for d in DIRECTIONS)
    return (operations > 0) & (pl.col("moved") < SMALL * operations)


def _one_at_a_time(threshold: int) -> pl.Expr:
    spread = pl.max_horizontal(
        pl.col(column(d, "parallel_intensity", threshold)) for d in DIRECTIONS
    )
    return (pl.col("servers") >= SEVERAL) & (spread < ALONE)


def _by_user(table: pl.DataFrame, reason: str) -> list[Contact]:
    sums = table.group_by("user").agg(
        pl.len(), pl.col("hours").sum(), (pl.col("hours") * pl.col("busy")).sum().alias("io"),
        pl.col("moved").sum(),
    )  # fmt: skip
    return [
        Contact(user, reason, jobs, hours, at_stake, moved)
        for user, jobs, hours, at_stake, moved in sums.sort("user").iter_rows()
    ]


def _disturbers(disturbances: Sequence[Disturbance]) -> list[Contact]:
    """Who slows others down, with the others' hours."""
    return [
        Contact(pair.neighbour.user, "disturbs_others", pair.neighbour.jobs, pair.neighbour.hours,
                pair.hours * (1 - 1 / pair.slowdown), 0.0)
        for pair in disturbances
        if pair.certain
    ]  # fmt: skip
