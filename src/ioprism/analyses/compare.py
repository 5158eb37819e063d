"""What a change did: the numbers of two runs side by side, findings gone, new and kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from ioprism.analyses.characterise import Characteristics
from ioprism.model.finding import Finding
from ioprism.model.result import Result
from ioprism.records import dataclass
from ioprism.units import format_counted

SAME = 0.02  # ratios closer to 1 than this are noise
ROUNDING = 1e-9  # of a sum: what is left over by its last digits


@dataclass(frozen=True, slots=True)
class Metric:
    """One number before and after."""

    name: str
    before: float | None
    after: float | None
    less_is_better: bool | None = None  # None: neither is

    @property
    def ratio(self) -> float | None:
        """After over before; None where there is nothing to divide by."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "before": self.before,
            "after": self.after,
            "ratio": self.ratio,
            "better": self.better,
        }

    @property
    def better(self) -> bool | None:
        """Whether the change helped; None where it did nothing, or nobody can say."""
        ratio = self.ratio
        if ratio is None or self.less_is_better is None or abs(ratio - 1) <= SAME:
            return None
        return (ratio < 1) == self.less_is_better


@dataclass(frozen=True, slots=True)
class Kept:
    """A finding that both runs have."""

    before: Finding
    after: Finding

    @property
    def seconds_saved(self) -> float | None:
        """Seconds at stake before, less those after."""
        before, after = self.before.seconds_at_stake, self.after.seconds_at_stake
        return None if before is None or after is None else before - after

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **self.after.to_dict(),
            "seconds_before": self.before.seconds_at_stake,
            "level_before": self.before.severity.value,
            "seconds_saved": self.seconds_saved,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """Two runs side by side."""

    metrics: tuple[Metric, ...]
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    kept: tuple[Kept, ...]
    promised: float | None = None  # seconds that the diagnosis of the first run said can be saved
    delivered: float | None = None  # seconds that the second run is shorter

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism compare --json` says."""
        return {
            "promised": self.promised,
            "delivered": self.delivered,
            "metrics": [metric.to_dict() for metric in self.metrics],
            "findings": {
                "gone": [finding.to_dict() for finding in self.gone],
                "new": [finding.to_dict() for finding in self.new],
                "kept": [pair.to_dict() for pair in self.kept],
            },
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per number."""
        columns = {"name": pl.String, "before": pl.Float64, "after": pl.Float64,
                   "ratio": pl.Float64, "better": pl.Boolean}  # fmt: skip
        return pl.DataFrame([metric.to_dict() for metric in self.metrics], schema=columns)

    def summary(self) -> str:
        """Return the answer in one line."""
        gone = format_counted(len(self.gone), "finding")
        return f"{gone} gone, {len(self.new)} new, {len(self.kept)} kept"


def compare(
    before: tuple[Characteristics, Iterable[Finding]],
    after: tuple[Characteristics, Iterable[Finding]],
) -> Comparison:
    """Compare the numbers and the findings of two runs; findings are the same by their code."""
    first, second = (_by_code(findings) for _, findings in (before, after))
    return Comparison(
        metrics=tuple(_metrics(before[0], after[0])),
        gone=tuple(finding for code, finding in first.items() if code not in second),
        new=tuple(finding for code, finding in second.items() if code not in first),
        kept=tuple(Kept(first[code], second[code]) for code in first if code in second),
    )


def _by_code(findings: Iterable[Finding]) -> dict[str, Finding]:
    """The worst finding of each code; records of bottlenecks differ from run to run."""
    by_code: dict[str, Finding] = {}
    for finding in findings:
        if not finding.code.startswith("bottleneck-"):
            by_code.setdefault(finding.code, finding)
    return by_code


def _metrics(before: Characteristics, after: Characteristics) -> Iterator[Metric]:
    yield Metric("runtime", before.job.runtime, after.job.runtime, True)
    yield Metric("ranks", before.job.ranks, after.job.ranks)
    yield Metric("io_time", before.io_time, after.io_time, True)
    kinds = ("read", "write", "metadata")
    for kind in kinds:  # with the library's time, they add up to the time in I/O calls
        old, new = before.by_operation[kind], after.by_operation[kind]
        yield Metric(f"{kind}_time", old.time, new.time, True)
    yield Metric("library_time", _above(before), _above(after), True)
    yield Metric("files", before.files, after.files)
    for kind in kinds:
        old, new = before.by_operation[kind], after.by_operation[kind]
        yield Metric(f"{kind}_operations", old.operations, new.operations, True)
        if kind != "metadata":
            yield Metric(f"{kind}_bytes", old.bytes, new.bytes)
            yield Metric(f"{kind}_request_size", _each(old.bytes, old.operations),
                         _each(new.bytes, new.operations), False)  # fmt: skip
            yield Metric(f"{kind}_rate", _each(old.bytes, old.time), _each(new.bytes, new.time),
                         False)  # fmt: skip


def _above(characteristics: Characteristics) -> float:
    """Seconds in MPI-IO and libraries beyond those in the calls to the system below them.

    With the times of reads, writes and metadata calls they make up the time in I/O calls.
    """
    parts = sum(part.time for part in characteristics.by_operation.values())
    beyond = characteristics.io_time - parts
    return beyond if beyond > ROUNDING * characteristics.io_time else 0.0


def _each(amount: float, of: float) -> float | None:
    return amount / of if of else None
