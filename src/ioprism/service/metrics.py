"""What Prometheus collects: totals of the service, and the rhythm of every job."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache

from ioprism.service import counts as counts_module
from ioprism.service.counts import BOUNDS, Counts, Latency
from ioprism.service.jobs import Job

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the service is behind with."""

    analyses: int  # jobs whose analysis was put off
    seconds: float  # for how long the first of them waits


def exposition(
    counts: Counts, latency: Latency, jobs: Iterable[Job], backlog: Backlog | None = None
) -> str:
    """Return all metrics in Prometheus' text format."""
    listed = list(jobs)
    lines = [*_totals(counts), *_gauge("jobs", "Jobs watched now.", [("", len(listed))])]
    backlog = backlog or Backlog(0, 0.0)
    lines += _gauge("backlog_jobs", "Jobs that wait for an analysis.", [("", backlog.analyses)])
    lines += _gauge(
        "backlog_seconds", "How long the first of them has waited.", [("", backlog.seconds)]
    )
    lines += _latency(latency)
    lines += _of_jobs(listed)
    return "\n".join(lines) + "\n"


def label(text: str) -> str:
    """Return a text as the value of a label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(character if character.isprintable() else "?" for character in escaped)


def _totals(counts: Counts) -> Iterator[str]:
    helps = _helps()
    for known in fields(counts):
        name = f"ioprism_watch_{known.name}_total"
        yield f"# HELP {name} {helps[known.name].capitalize()}."
        yield f"# TYPE {name} counter"
        yield f"{name} {getattr(counts, known.name)}"


@cache
def _helps() -> dict[str, str]:
    source = inspect.getsource(counts_module.Counts)
    return dict(re.findall(r"^    (\w+): int = 0  # (.*)$", source, re.MULTILINE))


def _gauge(name: str, explained: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP ioprism_watch_{name} {explained}"
    yield f"# TYPE ioprism_watch_{name} gauge"
    for labels, value in values:
        yield f"ioprism_watch_{name}{labels} {value:.10g}"


def _latency(latency: Latency) -> Iterator[str]:
    name = "ioprism_watch_latency_seconds"
    yield f"# HELP {name} Time from the arrival of a message to a prediction that includes it."
    yield f"# TYPE {name} histogram"
    running = 0
    for bound, count in zip((*BOUNDS, "+Inf"), latency.buckets, strict=True):
        running += count
        yield f'{name}_bucket{{le="{bound}"}} {running}'
    yield f"{name}_sum {latency.total:.10g}"
    yield f"{name}_count {running}"


def _of_jobs(jobs: list[Job]) -> Iterator[str]:
    known = [(f'{{job="{label(job.name)}"}}', job.latest) for job in jobs]
    answers = [(labels, latest) for labels, latest in known if latest is not None]
    periods = [(labels, one.period.seconds) for labels, one in answers if one.period]
    starts = [(labels, one.next_phase.start) for labels, one in answers if one.next_phase]
    sure = [(labels, one.next_phase.confidence) for labels, one in answers if one.next_phase]
    yield from _gauge(
        "job_time_seconds", "The job's own clock.", [(x, one.time) for x, one in answers]
    )
    yield from _gauge("period_seconds", "The period of a job's phases.", periods)
    yield from _gauge("next_phase_start_seconds", "When the next phase is due.", starts)
    yield from _gauge(
        "next_phase_confidence", "Probability that it begins within a tenth of a period.", sure
    )
