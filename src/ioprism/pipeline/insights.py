"""From paths to insights: one job, or the many of a folder on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ioprism.analyses.evidence import Evidence, evidence_of_log, evidence_of_trace
from ioprism.errors import (
    BrokenTraceError,
    IoprismError,
    NoSuchTraceError,
    TraceError,
    UnknownFormatError,
)
from ioprism.formats.darshan.log import is_log
from ioprism.formats.darshan.plain import PlainLog, counters_alone, read_plain
from ioprism.formats.files import files_below
from ioprism.model.trace import Job, Progress
from ioprism.pipeline.processes import CRASHED, mapped
from ioprism.pipeline.verdict import first_views, judge_job, judge_log
from ioprism.records import dataclass
from ioprism.rules.registry import Insights
from ioprism.settings import Thresholds
from ioprism.storage.remote import exists
from ioprism.text import printable

if TYPE_CHECKING:  # a small log is judged without a table library
    from ioprism.formats.registry import Grouping

Group = tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """One job and what was found in it."""

    paths: Group
    format: str
    job: Job
    warnings: tuple[str, ...]
    insights: Insights


@dataclass(frozen=True, slots=True)
class Failed:
    """A log that cannot be read, and why."""

    message: str


def judge_group(
    group: Group,
    *,
    thresholds: Thresholds,
    format_name: str | None = None,
    servers: Path | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Judge one job.

    Args:
        group: the logs of the job.
        thresholds: when rules fire.
        format_name: of the logs, if it is not to be recognised.
        servers: a store of counters of the servers that the job used.
        progress: is told how many events were read.
    """
    log = counters_alone(group, format_name)
    if log is not None:
        return _judge_plain_log(log, thresholds, servers)
    from ioprism.engine.ahead import LookingAhead
    from ioprism.engine.local import LocalEngine
    from ioprism.engine.memory import in_memory
    from ioprism.formats.registry import read_trace

    trace = read_trace(*group, format_name=format_name)
    held = in_memory(trace, progress=progress)
    engine = LookingAhead(LocalEngine(progress), held, first_views(held))
    evidence = with_background_load(evidence_of_trace(held, engine, thresholds), servers)
    insights = judge_job(evidence, held, engine)
    return Judged(trace.paths, trace.format, trace.job, trace.completeness.warnings, insights)


def _judge_plain_log(log: PlainLog, thresholds: Thresholds, servers: Path | None) -> Judged:
    """Judge a log of counters, without loading a table library."""
    evidence = with_background_load(evidence_of_log(log, thresholds), servers)
    insights = judge_log(evidence)
    return Judged(log.paths, log.format, log.job, log.completeness.warnings, insights)


def with_background_load(evidence: Evidence, servers: Path | None) -> Evidence:
    """Add what the servers moved while the job ran, where both are known."""
    job = evidence.job
    if servers is None or job.start_time is None or job.end_time is None:
        return evidence
    from ioprism.analyses.background_load import background_load
    from ioprism.storage.counter_store import open_store

    seen = background_load(open_store(servers), start=job.start_time, end=job.end_time)
    return replace(evidence, background_load=seen)


def groups(
    paths: Sequence[Path], *, format_name: str | None, grouping: Grouping = "auto"
) -> list[Group]:
    """Return the logs of each job, by the rule that all commands share.

    Darshan logs are told apart without reading their calls, so that a folder of thousands of
    them costs little.

    Raises:
        NoSuchTraceError: there is nothing at a path.
        UnknownFormatError: there is no trace in a folder.
    """
    for path in paths:
        if not exists(path):
            raise NoSuchTraceError(path)
    if grouping == "one":
        return [tuple(paths)]
    units = [unit for path in paths for unit in _units(path, format_name)]
    if grouping == "each":
        return [(unit,) for unit in units]
    logs = [unit for unit in units if format_name in (None, "darshan") and is_log(unit)]
    closed = [unit for unit in units if not os.access(unit, os.R_OK)]  # which reading them says
    known = {*logs, *closed}
    others = [unit for unit in units if unit not in known]
    return [*_jobs(logs), *_other_jobs(others, format_name), *((unit,) for unit in closed)]


def _units(path: Path, format_name: str | None) -> list[Path]:
    """The traces at a path: itself, or those in a folder of Darshan logs."""
    if path.is_file():
        return [path]
    files = files_below(path)
    logs = [inner for inner in files if is_log(inner)]
    if not logs or format_name not in (None, "darshan"):
        return [path]
    known = set(logs)
    others = (inner for inner in files if inner not in known)
    return [*logs, *(one for one in others if not os.access(one, os.R_OK) or _recognised(one))]


def _other_jobs(paths: Sequence[Path], format_name: str | None) -> list[Group]:
    if len(paths) < 2:
        return [(path,) for path in paths]
    from ioprism.formats.registry import read_traces

    return [trace.paths for trace in read_traces(*paths, format_name=format_name)]


def _jobs(logs: Sequence[Path]) -> list[Group]:
    """Join the logs that the ranks of a killed job left."""
    jobs: dict[object, list[Path]] = {}
    for path in logs:
        jobs.setdefault(_killed_job(path) or path, []).append(path)
    return [tuple(paths) for paths in jobs.values()]


def _killed_job(path: Path) -> object | None:
    try:
        job = read_plain(path).job if "mmap" in path.name else None
    except TraceError:
        return None
    if job is None or job.end_time is not None or (job.ranks or 1) < 2:
        return None
    return path.parent, job.user, job.executable, job.ranks, int(job.start_time or 0)


def _recognised(path: Path) -> bool:
    from ioprism.formats.registry import find_reader

    try:
        find_reader(path)
    except (UnknownFormatError, BrokenTraceError):
        return False
    return True


def judge_many(
    jobs: Sequence[Group],
    *,
    thresholds: Thresholds,
    format_name: str | None,
    servers: Path | None = None,
    progress: Callable[[int], None],
) -> Iterator[Judged | Failed]:
    """Judge many jobs in order, on all cores."""
    work = partial(_attempt, thresholds=thresholds, format_name=format_name, servers=servers)
    for number, result in enumerate(mapped(work, jobs, crashed=_crashed), start=1):
        progress(number)
        yield result


def _attempt(
    group: Group, *, thresholds: Thresholds, format_name: str | None, servers: Path | None
) -> Judged | Failed:
    try:
        return judge_group(group, thresholds=thresholds, format_name=format_name, servers=servers)
    except (IoprismError, OSError) as error:
        return Failed(str(error).partition("\n")[0])


def _crashed(group: Group) -> Judged | Failed:
    return Failed(f"{printable(str(group[0]))}: {CRASHED}")
