"""From paths to insights: one job, or the many of a folder on all cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ioprism.diagnosis.evidence import Evidence, evidence_of_trace
from ioprism.diagnosis.rules.registry import Insights
from ioprism.diagnosis.steps import DiagnosisOptions, JobHistory, first_views, judge_job
from ioprism.engine.base import LocalEngine, SharedViews, in_memory
from ioprism.engine.cluster import CRASHED, map_in_processes
from ioprism.errors import IoprismError
from ioprism.formats.job_groups import Group
from ioprism.formats.reading import Reading
from ioprism.formats.registry import read_trace
from ioprism.model.result import pick
from ioprism.model.trace import Job, Progress
from ioprism.settings import Thresholds
from ioprism.text import name_of, printable

if TYPE_CHECKING:  # a small log is judged without a table library
    from ioprism.model.machine import ServerLoads


@dataclass(frozen=True, slots=True)
class JudgedJob:
    """One job and what was found in it."""

    paths: Group
    format: str
    job: Job
    warnings: tuple[str, ...]
    insights: Insights

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism insights --json` says of a job."""
        return insights_body(self.insights, self.job)


@dataclass(frozen=True, slots=True)
class Failed:
    """A log that cannot be read, and why."""

    message: str


def insights_body(insights: Insights, job: Job) -> dict[str, Any]:
    """Return the facts of a job, how many findings each level has, and all of them."""
    levels = dict.fromkeys(("high", "warn", "info", "ok"), 0)
    for finding in insights.findings:
        levels[finding.severity.value] += 1
    return {
        "job": pick(job, "job_id", "executable", "ranks", "runtime", "start_time"),
        "levels": levels,
        **insights.to_dict(),
    }


def jobs_body(jobs: Sequence[JudgedJob], failures: Sequence[str]) -> dict[str, Any]:
    """Return many jobs: each with its findings, and in how many jobs each code comes up."""
    codes = Counter(finding.code for job in jobs for finding in job.insights.findings)
    return {
        "codes": dict(sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))),
        "jobs": [
            {
                "paths": [name_of(path) for path in job.paths],
                "warnings": list(job.warnings),
                **job.to_dict(),
            }
            for job in jobs
        ],
        "failures": list(failures),
    }


def judge_group(
    group: Group,
    *,
    thresholds: Thresholds,
    format_name: str | None = None,
    reading: Reading | None = None,
    servers: ServerLoads | None = None,
    site: JobHistory | None = None,
    progress: Progress | None = None,
) -> JudgedJob:
    """Judge the job of some logs, by the servers that it used and other jobs of its site."""
    trace = read_trace(*group, format_name=format_name, grouping="one", reading=reading)
    held = in_memory(trace, progress=progress)
    engine = SharedViews(LocalEngine(progress), held, first_views(held, thresholds))
    evidence = with_background_load(evidence_of_trace(held, engine, thresholds), servers)
    insights = judge_job(evidence, held, engine, options=DiagnosisOptions(site=site))
    return JudgedJob(trace.paths, trace.format, trace.job, trace.completeness.warnings, insights)


def with_background_load(evidence: Evidence, servers: ServerLoads | None) -> Evidence:
    """Add what the servers moved while the job ran, where both are known."""
    job = evidence.job
    if servers is None or job.start_time is None or job.end_time is None:
        return evidence
    load = servers.during(job.start_time, job.end_time)
    return replace(evidence, background_load=load)


def judge_many(
    jobs: Sequence[Group],
    *,
    progress: Callable[[int], None],
    **known: Any,  # noqa: ANN401 - as `judge_group` has them
) -> Iterator[JudgedJob | Failed]:
    """Judge many jobs in order, on all cores."""
    work = partial(_attempt, **known)
    for number, result in enumerate(map_in_processes(work, jobs, crashed=_crash_of), start=1):
        progress(number)
        yield result


def _attempt(group: Group, **given: Any) -> JudgedJob | Failed:  # noqa: ANN401 - as `judge_group` has
    try:
        return judge_group(group, **given)
    except (IoprismError, OSError) as error:
        return Failed(str(error).partition("\n")[0])


def _crash_of(group: Group) -> JudgedJob | Failed:
    return Failed(f"{printable(str(group[0]))}: {CRASHED}")
