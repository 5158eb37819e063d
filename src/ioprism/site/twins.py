"""What other jobs reached on the same file system decides what a change can save.

Twins are jobs that moved similar data with similar ranks and differ in the one property that a
fix would change: larger requests, or more storage targets. If they are not faster, the property
is not the cause. If all of them are faster than all runs like this one, it is, and the
difference is the saving. No saving may need a rate that no comparable job has reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.rows import Floats
from ioprism.model.verdict import AchievedRate, ReachedByOthers
from ioprism.site.limits import LARGE, MIN_JOBS, SIMILAR, TENTH
from ioprism.text import printable

_LARGE = pl.col("bytes") >= LARGE * Limits().block * pl.col("requests")


@dataclass(frozen=True, slots=True)
class TwinSaving:
    """Seconds that others' rates allow to save, and how many others there are."""

    seconds: float
    low: float
    high: float
    jobs: int
    spent: float  # seconds of this run in the requests concerned
    rate: float  # of this run
    others: float  # median rate of the others

    def scale(self, factor: float) -> TwinSaving:
        """Return the savings, scaled from seconds of requests to seconds that the job waits."""
        names = ("seconds", "low", "high", "spent")
        return replace(self, **{name: getattr(self, name) * factor for name in names})

    @property
    def is_noise(self) -> bool:
        """Whether runs of one program differ by as much, and the others are not all faster."""
        return self.low <= 0 and self.seconds <= Limits().run_noise * self.spent


@dataclass(frozen=True, slots=True, eq=False)
class OthersRates:
    """Rates that other jobs reached: the table `rates` of a site store, without this run."""

    rates: pl.DataFrame

    def reached(self, rows: Sequence[AchievedRate]) -> list[ReachedByOthers]:
        """Return the rates of all other jobs, for each operation of this run's main file system."""
        entries = []
        for whole in _by_operation(rows):
            sums = self._comparable(whole).group_by("job").agg(pl.col("bytes", "seconds").sum())
            costs = _costs(sums)
            if len(costs) and whole.rate is not None:
                upper, median = (1 / _quantile(costs, q) for q in (TENTH, 0.5))
                place = printable(whole.file_system)
                entries.append(
                    ReachedByOthers(whole.operation, place, len(costs), whole.rate, median, upper)
                )
        return entries

    def room(
        self, rows: Sequence[AchievedRate], ranks: int, operation: str | None = None
    ) -> tuple[float, int] | None:
        """Seconds above the time that these bytes need at the best rate of others, and how many.

        Only jobs in which all ranks move data in large requests show what the file system can do,
        and only several kinds of them: jobs that do the same as this one do not bound a change.
        None where no operation has enough of them.
        """
        left, jobs = 0.0, 0
        for whole in _by_operation(rows):
            if operation not in (None, whole.operation):
                continue
            best = self._comparable(replace(whole, ranks=ranks)).filter(_LARGE)
            kinds = best.select("size_class", "shared", "targets").n_unique()
            if kinds < MIN_JOBS:
                left += whole.seconds
                continue
            jobs = max(jobs, best["job"].n_unique())
            left += max(0.0, whole.seconds - whole.bytes * _quantile(_costs(best), TENTH))
        return (left, jobs) if jobs else None

    def larger_requests(self, rows: Sequence[AchievedRate], operation: str) -> TwinSaving | None:
        """Return what larger requests would save, by jobs that made them."""
        block = LARGE * Limits().block
        small = [r for r in rows if r.operation == operation and r.request_bytes < block]
        if not small:
            return None
        row = max(small, key=lambda one: one.seconds)
        others = self._similar(row).filter(pl.col("shared") == row.shared)
        if row.targets is not None:  # unknown numbers exclude no job
            near = pl.col("targets") < SIMILAR * row.targets
            others = others.filter(near.fill_null(True))
        twins = others.filter(_LARGE)
        alike = others.filter((pl.col("size_class") == row.size_class) & ~_LARGE)
        return _saving(row, twins, alike)

    def more_targets(self, rows: Sequence[AchievedRate]) -> tuple[float, int] | None:
        """Return the most that more targets would save, and the number of jobs that show it.

        Such jobs may also share no files: they can rule the cause out, not prove it. What a run
        with as few targets reached needs no more of them. None where neither operation has enough
        jobs to compare with.
        """
        room, jobs = 0.0, 0
        for row in _largest_of_operations(rows):
            if row.targets is None:
                return None
            near = (pl.col("size_class") - row.size_class).abs() <= 1  # neighbouring classes
            others = self._similar(row).filter(near)
            costs = _costs(others.filter(pl.col("targets") >= SIMILAR * row.targets))
            few = others.filter(
                (pl.col("shared") == row.shared) & (pl.col("targets") <= row.targets)
            )
            own = row.seconds / row.bytes
            reached = min(own, *_costs(few).tolist()) if few.height else own
            if 1 + len(costs) < MIN_JOBS:
                room += row.bytes * reached
                continue
            jobs = max(jobs, len(costs))
            room += max(0.0, row.bytes * (reached - _quantile(costs, TENTH)))
        return (room, jobs) if jobs else None

    def _comparable(self, row: AchievedRate) -> pl.DataFrame:
        """Entries of jobs on the same file system, with similar ranks and enough bytes."""
        ranks = max(1, row.ranks)
        return self.rates.filter(
            (pl.col("file_system") == row.file_system)
            & (pl.col("operation") == row.operation)
            & pl.col("ranks").is_between(ranks / SIMILAR, ranks * SIMILAR)
            & (pl.col("seconds") > 0)
            & (pl.col("synced") == row.synced)
            & ((pl.col("bytes") >= row.bytes / SIMILAR) | pl.col("synced"))
            & (pl.col("bytes") >= Limits().block)
        )

    def _similar(self, row: AchievedRate) -> pl.DataFrame:
        """Entries of such jobs that moved about as much."""
        few = pl.col("bytes") <= SIMILAR * row.bytes
        return self._comparable(row).filter(few | pl.col("synced"))


def _by_operation(rows: Sequence[AchievedRate]) -> list[AchievedRate]:
    """All that the run reads, and all that it writes, on the file system that takes most time."""
    wholes = []
    for largest in _largest_of_operations(rows):
        mine = [
            row
            for row in rows
            if (row.operation, row.file_system) == (largest.operation, largest.file_system)
        ]
        whole = replace(
            largest,
            ranks=max(row.ranks for row in mine),
            requests=sum(row.requests for row in mine),
            bytes=sum(row.bytes for row in mine),
            seconds=sum(row.seconds for row in mine),
            synced=any(row.synced for row in mine),
        )
        wholes.append(whole)
    return wholes


def _largest_of_operations(rows: Sequence[AchievedRate]) -> list[AchievedRate]:
    by_seconds = sorted(rows, key=lambda row: row.seconds)
    return list({row.operation: row for row in by_seconds if row.seconds > 0}.values())


def _saving(row: AchievedRate, twins: pl.DataFrame, alike: pl.DataFrame) -> TwinSaving | None:
    """Compare this run, and others like it, with its twins; None where they are too few.

    Everything is seconds per byte: a time that is twice as long weighs as much as it costs.
    """
    quick = _costs(twins)
    if not len(quick) or len(quick) + len(alike) + 1 < MIN_JOBS or row.rate is None:
        return None
    own = 1 / row.rate
    usual = np.append(_costs(alike), own)
    likely = row.bytes * (min(own, _quantile(usual, 0.5)) - _quantile(quick, 0.5))
    low = row.bytes * (min(own, _quantile(usual, TENTH)) - _quantile(quick, 1 - TENTH))
    high = row.bytes * (own - _quantile(quick, TENTH))
    likely = max(0.0, likely)
    noise = Limits().run_noise * likely
    return TwinSaving(
        likely,
        max(0.0, low - noise),
        max(likely + noise, high),
        len(quick),
        row.seconds,
        row.rate,
        float(1 / _quantile(quick, 0.5)),
    )


def _costs(table: pl.DataFrame) -> Floats:
    return (table["seconds"] / table["bytes"]).to_numpy().astype(np.float64)


def _quantile(values: Floats, share: float) -> float:
    """A quantile that one of the values has; a median between two of them."""
    method = "median_unbiased" if share == 0.5 else "lower" if share < 0.5 else "higher"
    return float(np.quantile(values, share, method=method))  # type: ignore[call-overload]
