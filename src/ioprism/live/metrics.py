"""What the service counts, how long its answers took, and all of it as Prometheus collects it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from ioprism.text import metric_label

if TYPE_CHECKING:
    from ioprism.live.intake import WatchedJob

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # seconds

# What each total counts, as /metrics explains it.
HELP = {
    "messages": "Messages and lines received.",
    "received_bytes": "Bytes of messages received.",
    "intervals": "Requests and samples added to signals.",
    "predictions": "Predictions made.",
    "announcements": "Periods that began, changed or ended.",
    "malformed": "Messages dropped: unknown form, or truncated.",
    "oversized": "Messages dropped: larger than allowed.",
    "duplicates": "Messages dropped: received before.",
    "unsound": "Intervals dropped: not finite, negative, or ending before they begin.",
    "out_of_range": "Intervals dropped: implausibly far from the others.",
    "restarted": "Signals restarted because their clock was.",
    "jobs_created": "Jobs seen for the first time.",
    "jobs_expired": "Jobs forgotten after silence.",
    "jobs_evicted": "Silent jobs forgotten because there were too many.",
    "refused": "Records dropped: too many jobs, or a name that is too long.",
    "unsaved": "Times the state could not be saved.",
    "files_replaced": "Followed files replaced, rotated or truncated.",
    "listeners_lagging": "Events dropped for listeners that read too slowly.",
}


@dataclass(slots=True)
class Counts:
    """Running totals; see `HELP`."""

    messages: int = 0
    received_bytes: int = 0
    intervals: int = 0
    predictions: int = 0
    announcements: int = 0
    malformed: int = 0
    oversized: int = 0
    duplicates: int = 0
    unsound: int = 0
    out_of_range: int = 0
    restarted: int = 0
    jobs_created: int = 0
    jobs_expired: int = 0
    jobs_evicted: int = 0
    refused: int = 0
    unsaved: int = 0
    files_replaced: int = 0
    listeners_lagging: int = 0

    def state(self) -> dict[str, int]:
        """Return everything as plain values."""
        return asdict(self)

    def restore(self, state: Mapping[str, int]) -> None:
        """Resume from saved totals."""
        for name in HELP:
            setattr(self, name, int(state.get(name, 0)))

    @property
    def dropped_records(self) -> int:
        """Messages and intervals that did not count."""
        return (
            self.malformed
            + self.oversized
            + self.duplicates
            + self.unsound
            + self.out_of_range
            + self.refused
        )


@dataclass(slots=True)
class Latency:
    """How long messages waited for a prediction that counts them in."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0  # seconds
    longest: float = 0.0

    def record(self, seconds: float, *, messages: int = 1) -> None:
        """Count messages that waited equally long."""
        self.buckets[bisect_left(BOUNDS, seconds)] += messages
        self.total += seconds * messages
        self.longest = max(self.longest, seconds)

    @property
    def count(self) -> int:
        """How many messages."""
        return sum(self.buckets)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Backlog:
    """How far the service is behind."""

    analyses: int  # jobs whose analysis was put off
    seconds: float  # for how long the first of them waits


def exposition(
    counts: Counts, latency: Latency, jobs: Iterable[WatchedJob], backlog: Backlog | None = None
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


def _totals(counts: Counts) -> Iterator[str]:
    for total, explained in HELP.items():
        name = f"ioprism_watch_{total}_total"
        yield f"# HELP {name} {explained}"
        yield f"# TYPE {name} counter"
        yield f"{name} {getattr(counts, total)}"


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


def _of_jobs(jobs: list[WatchedJob]) -> Iterator[str]:
    known = [(f'{{job="{metric_label(job.name)}"}}', job.latest) for job in jobs]
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
