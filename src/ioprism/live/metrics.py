"""What the service counts, how long its answers took, and all of it as Prometheus collects it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import TYPE_CHECKING

from ioprism.text import metric_label, metric_lines

if TYPE_CHECKING:
    from ioprism.live.intake import WatchedJob

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # seconds


def _total(explained: str) -> int:
    total: int = field(default=0, metadata={"help": explained})
    return total


@dataclass(slots=True)
class Counts:
    """Running totals, and what each counts, as /metrics explains it."""

    messages: int = _total("Messages and lines received.")
    received_bytes: int = _total("Bytes of messages received.")
    intervals: int = _total("Requests and samples added to signals.")
    predictions: int = _total("Predictions made.")
    announcements: int = _total("Periods that began, changed or ended.")
    malformed: int = _total("Messages dropped: unknown form, or truncated.")
    oversized: int = _total("Messages dropped: larger than allowed.")
    duplicates: int = _total("Messages dropped: received before.")
    unsound: int = _total("Intervals dropped: not finite, negative, or ending before they begin.")
    out_of_range: int = _total("Intervals dropped: implausibly far from the others.")
    restarted: int = _total("Signals restarted because their clock was.")
    jobs_created: int = _total("Jobs seen for the first time.")
    jobs_expired: int = _total("Jobs forgotten after silence.")
    jobs_evicted: int = _total("Silent jobs forgotten because there were too many.")
    refused: int = _total("Records dropped: too many jobs, or a name that is too long.")
    unsaved: int = _total("Times the state could not be saved.")
    files_replaced: int = _total("Followed files replaced, rotated or truncated.")
    listeners_lagging: int = _total("Events dropped for listeners that read too slowly.")

    def restore(self, saved: Counts) -> None:
        """Resume from saved totals."""
        for total in fields(self):
            setattr(self, total.name, getattr(saved, total.name))

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


def exposition(
    counts: Counts,
    latency: Latency,
    jobs: Iterable[WatchedJob],
    *,
    analyses_waiting: int = 0,
    lag: float = 0.0,
) -> str:
    """Return all metrics in Prometheus' text format."""
    listed = list(jobs)
    lines: list[str] = []
    for total in fields(counts):
        name = f"ioprism_watch_{total.name}_total"
        value = getattr(counts, total.name)
        lines += metric_lines(name, "counter", total.metadata["help"], [("", value)])
    lines += _gauge("jobs", "Jobs watched now.", [("", len(listed))])
    lines += _gauge("backlog_jobs", "Jobs that wait for an analysis.", [("", analyses_waiting)])
    lines += _gauge("backlog_seconds", "How long the first of them has waited.", [("", lag)])
    lines += _latency(latency)
    lines += _of_jobs(listed)
    return "\n".join(lines) + "\n"


def _gauge(name: str, explained: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    return metric_lines(f"ioprism_watch_{name}", "gauge", explained, values)


def _latency(latency: Latency) -> Iterator[str]:
    name = "ioprism_watch_latency_seconds"
    explained = "Time from the arrival of a message to a prediction that includes it."
    running = list(accumulate(latency.buckets))
    values = zip((*BOUNDS, "+Inf"), running, strict=True)
    buckets = [(f'_bucket{{le="{bound}"}}', count) for bound, count in values]
    sums = [("_sum", latency.total), ("_count", running[-1])]
    yield from metric_lines(name, "histogram", explained, [*buckets, *sums])


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
