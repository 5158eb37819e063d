"""Which jobs of a machine will do I/O at the same time?

Each job counts its own seconds; here all phases lie on one axis, in seconds from now.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ioprism.periodicity.online.expectation import ExpectedPhase
from ioprism.periodicity.results import Period

MOST_PHASES = 64  # of one job, ahead
BRIEF = 0.01  # of a phase; phases that only touch do not overlap
LATE = 0.25  # of the period until which a phase that is due may still begin


@dataclass(frozen=True, slots=True)
class PhaseAhead:
    """A phase that a job is expected to have."""

    job: str
    start: float  # seconds from now
    end: float
    bytes: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """A stretch of time in which several jobs are expected to do I/O."""

    start: float  # seconds from now
    end: float
    jobs: tuple[str, ...]
    rate: float  # bytes per second that they want together


def phases_ahead(
    job: str, expected: ExpectedPhase, period: Period, *, elapsed: float, horizon: float
) -> list[PhaseAhead]:
    """The phases of a job up to a horizon; each one further ahead is less sure.

    Args:
        job: its name.
        expected: the next phase, by the job's clock.
        period: its rhythm.
        elapsed: what the job's clock shows now, in seconds.
        horizon: seconds from now.
    """
    first = expected.start - elapsed
    skipped = max(0, math.ceil(-first / period.seconds - LATE))
    width = expected.end - expected.start
    phases = []
    for number in range(skipped, skipped + MOST_PHASES):
        start = first + number * period.seconds
        if start > horizon:
            break
        confidence = expected.confidence ** (number + 1)
        phases.append(PhaseAhead(job, start, start + width, expected.bytes, confidence))
    return phases


def overlaps(phases: Iterable[PhaseAhead]) -> list[Overlap]:
    """Where phases of different jobs overlap, in order of time."""
    every = sorted(phases, key=lambda phase: phase.start)
    edges = sorted({edge for phase in every for edge in (phase.start, phase.end)})
    found: list[Overlap] = []
    running: list[PhaseAhead] = []
    waiting = iter(every)
    following = next(waiting, None)
    for low, high in itertools.pairwise(edges):
        running = [phase for phase in running if phase.end > low]
        while following is not None and following.start <= low:
            running.append(following)
            following = next(waiting, None)
        _extend(found, running, low, high)
    return found


def _extend(found: list[Overlap], running: Sequence[PhaseAhead], low: float, high: float) -> None:
    jobs = tuple(sorted({phase.job for phase in running}))
    shortest = min((phase.end - phase.start for phase in running), default=0.0)
    if len(jobs) < 2 or high - low < BRIEF * shortest:
        return
    rate = sum(phase.bytes / max(phase.end - phase.start, 1e-9) for phase in running)
    if found and found[-1].end == low and found[-1].jobs == jobs:
        found[-1] = Overlap(found[-1].start, high, jobs, max(rate, found[-1].rate))
    else:
        found.append(Overlap(low, high, jobs, rate))
