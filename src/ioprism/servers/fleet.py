"""What all jobs and servers together say about a machine: totals, users, busy times, contacts.

Totals, users and accounts are what the servers counted, over every job of the list; maxima and the
80 % table are over the jobs that ran long enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.servers.interference import Disturbance
from ioprism.servers.job_metrics import FLAGS, MEASURES, JobMetrics, metric_column
from ioprism.servers.limits import MIN_DAYS, MIN_SERVERS, MINOR, SHARE_OF_JOBS, TOP_JOBS
from ioprism.servers.load import PARTS, SIZE_LIMITS, MachineLoad
from ioprism.servers.series import Floats
from ioprism.settings import Thresholds
from ioprism.units import DAY

AMOUNTS = ("bytes", "operations", "max_bandwidth", "max_operation_rate")
# A mean is small below half of the size below which one request is small: a few small requests
# among many that are just large enough must not count.
SMALL_REQUEST = int(Thresholds().small_bytes) // 2


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Requests in sampling steps whose mean request is in a range of sizes."""

    low: int
    high: int | None
    bytes: float
    operations: float


@dataclass(frozen=True, slots=True)
class DirectionTotals:
    """One direction of the whole machine."""

    bytes: float  # what the servers moved
    attributed: float  # while one job used a server, or counted by the server for a job
    shared: float  # while several jobs used a server
    unattributed: float  # while no job of the list did
    measured: float  # of `attributed`: counted by the servers for each job
    outside: float  # of `unattributed`: before the first job of the list, or after the last
    operations: float | None
    sizes: tuple[SizeClass, ...]
    top_share: float | None  # of the jobs' bytes, moved by the top 20 % of jobs
    highest: dict[str, float | None]  # by any one job
    eighty: dict[str, float | None]  # 80 % of jobs stay at or below

    @property
    def small_share(self) -> float | None:
        """The share of operations in steps whose mean request is small; None: not counted."""
        total = sum(size.operations for size in self.sizes)
        small = sum(
            size.operations for size in self.sizes if (size.high or math.inf) <= SMALL_REQUEST
        )
        return small / total if total > 0 else None


@dataclass(frozen=True, slots=True)
class EightyRow:
    """One line of the 80 % table: what 80 % of jobs stay at or below."""

    measure: str
    threshold: int
    values: dict[str, float | None]  # by direction


@dataclass(frozen=True, slots=True)
class Mover:
    """A user, an account or a server, and the bytes that are its own part."""

    name: str | None
    jobs: int
    bytes: dict[str, float]  # by direction
    shared: dict[str, float]  # of these: its part of what moved for several jobs at a time
    seconds: float  # run time of its jobs


@dataclass(frozen=True, slots=True)
class Fleet:
    """The numbers of the machine-wide report."""

    jobs: int  # that ran long enough
    listed: int  # in the list
    start_us: int
    end_us: int
    totals: dict[str, DirectionTotals]
    eighty: tuple[EightyRow, ...]
    flags: dict[str, int]
    attributions: dict[str, int]  # how many jobs' bytes are known in which way
    split: str  # how shared bytes were split: by nodes, evenly, or not
    users: tuple[Mover, ...]
    accounts: tuple[Mover, ...]
    busiest: pl.DataFrame  # jobs by bytes moved, both directions
    flagged: pl.DataFrame

    @property
    def write_share(self) -> float | None:
        """The share of all bytes that were written."""
        moved = sum(totals.bytes for totals in self.totals.values())
        return self.totals["write"].bytes / moved if moved > 0 else None


def summarise_fleet(metrics: JobMetrics, load: MachineLoad, *, top: int = 20) -> Fleet:
    """Summarise the jobs and servers of a machine."""
    table = metrics.table
    moved = sum((pl.col(f"{d}_bytes").fill_null(0) for d in DIRECTIONS), pl.lit(0.0))
    ordered = table.with_columns(moved=moved).sort("moved", "job", descending=[True, False])
    return Fleet(
        jobs=table.height,
        listed=load.jobs.height,
        start_us=int(load.edges_us[0]),
        end_us=int(load.edges_us[-1]),
        totals={d: _totals(table, load, n, d) for n, d in enumerate(DIRECTIONS)},
        eighty=_eighty_rows(metrics),
        flags={flag: int(table[flag].sum()) for flag in FLAGS},
        attributions=metrics.attributions,
        split=metrics.split,
        users=_movers(load.jobs, "user", top),
        accounts=_movers(load.jobs, "account", top),
        busiest=ordered.head(top),
        flagged=ordered.filter(pl.any_horizontal(FLAGS)),
    )


def _eighty_rows(metrics: JobMetrics) -> tuple[EightyRow, ...]:
    def values(measure: str, threshold: int) -> dict[str, float | None]:
        return {
            d: quantile(metrics.table[metric_column(d, measure, threshold)]) for d in DIRECTIONS
        }

    return tuple(
        EightyRow(measure, threshold, values(measure, threshold))
        for measure in MEASURES
        for threshold in metrics.settings.thresholds
    )


def quantile(values: pl.Series, share: float = SHARE_OF_JOBS) -> float | None:
    """Return the smallest value that this share of the values stays at or below."""
    known = values.drop_nulls().sort()
    return float(known[math.ceil(share * len(known)) - 1]) if len(known) else None


def top_share(values: pl.Series, share: float = TOP_JOBS) -> float | None:
    """Return what part of a sum its largest values make, of this share of all values."""
    known = values.fill_null(0).sort(descending=True)
    total = float(known.sum())
    return float(known.head(math.ceil(share * len(known))).sum()) / total if total > 0 else None


def _totals(table: pl.DataFrame, load: MachineLoad, number: int, direction: str) -> DirectionTotals:
    amounts = {name: table[f"{direction}_{name}"] for name in AMOUNTS}
    operations = float(load.operations[number])
    sizes = load.sizes[:, number].tolist()
    bytes_of = dict(zip(PARTS, load.parts[:, number].sum(axis=1).tolist(), strict=True))
    return DirectionTotals(
        bytes=float(load.moved[number].sum()),
        **bytes_of,
        measured=float(load.measured[number]),
        outside=float(load.outside[number]),
        operations=None if math.isnan(operations) else operations,
        sizes=tuple(map(SizeClass, (0, *SIZE_LIMITS), (*SIZE_LIMITS, None), *sizes)),
        top_share=top_share(amounts["bytes"]),
        highest={name: quantile(values, 1.0) for name, values in amounts.items()},
        eighty={name: quantile(values) for name, values in amounts.items()},
    )


def _movers(jobs: pl.DataFrame, name: str, top: int) -> tuple[Mover, ...]:
    names = [f"{d}_{part}" for d in DIRECTIONS for part in PARTS[:2]]
    seconds = ((pl.col("end_us") - pl.col("start_us")) / SECOND).sum()
    sums = (
        jobs.group_by(name)
        .agg(pl.len(), *(pl.col(metric_column).sum() for metric_column in names), seconds=seconds)
        .sort(pl.sum_horizontal(names), name, descending=[True, False])
    )
    return tuple(
        Mover(
            name=row[name],
            jobs=row["len"],
            bytes={d: row[f"{d}_attributed"] + row[f"{d}_shared"] for d in DIRECTIONS},
            shared={d: row[f"{d}_shared"] for d in DIRECTIONS},
            seconds=row["seconds"],
        )
        for row in sums.head(top).iter_rows(named=True)
    )


@dataclass(frozen=True, slots=True)
class Profile:
    """Mean rates of the whole machine by local weekday (Monday first) and hour."""

    timezone: str
    rates: Floats  # (direction, weekday, hour) bytes per second; NaN where nothing was recorded


@dataclass(frozen=True, slots=True)
class Month:
    """What the servers moved in a month, and how that compares with the month before."""

    month: str  # 2026-10
    days: float  # recorded
    bytes: dict[str, float]
    change: dict[str, float | None]  # of the bytes per day, 0.1 is ten percent more


@dataclass(frozen=True, slots=True)
class AccountChange:
    """An account's bytes per day in the last two months that can be compared."""

    name: str | None
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The months, and which accounts changed most from the last but one to the last."""

    months: tuple[Month, ...]
    compared: tuple[str, str] | None
    accounts: tuple[AccountChange, ...]


def weekly_profile(load: MachineLoad, timezone: str = "UTC") -> Profile:
    """Return how the load is spread over the week."""
    seconds, moments = _recorded_seconds(load), _local_times(load, timezone).dt
    days = moments.weekday().cast(pl.Int64) - 1
    place = (24 * days + moments.hour()).to_numpy()
    time = np.bincount(place, seconds, 168)
    sums = np.stack([np.bincount(place, row, 168) for row in load.half_hours])
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(time > 0, sums / time, np.nan)
    return Profile(timezone, rates.reshape(2, 7, 24))


def monthly_trend(load: MachineLoad, timezone: str = "UTC", *, top: int = 10) -> Trend:
    """Return the load of each month, and whose changed."""
    names = _local_times(load, timezone).dt.strftime("%Y-%m").to_numpy()
    seconds = _recorded_seconds(load)
    months: list[Month] = []
    for name in np.unique(names):
        here = names == name
        days = float(seconds[here].sum()) / DAY
        moved = dict(zip(DIRECTIONS, load.half_hours[:, here].sum(axis=1).tolist(), strict=True))
        months.append(Month(str(name), days, moved, _monthly_change(months, days, moved)))
    long = [month for month in months if month.days >= MIN_DAYS]
    if len(long) < 2:
        return Trend(tuple(months), None, ())
    before, after = long[-2:]
    return Trend(
        tuple(months),
        (before.month, after.month),
        _account_changes(load, before, after, timezone, top),
    )


def _monthly_change(
    earlier: list[Month], days: float, moved: dict[str, float]
) -> dict[str, float | None]:
    before = earlier[-1] if earlier else None
    if before is None or min(before.days, days) < MIN_DAYS:
        return dict.fromkeys(DIRECTIONS)
    return {
        d: (moved[d] / days) / (before.bytes[d] / before.days) - 1 if before.bytes[d] > 0 else None
        for d in DIRECTIONS
    }


def _account_changes(
    load: MachineLoad, before: Month, after: Month, timezone: str, top: int
) -> tuple[AccountChange, ...]:
    """Compare accounts by the bytes of the jobs that began in a month."""
    began = pl.from_epoch("start_us", time_unit="us").dt.replace_time_zone("UTC")
    names = [f"{d}_{part}" for d in DIRECTIONS for part in PARTS[:2]]
    moved = load.jobs.select(
        "account",
        month=began.dt.convert_time_zone(timezone).dt.strftime("%Y-%m"),
        moved=pl.sum_horizontal(names),
    )
    sums = moved.group_by("account").agg(
        (pl.col("moved").filter(pl.col("month") == month.month).sum() / month.days).alias(name)
        for name, month in (("before", before), ("after", after))
    )
    change = (pl.col("after") - pl.col("before")).abs()
    ordered = sums.sort(change, "account", descending=[True, False]).head(top)
    return tuple(
        AccountChange(*row) for row in ordered.select("account", "before", "after").iter_rows()
    )


def _recorded_seconds(load: MachineLoad) -> Floats:
    """How much of each half hour was recorded."""
    edges = np.clip(load.half_hours_us, load.edges_us[0], load.edges_us[-1])
    return np.diff(edges) / SECOND


def _local_times(load: MachineLoad, timezone: str) -> pl.Series:
    """When each half hour begins."""
    moments = pl.from_epoch(pl.Series(load.half_hours_us[:-1]), time_unit="us")
    return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(timezone)


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
        hours=(pl.col("end_us") - pl.col("start_us")) / (3600 * SECOND),
        busy=pl.max_horizontal(pl.col(metric_column(d, "intensity", lowest)) for d in DIRECTIONS),
        moved=pl.sum_horizontal(f"{d}_bytes" for d in DIRECTIONS),
    )
    busy = table.filter((pl.col("busy") >= MINOR) & (pl.col("attribution") != "marked"))
    operations = pl.sum_horizontal(f"{d}_operations" for d in DIRECTIONS)
    small = (operations > 0) & (pl.col("moved") < SMALL_REQUEST * operations)
    spread = pl.max_horizontal(
        pl.col(metric_column(d, "parallel_intensity", lowest)) for d in DIRECTIONS
    )
    one_server = (pl.col("servers") >= MIN_SERVERS) & (spread < MINOR)
    disturbing = [
        Contact(pair.neighbour.user, "disturbs_others", pair.neighbour.jobs, pair.neighbour.hours,
                pair.hours * (1 - 1 / pair.slowdown), 0.0)  # the hours that others lose
        for pair in disturbances
        if pair.certain
    ]  # fmt: skip
    rows = [
        *_by_user(busy.filter(small), "small_requests"),
        *_by_user(busy.filter(one_server), "one_server_at_a_time"),
        *disturbing,
    ]
    return tuple(sorted(rows, key=lambda contact: -contact.hours_at_stake)[:top])


def _by_user(table: pl.DataFrame, reason: str) -> list[Contact]:
    sums = table.group_by("user").agg(
        pl.len(), pl.col("hours").sum(), (pl.col("hours") * pl.col("busy")).sum().alias("io"),
        pl.col("moved").sum(),
    )  # fmt: skip
    return [
        Contact(user, reason, jobs, hours, at_stake, moved)
        for user, jobs, hours, at_stake, moved in sums.sort("user").iter_rows()
    ]
