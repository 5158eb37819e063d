"""What a change did: run time and stall time, what was promised, numbers and findings.

Each side is one run or several of the same program. Means are compared; where a side was repeated,
noise is known, and a difference that it explains is not called a change.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import polars as pl

from ioprism.characteristics.totals import Amount, Characteristics
from ioprism.comparison.repetitions import Difference, difference
from ioprism.model.result import Result, pick
from ioprism.model.verdict import Cause, Finding
from ioprism.units import format_bytes, format_counted

SAME = 0.02  # single runs: numbers that differ by a smaller share are called the same
SAME_WORK = 0.05  # sides whose bytes differ by more did other work
REMOVED = 0.5  # a cause whose saving shrank to less than this share was removed by the change
ROUNDING = 1e-9  # of a sum: what is left over by its last digits


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """What a comparison needs to know of one run."""

    characteristics: Characteristics
    findings: tuple[Finding, ...] = ()
    runtime: float | None = None  # seconds
    stall: float | None = None  # seconds of the run in which I/O stalls it
    causes: tuple[Cause, ...] = ()  # of its diagnosis, largest saving first
    format: str = ""  # of its trace


@dataclass(frozen=True, slots=True)
class CauseChange:
    """A cause before and after the change: mean saving over the runs; zero where it is gone."""

    code: str
    title: str
    culprit: Mapping[str, Any]
    before: float
    low: float
    high: float
    after: float

    @property
    def removed(self) -> bool:
        """Whether the change removed it, or most of it."""
        return self.before > 0 and self.after < REMOVED * self.before


@dataclass(frozen=True, slots=True)
class Promise:
    """Seconds that the diagnosis said can be saved."""

    seconds: float
    low: float
    high: float
    codes: tuple[str, ...]  # of the causes that the change removed, else of the main cause
    removed: bool


@dataclass(frozen=True, slots=True)
class Metric:
    """One number before and after."""

    name: str
    before: float | None
    after: float | None
    less_is_better: bool | None = None  # None: neither is
    beyond_noise: bool | None = None  # None: no side was repeated

    @property
    def ratio(self) -> float | None:
        """After over before; None where there is nothing to divide by."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return pick(self, "name", "before", "after", "ratio", "better")

    @property
    def better(self) -> bool | None:
        """Whether the change helped; None where it is the same, within noise, or not judged."""
        ratio = self.ratio
        if ratio is None or self.less_is_better is None or self.beyond_noise is False:
            return None
        if self.beyond_noise is None and abs(ratio - 1) <= SAME:
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
    """Two sides, each of one run or several."""

    metrics: tuple[Metric, ...]
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    kept: tuple[Kept, ...]
    runs: tuple[int, int] = (1, 1)  # before, after
    runtime: Difference | None = None
    stall: Difference | None = None
    promise: Promise | None = None
    causes: tuple[CauseChange, ...] = ()
    warnings: tuple[str, ...] = ()  # why the sides may not be comparable

    @property
    def promised(self) -> float | None:
        """Seconds that the diagnosis of the runs before said can be saved."""
        return None if self.promise is None else self.promise.seconds

    @property
    def delivered(self) -> float | None:
        """Seconds that the runs after are shorter."""
        return None if self.runtime is None else self.runtime.saved

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `within noise`, or `not repeated` where noise is not known."""
        if self.runtime is None or self.runtime.beyond_noise is None:
            return "not repeated"
        if not self.runtime.beyond_noise:
            return "within noise"
        return "faster" if self.runtime.saved > 0 else "slower"

    def is_regression(self, share: float) -> bool:
        """Whether the run time grew by at least this share, beyond noise."""
        return self.runtime is not None and self.runtime.is_regression(share)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism compare --json` says."""
        return {
            "verdict": self.verdict,
            "runs": {"before": self.runs[0], "after": self.runs[1]},
            "promised": self.promised,
            "promise": None if self.promise is None else asdict(self.promise),
            "delivered": self.delivered,
            "run_time": None if self.runtime is None else self.runtime.to_dict(),
            "io_stall": None if self.stall is None else self.stall.to_dict(),
            "causes": [{**asdict(cause), "removed": cause.removed} for cause in self.causes],
            "not_comparable": list(self.warnings),
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
        return f"{self.verdict}; {gone} gone, {len(self.new)} new, {len(self.kept)} kept"


def compare(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Comparison:
    """Compare one or several runs on each side; findings and causes are the same by their code."""
    first, second = (_by_code(f for run in runs for f in run.findings) for runs in (before, after))
    causes = tuple(_causes(before, after))
    return Comparison(
        metrics=tuple(_metrics(before, after)),
        gone=tuple(finding for code, finding in first.items() if code not in second),
        new=tuple(finding for code, finding in second.items() if code not in first),
        kept=tuple(Kept(first[code], second[code]) for code in first if code in second),
        runs=(len(before), len(after)),
        runtime=_difference(before, after, lambda run: run.runtime),
        stall=_difference(before, after, lambda run: run.stall),
        promise=_promise(causes),
        causes=causes,
        warnings=tuple(_unlike(before, after)),
    )


def _difference(
    before: Sequence[ComparedRun],
    after: Sequence[ComparedRun],
    value: Callable[[ComparedRun], float | None],
) -> Difference | None:
    """Compare what all runs have; None where one lacks it."""
    sides = [[number for run in runs if (number := value(run)) is not None]
             for runs in (before, after)]  # fmt: skip
    if [len(side) for side in sides] != [len(before), len(after)]:
        return None
    return difference(*sides)


def _causes(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Iterator[CauseChange]:
    """Yield the causes of the runs before, largest saving first, and what is left of each."""
    causes: dict[str, Cause] = {}
    for run in before:
        for cause in run.causes:
            causes.setdefault(cause.code, cause)

    def mean(runs: Sequence[ComparedRun], code: str, number: str) -> float:
        savings = (cause.saving for run in runs for cause in run.causes if cause.code == code)
        return float(sum(getattr(saving, number) for saving in savings)) / len(runs)

    changes = (
        CauseChange(
            code,
            cause.title,
            cause.culprit,
            before=mean(before, code, "seconds"),
            low=mean(before, code, "low"),
            high=mean(before, code, "high"),
            after=mean(after, code, "seconds"),
        )
        for code, cause in causes.items()
    )
    yield from sorted(changes, key=lambda change: -change.before)


def _promise(causes: Sequence[CauseChange]) -> Promise | None:
    """Return what the causes that the change removed were said to cost; else the main cause."""
    removed = [cause for cause in causes if cause.removed]
    chosen = removed or causes[:1]
    if not chosen:
        return None
    seconds, low, high = (
        sum(getattr(cause, number) for cause in chosen) for number in ("before", "low", "high")
    )
    return Promise(seconds, low, high, tuple(cause.code for cause in chosen), bool(removed))


def _unlike(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Iterator[str]:
    """Name what differs between the sides although it should not."""
    for what, value in UNCHANGED.items():
        old, new = ({value(run) for run in runs} - {None} for runs in (before, after))
        if old and new and old != new:
            yield f"{what} differs: {_join_names(old)} before, {_join_names(new)} after"
    for kind in ("read", "write"):
        sizes = [
            fmean(run.characteristics.by_operation[kind].bytes for run in runs)
            for runs in (before, after)
        ]
        if abs(sizes[1] - sizes[0]) > SAME_WORK * max(sizes):
            verb = "read" if kind == "read" else "written"
            yield (
                f"bytes {verb} differ: {format_bytes(sizes[0])} before, "
                f"{format_bytes(sizes[1])} after"
            )


UNCHANGED: Mapping[str, Callable[[ComparedRun], object]] = {
    "the program": lambda run: _program(run.characteristics.job.executable),
    "the number of ranks": lambda run: run.characteristics.job.ranks,
    "the trace format": lambda run: run.format or None,
}


def _program(executable: str | None) -> str | None:
    """The program's file name; its folder may differ between two builds."""
    return posixpath.basename(executable.split()[0]) if executable and executable.split() else None


def _join_names(values: Iterable[object]) -> str:
    return " and ".join(sorted(map(str, values)))


def _by_code(findings: Iterable[Finding]) -> dict[str, Finding]:
    """The worst finding of each code; records of bottlenecks differ from run to run."""
    by_code: dict[str, Finding] = {}
    for finding in findings:
        if not finding.code.startswith("bottleneck-"):
            by_code.setdefault(finding.code, finding)
    return by_code


def _metrics(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Iterator[Metric]:
    """Yield every number: its mean on each side, and whether noise explains the difference."""
    for name, (value, less_is_better) in NUMBERS.items():
        change = _difference(before, after, value)
        if change is not None:
            yield Metric(name, change.before, change.after, less_is_better, change.beyond_noise)
            continue
        sides = ([value(run) for run in runs] for runs in (before, after))
        known = ([number for number in side if number is not None] for side in sides)
        old, new = (fmean(side) if side else None for side in known)
        yield Metric(name, old, new, less_is_better)


Number = Callable[[ComparedRun], float | None]


def _numbers() -> Iterator[tuple[str, Number, bool | None]]:
    """Yield names, values, and whether less is better."""
    yield "runtime", lambda run: run.runtime, True
    yield "io_stall", lambda run: run.stall, True
    yield "ranks", lambda run: run.characteristics.job.ranks, None
    yield "io_time", lambda run: run.characteristics.io_time, True
    kinds = ("read", "write", "metadata")
    for kind in kinds:  # with the library's time, they add up to the time in I/O calls
        yield f"{kind}_time", _of(kind, lambda part: part.time), True
    yield "library_time", lambda run: _above(run.characteristics), True
    yield "files", lambda run: run.characteristics.files, None
    for kind in kinds:
        yield f"{kind}_operations", _of(kind, lambda part: part.operations), True
        if kind != "metadata":
            yield f"{kind}_bytes", _of(kind, lambda part: part.bytes), None
            yield f"{kind}_request_size", _of(kind, lambda p: _each(p.bytes, p.operations)), False
            yield f"{kind}_rate", _of(kind, lambda part: _each(part.bytes, part.time)), False


def _of(kind: str, value: Callable[[Amount], float | None]) -> Number:
    return lambda run: value(run.characteristics.by_operation[kind])


def _above(characteristics: Characteristics) -> float:
    """Seconds in MPI-IO and libraries beyond those in the calls to the system below them.

    With the times of reads, writes and metadata calls they make up the time in I/O calls.
    """
    parts = sum(part.time for part in characteristics.by_operation.values())
    beyond = characteristics.io_time - parts
    return beyond if beyond > ROUNDING * characteristics.io_time else 0.0


def _each(amount: float, of: float) -> float | None:
    return amount / of if of else None


NUMBERS: Mapping[str, tuple[Number, bool | None]] = {
    name: (value, less_is_better) for name, value, less_is_better in _numbers()
}
