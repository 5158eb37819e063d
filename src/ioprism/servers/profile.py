"""When a machine is busy: by hour and weekday, and from month to month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.servers.load import PARTS, MachineLoad
from ioprism.servers.series import Floats

FEWEST_DAYS = 7.0  # a month with fewer is not compared with its neighbour
DAY = 86_400.0


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
class Change:
    """An account's bytes per day in the last two months that can be compared."""

    name: str | None
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The months, and which accounts changed most from the last but one to the last."""

    months: tuple[Month, ...]
    compared: tuple[str, str] | None
    accounts: tuple[Change, ...]


def profile(load: MachineLoad, timezone: str = "UTC") -> Profile:
    """Return how the load is spread over the week."""
    seconds, moments = _seconds(load), _local(load, timezone)
    place = np.array([moment.weekday() * 24 + moment.hour for moment in moments])
    time = np.bincount(place, seconds, 168)
    sums = np.stack([np.bincount(place, row, 168) for row in load.half_hours])
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(time > 0, sums / time, np.nan)
    return Profile(timezone, rates.reshape(2, 7, 24))


def trend(load: MachineLoad, timezone: str = "UTC", *, top: int = 10) -> Trend:
    """Return the load of each month, and whose changed."""
    names = np.array([f"{moment:%Y-%m}" for moment in _local(load, timezone)])
    seconds = _seconds(load)
    months: list[Month] = []
    for name in np.unique(names):
        here = names == name
        days = float(seconds[here].sum()) / DAY
        moved = dict(zip(DIRECTIONS, load.half_hours[:, here].sum(axis=1).tolist(), strict=True))
        months.append(Month(str(name), days, moved, _changes(months, days, moved)))
    long = [month for month in months if month.days >= FEWEST_DAYS]
    if len(long) < 2:
        return Trend(tuple(months), None, ())
    before, after = long[-2:]
    return Trend(
        tuple(months), (before.month, after.month), _accounts(load, before, after, timezone, top)
    )


def _changes(earlier: list[Month], days: float, moved: dict[str, float]) -> dict[str, float | None]:
    before = earlier[-1] if earlier else None
    if before is None or min(before.days, days) < FEWEST_DAYS:
        return dict.fromkeys(DIRECTIONS)
    return {
        d: (moved[d] / days) / (before.bytes[d] / before.days) - 1 if before.bytes[d] > 0 else None
        for d in DIRECTIONS
    }


def _accounts(
    load: MachineLoad, before: Month, after: Month, timezone: str, top: int
) -> tuple[Change, ...]:
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
    return tuple(Change(*row) for row in ordered.select("account", "before", "after").iter_rows())


def _seconds(load: MachineLoad) -> Floats:
    """How much of each half hour was recorded."""
    edges = np.clip(load.half_hours_us, load.edges_us[0], load.edges_us[-1])
    return np.diff(edges) / SECOND


def _local(load: MachineLoad, timezone: str) -> list[datetime]:
    zone = ZoneInfo(timezone)
    return [
        datetime.fromtimestamp(time / SECOND, UTC).astimezone(zone)
        for time in load.half_hours_us[:-1].tolist()
    ]
