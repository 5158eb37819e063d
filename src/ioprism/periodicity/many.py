"""The periods of many jobs: one row each, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioprism.engine.base import Engine
from ioprism.engine.cluster import CRASHED, map_in_processes
from ioprism.errors import AnalysisError, IoprismError, SignalTooShortError
from ioprism.formats.job_groups import Group
from ioprism.model.pseudonyms import shown_message
from ioprism.model.result import Result, pick
from ioprism.model.trace import Trace
from ioprism.periodicity.of_job import PeriodSettings, job_periodicity
from ioprism.text import printable
from ioprism.units import format_counted

if TYPE_CHECKING:
    import polars as pl

    from ioprism.formats.reading import Reading


@dataclass(frozen=True, slots=True)
class JobPeriod:
    """One row of a table of many jobs, without numbers if it has no period."""

    path: str
    application: str | None
    ranks: int | None
    runtime: float | None  # seconds
    direction: str  # of the period, or of what was looked at
    pattern: str  # periodic, slotted or none
    seconds: float | None = None  # the period
    duty_cycle: float | None = None  # share of the period in which a phase runs, 0 to 1
    phase_bytes: float | None = None
    confidence: float | None = None
    false_alarm_probability: float | None = None
    certainty: str | None = None
    bytes_share: float | None = None
    phases: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class FailedPeriod:
    """A job that cannot be answered, and why."""

    message: str


@dataclass(frozen=True, slots=True, repr=False)
class PeriodTable(Result):
    """The periods of many jobs, those with the clearest period first."""

    jobs: tuple[JobPeriod, ...]
    failed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism period --json` prints for several jobs."""
        return {"jobs": [job.to_dict() for job in self.jobs], "failed": list(self.failed)}

    def to_frame(self) -> pl.DataFrame:
        """Return one row per job."""
        import polars as pl

        return pl.DataFrame([job.to_dict() for job in self.jobs], infer_schema_length=None)

    def summary(self) -> str:
        """Return the answer in one line."""
        periodic = sum(job.pattern == "periodic" for job in self.jobs)
        return f"{format_counted(len(self.jobs), 'job')}, {periodic:,} with a period"


def describe_job(trace: Trace, engine: Engine, settings: PeriodSettings) -> JobPeriod:
    """Find the period of a job, as a row of a table."""
    words = (trace.job.executable or "").split()
    known: Mapping[str, Any] = {
        "path": str(trace.paths[0]) if trace.paths else "",
        "application": Path(words[0]).name if words else None,
        "ranks": trace.population.ranks,
        "runtime": trace.job.runtime,
    }
    try:
        periodicity = job_periodicity(trace, engine, settings).whole
    except SignalTooShortError:  # too little I/O for a period is none
        return JobPeriod(**known, direction=settings.direction, pattern="none")
    period, burst = periodicity.period, periodicity.burst
    if period is None or burst is None:
        pattern = "none" if periodicity.slotted is None else "slotted"
        return JobPeriod(**known, direction=periodicity.direction, pattern=pattern)
    return JobPeriod(
        **known,
        direction=periodicity.direction,
        pattern="periodic",
        duty_cycle=burst.duty_cycle,
        phase_bytes=burst.bytes,
        phases=len(period.phases),
        **pick(
            period, "seconds", "confidence", "false_alarm_probability", "certainty", "bytes_share"
        ),
    )


def period_table(
    groups: Sequence[Group],
    settings: PeriodSettings,
    *,
    format_name: str | None = None,
    reading: Reading | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> PeriodTable:
    """Find the periods of many jobs, each group of paths being one, on all cores."""
    work = partial(_attempt, settings=settings, format_name=format_name, reading=reading)
    rows = []
    for row in map_in_processes(work, groups, crashed=_crashed_job):
        rows.append(row)
        progress(len(rows))
    jobs = [row for row in rows if isinstance(row, JobPeriod)]
    failed = [shown_message(row.message) for row in rows if isinstance(row, FailedPeriod)]
    jobs.sort(key=lambda job: (job.pattern != "periodic", -(job.confidence or 0.0), job.path))
    return PeriodTable(tuple(jobs), tuple(failed))


def _attempt(
    group: Group,
    *,
    settings: PeriodSettings,
    format_name: str | None,
    reading: Reading | None,
) -> JobPeriod | FailedPeriod:
    from ioprism.engine.base import LocalEngine
    from ioprism.formats.registry import read_trace

    try:
        trace = read_trace(*group, format_name=format_name, grouping="one", reading=reading)
        return describe_job(trace, LocalEngine(), settings)
    except AnalysisError as error:
        return FailedPeriod(f"{printable(str(group[0]))}: {_first_line(error)}")
    except (IoprismError, OSError) as error:
        return FailedPeriod(_first_line(error))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _crashed_job(group: Group) -> JobPeriod | FailedPeriod:
    return FailedPeriod(f"{printable(str(group[0]))}: {CRASHED}")
