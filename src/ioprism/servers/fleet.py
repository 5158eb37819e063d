"""What all jobs and servers together say about a machine: totals, maxima, the 80 % table, users.

Totals, users and accounts are the servers' account, over every job of the list; maxima and the
80 % table are over the jobs that ran long enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.model.counters import DIRECTIONS
from ioprism.servers.load import PARTS, SIZE_LIMITS, MachineLoad
from ioprism.servers.result import FLAGS, MEASURES, JobMetrics, column
from ioprism.settings import Thresholds

SHARE_OF_JOBS = 0.8  # the paper's Table II: 80 % of jobs stay at or below
TOP = 0.2  # the paper's share of jobs that move nearly everything
AMOUNTS = ("bytes", "operations", "max_bandwidth", "max_operation_rate")
# A mean of requests is small below half the size that makes one small: a few short ones among
# many that are just long enough must not count.
SMALL = int(Thresholds().small_bytes) // 2
DOMINANT = 2 / 3  # of the bytes: twice as much in one direction as in the other


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Requests in sampling steps whose mean request lies in a range of sizes."""

    low: int
    high: int | None
    bytes: float
    operations: float


@dataclass(frozen=True, slots=True)
class Totals:
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
        small = sum(size.operations for size in self.sizes if (size.high or math.inf) <= SMALL)
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
    totals: dict[str, Totals]
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


def fleet(metrics: JobMetrics, load: MachineLoad, *, top: int = 20) -> Fleet:
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
        eighty=_eighty(metrics),
        flags={flag: int(table[flag].sum()) for flag in FLAGS},
        attributions=metrics.attributions,
        split=metrics.split,
        users=_movers(load.jobs, "user", top),
        accounts=_movers(load.jobs, "account", top),
        busiest=ordered.head(top),
        flagged=ordered.filter(pl.any_horizontal(FLAGS)),
    )


def _eighty(metrics: JobMetrics) -> tuple[EightyRow, ...]:
    def values(measure: str, threshold: int) -> dict[str, float | None]:
        return {d: quantile(metrics.table[column(d, measure, threshold)]) for d in DIRECTIONS}

    return tuple(
        EightyRow(measure, threshold, values(measure, threshold))
        for measure in MEASURES
        for threshold in metrics.settings.thresholds
    )


def quantile(values: pl.Series, share: float = SHARE_OF_JOBS) -> float | None:
    """Return the smallest value that this share of the values stays at or below."""
    known = values.drop_nulls().sort()
    return float(known[math.ceil(share * len(known)) - 1]) if len(known) else None


def top_share(values: pl.Series, share: float = TOP) -> float | None:
    """Return what part of a sum its largest values make, of this share of all values."""
    known = values.fill_null(0).sort(descending=True)
    total = float(known.sum())
    return float(known.head(math.ceil(share * len(known))).sum()) / total if total > 0 else None


def _totals(table: pl.DataFrame, load: MachineLoad, number: int, direction: str) -> Totals:
    amounts = {name: table[f"{direction}_{name}"] for name in AMOUNTS}
    operations = float(load.operations[number])
    bytes_of = dict(zip(PARTS, load.parts[:, number].sum(axis=1).tolist(), strict=True))
    return Totals(
        bytes=float(load.moved[number].sum()),
        **bytes_of,
        measured=float(load.measured[number]),
        outside=float(load.outside[number]),
        operations=None if math.isnan(operations) else operations,
        sizes=_sizes(load, number),
        top_share=top_share(amounts["bytes"]),
        highest={name: _highest(values) for name, values in amounts.items()},
        eighty={name: quantile(values) for name, values in amounts.items()},
    )


def _sizes(load: MachineLoad, number: int) -> tuple[SizeClass, ...]:
    lows, highs = (0, *SIZE_LIMITS), (*SIZE_LIMITS, None)
    moved, operations = load.sizes[:, number].tolist()
    return tuple(map(SizeClass, lows, highs, moved, operations))


def _highest(values: pl.Series) -> float | None:
    known = values.drop_nulls().to_numpy()
    return float(np.max(known)) if len(known) else None


def _movers(jobs: pl.DataFrame, name: str, top: int) -> tuple[Mover, ...]:
    names = [f"{d}_{part}" for d in DIRECTIONS for part in PARTS[:2]]
    seconds = ((pl.col("end_us") - pl.col("start_us")) / 1e6).sum()
    sums = (
        jobs.group_by(name)
        .agg(pl.len(), *(pl.col(column).sum() for column in names), seconds=seconds)
        .sort(pl.sum_horizontal(names), name, descending=[True, False])
    )
    return tuple(_mover(row, name) for row in sums.head(top).iter_rows(named=True))


def _mover(row: dict[str, float], name: str) -> Mover:
    return Mover(
        name=row[name],  # type: ignore[arg-type]
        jobs=int(row["len"]),
        bytes={d: row[f"{d}_attributed"] + row[f"{d}_shared"] for d in DIRECTIONS},
        shared={d: row[f"{d}_shared"] for d in DIRECTIONS},
        seconds=row["seconds"],
    )
