"""What all jobs together say about a machine: totals, maxima, the 80 % table, who moves most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from ioprism.analyses.job_metrics.result import FLAGS, MEASURES, JobMetrics, column
from ioprism.model.counters import DIRECTIONS

SHARE_OF_JOBS = 0.8  # the paper's Table II: 80 % of jobs stay at or below
TOP = 0.2  # the paper's share of jobs that move nearly everything
AMOUNTS = ("bytes", "operations", "max_bandwidth", "max_operation_rate")


@dataclass(frozen=True, slots=True)
class Totals:
    """One direction of the whole machine."""

    bytes: float
    operations: float | None
    top_share: float | None  # of the bytes, moved by the top 20 % of jobs
    highest: dict[str, float | None]  # by any one job
    eighty: dict[str, float | None]  # 80 % of jobs stay at or below


@dataclass(frozen=True, slots=True)
class EightyRow:
    """One line of the 80 % table: what 80 % of jobs stay at or below."""

    measure: str
    threshold: int
    values: dict[str, float | None]  # by direction


@dataclass(frozen=True, slots=True)
class Mover:
    """A user or an account, and what its jobs moved."""

    name: str | None
    jobs: int
    bytes: dict[str, float]  # by direction
    seconds: float  # run time of its jobs


@dataclass(frozen=True, slots=True)
class Fleet:
    """The numbers of the machine-wide report."""

    jobs: int
    start_us: int
    end_us: int
    totals: dict[str, Totals]
    eighty: tuple[EightyRow, ...]
    flags: dict[str, int]
    users: tuple[Mover, ...]
    accounts: tuple[Mover, ...]
    busiest: pl.DataFrame  # jobs by bytes moved, both directions
    flagged: pl.DataFrame


def fleet(metrics: JobMetrics, *, top: int = 20) -> Fleet:
    """Summarise the jobs of a machine."""
    table = metrics.table
    moved = sum((pl.col(f"{d}_bytes").fill_null(0) for d in DIRECTIONS), pl.lit(0.0))
    ordered = table.with_columns(moved=moved).sort("moved", "job", descending=[True, False])
    return Fleet(
        jobs=table.height,
        start_us=int(table["start_us"].to_numpy().min()),
        end_us=int(table["end_us"].to_numpy().max()),
        totals={direction: _totals(table, direction) for direction in DIRECTIONS},
        eighty=tuple(
            EightyRow(
                measure,
                threshold,
                {d: quantile(table[column(d, measure, threshold)]) for d in DIRECTIONS},
            )
            for measure in MEASURES
            for threshold in metrics.settings.thresholds
        ),
        flags={flag: int(table[flag].sum()) for flag in FLAGS},
        users=_movers(table, "user", top),
        accounts=_movers(table, "account", top),
        busiest=ordered.head(top),
        flagged=ordered.filter(pl.any_horizontal(FLAGS)),
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


def _totals(table: pl.DataFrame, direction: str) -> Totals:
    amounts = {name: table[f"{direction}_{name}"] for name in AMOUNTS}
    operations = amounts["operations"].drop_nulls()
    return Totals(
        bytes=float(amounts["bytes"].sum()),
        operations=float(operations.sum()) if len(operations) else None,
        top_share=top_share(amounts["bytes"]),
        highest={name: _highest(values) for name, values in amounts.items()},
        eighty={name: quantile(values) for name, values in amounts.items()},
    )


def _highest(values: pl.Series) -> float | None:
    known = values.drop_nulls().to_numpy()
    return float(known.max()) if len(known) else None


def _movers(table: pl.DataFrame, name: str, top: int) -> tuple[Mover, ...]:
    sums = (
        table.group_by(name)
        .agg(
            pl.len(),
            *(pl.col(f"{direction}_bytes").sum() for direction in DIRECTIONS),
            seconds=((pl.col("end_us") - pl.col("start_us")) / 1e6).sum(),
        )
        .sort(pl.sum_horizontal(f"{d}_bytes" for d in DIRECTIONS), name, descending=[True, False])
    )
    return tuple(
        Mover(
            row[name],
            row["len"],
            {direction: row[f"{direction}_bytes"] for direction in DIRECTIONS},
            row["seconds"],
        )
        for row in sums.head(top).iter_rows(named=True)
    )
