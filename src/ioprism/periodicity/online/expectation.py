"""What is expected next: of one job, how sure that is, and of all jobs on one time axis."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ioprism.periodicity.results import ExpectedPhase, NextPhase, Period

ON_TIME = 0.1  # share of the period by which a phase on time may be early or late
PRIOR_WEIGHT = 2.0  # phases that the spread of the period is worth
OUTCOME_DECAY = 0.9  # weight of an outcome beside that of the next one
KEPT_OUTCOMES = 32  # phases
SPREAD_FLOOR = 0.005  # of the period; no clock is better than this
MISSED_AFTER = 0.15  # of the period, beyond being on time, after which a phase is missed
MISS_ERROR = 1.0  # the error, in periods, of a phase that did not come


@dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A phase that was predicted, and what came."""

    due: float  # seconds
    came: float | None  # seconds; None if it did not come
    on_time: bool


class PredictionRecord:
    """Compares phases with what was predicted for them."""

    def __init__(self) -> None:
        self.errors: deque[float] = deque(maxlen=KEPT_OUTCOMES)  # shares of the period
        self.outcomes: deque[PredictionOutcome] = deque(maxlen=KEPT_OUTCOMES)
        self._last_start = -math.inf
        self._expected: tuple[float, float] | None = None  # start and period, in seconds

    def observe(self, start: float, *, now: float) -> None:
        """Note when the latest phase began, and what time it is, in seconds."""
        if self._expected is not None:
            due, period = self._expected
            if start >= self._last_start + period / 2:
                self._outcome(due, start, abs(start - due) / period)
            elif now > due + (ON_TIME + MISSED_AFTER) * period:
                self._outcome(due, None, MISS_ERROR)  # a phase this late is none, whenever it comes
            else:
                return
        self._last_start = max(start, self._last_start)

    def _outcome(self, due: float, came: float | None, error: float) -> None:
        self.errors.append(error)
        self.outcomes.append(PredictionOutcome(due, came, error <= ON_TIME))
        self._expected = None

    def expect(self, phase: NextPhase, period: Period) -> ExpectedPhase:
        """Keep a prediction to compare with; return it with its confidence."""
        if self._expected is None:
            self._expected = (phase.start, period.seconds)
        return ExpectedPhase(phase.start, phase.end, phase.bytes, self._confidence(period))

    def forget(self) -> None:
        """Restart with another period; earlier outcomes are kept for display."""
        self.errors.clear()
        self._expected = None

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "errors": list(self.errors),
            "outcomes": [[one.due, one.came, one.on_time] for one in self.outcomes],
            "last_start": self._last_start,
            "expected": None if self._expected is None else list(self._expected),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PredictionRecord:
        """Return the record that `state` described."""
        record = cls()
        record.errors.extend(float(error) for error in state["errors"])
        record.outcomes.extend(PredictionOutcome(*one) for one in state.get("outcomes", ()))
        record._last_start = float(state["last_start"])
        if state["expected"] is not None:
            due, period = state["expected"]
            record._expected = (float(due), float(period))
        return record

    def _confidence(self, period: Period) -> float:
        """The probability that the next phase is on time.

        Earlier outcomes count, the latest most; the spread of the distances stands in while there
        are few of them. After n misses in a row it is at most 1 / (n + 1): the period may be over.
        """
        seen = max(1, period.repetitions)
        spread = max(period.spread / period.seconds, SPREAD_FLOOR) * (1.0 + 2.0 / seen)
        prior = math.erf(ON_TIME / (spread * math.sqrt(2)))
        hits, total = PRIOR_WEIGHT * prior, PRIOR_WEIGHT
        for age, error in enumerate(reversed(self.errors)):
            weight = OUTCOME_DECAY**age
            hits += weight * (error <= ON_TIME)
            total += weight
        known = seen + len(self.errors)
        share = hits / total * (known + 1.0) / (known + 2.0)
        return min(share, 1.0 / (1.0 + self._misses())) * (1.0 - period.false_alarm_probability)

    def _misses(self) -> int:
        """How many of the latest phases in a row were not on time."""
        count = 0
        for error in reversed(self.errors):
            if error <= ON_TIME:
                break
            count += 1
        return count


RANGE_RATIO = 1.1  # frequencies this factor apart belong to different ranges


@dataclass(frozen=True, slots=True)
class FrequencyRange:
    """Frequencies that recent answers agree on."""

    low: float  # Hz
    high: float  # Hz
    probability: float  # share of all recent answers, those without a period included


def frequency_ranges(answers: Iterable[float | None]) -> tuple[FrequencyRange, ...]:
    """Merge recent answers (Hz, or None for no period) into ranges, the likeliest first."""
    every = list(answers)
    groups: list[list[float]] = []
    for frequency in sorted(answer for answer in every if answer is not None):
        if groups and frequency <= RANGE_RATIO * groups[-1][-1]:
            groups[-1].append(frequency)
        else:
            groups.append([frequency])
    ranges = [FrequencyRange(group[0], group[-1], len(group) / len(every)) for group in groups]
    return tuple(sorted(ranges, key=lambda one: -one.probability))


MAX_PHASES_AHEAD = 64  # of one job, ahead
MIN_OVERLAP = 0.01  # of a phase; phases that only touch do not overlap
MAX_LATENESS = 0.25  # of the period until which a phase that is due may still begin


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
        period: its period.
        elapsed: what the job's clock shows now, in seconds.
        horizon: seconds from now.
    """
    first = expected.start - elapsed
    skipped = max(0, math.ceil(-first / period.seconds - MAX_LATENESS))
    width = expected.end - expected.start
    phases = []
    for number in range(skipped, skipped + MAX_PHASES_AHEAD):
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
    known: list[Overlap] = []
    running: list[PhaseAhead] = []
    waiting = iter(every)
    following = next(waiting, None)
    for low, high in itertools.pairwise(edges):
        running = [phase for phase in running if phase.end > low]
        while following is not None and following.start <= low:
            running.append(following)
            following = next(waiting, None)
        _extend(known, running, low, high)
    return known


def _extend(known: list[Overlap], running: Sequence[PhaseAhead], low: float, high: float) -> None:
    jobs = tuple(sorted({phase.job for phase in running}))
    shortest = min((phase.end - phase.start for phase in running), default=0.0)
    if len(jobs) < 2 or high - low < MIN_OVERLAP * shortest:
        return
    rate = sum(phase.bytes / max(phase.end - phase.start, 1e-9) for phase in running)
    if known and known[-1].end == low and known[-1].jobs == jobs:
        known[-1] = Overlap(known[-1].start, high, jobs, max(rate, known[-1].rate))
    else:
        known.append(Overlap(low, high, jobs, rate))
