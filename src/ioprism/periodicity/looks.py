"""What does one look at a running job find, what is expected next, and how sure is that?"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.model.arrays import MAD_TO_DEVIATION, FloatArray, Signal, median
from ioprism.periodicity.detect import Options, accept_period, detect
from ioprism.periodicity.limits import MAX_CLOCK_VARIATION, MAX_OFFSET, MIN_STRETCH, SAME_PERIOD
from ioprism.periodicity.phase_starts import Train, describe, find_train, train_of_all
from ioprism.periodicity.regularity import may_wander
from ioprism.periodicity.results import (
    MAX_LATENESS,
    ExpectedPhase,
    NextPhase,
    Period,
    only_periodic,
)
from ioprism.periodicity.segments import Segmentations, beats
from ioprism.periodicity.stream_buffers import MAX_EXACT_SAMPLES

MIN_SPECTRUM_SHARE = 0.3  # of the variance
DOUBT_SHARE = 0.1  # of the level, up to which a period is announced as one beyond doubt
GROWTH_STEPS = 4  # of a usual phase, by which the latest one grows until it says something new


def what_is_seen(parts: Segmentations) -> tuple[int, ...]:
    """How many phases there are, and how far the latest one has come: what a look depends on."""
    seen = []
    for phases in (parts.by_levels, parts.by_pauses, parts.of_job):
        if phases is None or not len(phases):
            seen += [0, 0]
            continue
        lengths = phases.ends - phases.starts
        grown = GROWTH_STEPS * float(lengths[-1]) / median(lengths)
        seen += [len(phases), min(GROWTH_STEPS, int(grown))]
    return tuple(seen)


def by_phases(
    signal: Signal, parts: Segmentations, *, level: float, known: Period | None = None
) -> Period | None:
    """The period of a signal's phases, if chance gives it no more often than the level.

    Args:
        signal: the signal.
        parts: its phases.
        level: the highest false-alarm probability, of all looks where no period is known.
        known: a period that may go on; if its phases say so, no other is sought.
    """
    train = None if known is None else _going_on(parts, known, level=level)
    train = train or find_train(signal, finest=parts.by_levels)
    if train is None:
        return None
    chances, share = train.chances, share_of_look(_look(parts, train))
    if (chances.at_look(share) if known is None else chances.single_look) > math.log(level):
        return None
    options = Options("phases", level, maybe=False, confirm=False)
    period = only_periodic(accept_period(signal, describe(signal, train), options))
    certain = chances.doubt <= math.log(DOUBT_SHARE * level)
    return period if period is None or certain else period.as_maybe()


def _look(parts: Segmentations, train: Train) -> int:
    """Which look at its phases this is, by the way of splitting that tells them.

    A burst of many requests is one phase by one way and many by another: each way has separate
    looks. Other scales come and go as the signal grows; theirs are those of the most phases.
    """
    return look_at(train.among if train.among in parts.counts else max(parts.counts))


def _going_on(parts: Segmentations, known: Period, *, level: float) -> Train | None:
    """The phases at the distances of a known period, if they show it by themselves."""
    phases = beats(parts, known)
    if phases is None or len(phases) < MIN_PHASES:
        return None
    train = train_of_all(phases)
    same = relative_difference(train.seconds, known.seconds) <= SAME_PERIOD
    return train if same and train.chances.single_look <= math.log(level) else None


def with_spectrum(signal: Signal, parts: Segmentations, *, level: float) -> Period | None:
    """The period of phases or of the spectrum, if chance gives it no more often than the level.

    Where phases are sharp and show no period, the spectrum must explain a good part of the signal:
    serial streams, and pairs of bursts at random times, have a line in it, too.
    """
    options = Options("auto", level, maybe=False, confirm=False)
    period = only_periodic(detect(signal, options=options))
    phases = parts.by_levels if len(signal.values) > MAX_EXACT_SAMPLES else None
    if period is None or period.method == "phases" or phases is None:
        return period
    if period.confidence < MIN_SPECTRUM_SHARE:
        return None
    wanders = len(phases) >= MIN_PHASES and may_wander(phases, level=DOUBT_SHARE * level)
    return period.as_maybe() if wanders else period


def phase_starts(parts: Segmentations, known: Period) -> FloatArray | None:
    """When phases begin, by the way of splitting whose distances are closest to the period's."""
    phases = beats(parts, known) or parts.by_levels
    return None if phases is None else phases.starts


def latest_distance(parts: Segmentations) -> float:
    """Seconds between the last two phases; a faster period asks for a closer look."""
    phases = parts.by_levels
    if phases is None or len(phases) < 2:
        return math.inf
    return float(phases.starts[-1] - phases.starts[-2])


def usual_distance(parts: Segmentations) -> float | None:
    """Seconds between phases so far, period or not; None until there are two."""
    phases = parts.by_levels or parts.of_job
    if phases is None or len(phases) < 2:
        return None
    return median(np.diff(phases.starts))


def silence(signal: Signal, period: Period) -> float:
    """How long ago the last phase was, in periods."""
    if not period.valid_ranges:
        return math.inf
    return (signal.end - period.valid_ranges[-1][1]) / period.seconds


def held_since(period: Period, now: float) -> float:
    """Since when a period holds, in seconds."""
    return period.valid_ranges[-1][0] if period.valid_ranges else now


MIN_PHASES = 4  # three periods; fewer are not announced
FIRST_SHARES = (0.3, 0.2, 0.2, 0.2)  # of the false-alarm level, for four to seven phases
PHASES_PER_LOOK = 1.25  # of the number of phases, until it is another look
NO_SHARE = 1e-12


def look_at(phases: int) -> int:
    """Return the number of the look that this many phases belong to; 0 if they are too few."""
    early = phases - MIN_PHASES + 1
    if early <= len(FIRST_SHARES):
        return max(0, early)
    growth = phases / (MIN_PHASES + len(FIRST_SHARES))
    return len(FIRST_SHARES) + 1 + math.floor(math.log(growth) / math.log(PHASES_PER_LOOK) + 1e-9)


def share_of_look(look: int) -> float:
    """The share of the false-alarm level that the k-th look may use; all looks make 1."""
    if look < 1:
        return NO_SHARE
    if look <= len(FIRST_SHARES):
        return FIRST_SHARES[look - 1]
    later = look - len(FIRST_SHARES)
    return (1.0 - sum(FIRST_SHARES)) / (later * (later + 1))


SPREAD_FLOOR = 0.05  # relative; jitter below this does not change the period
SCORE_SLACK = 0.5  # standard deviations, as usual for the sum of Page (1954)
MAX_DISTANCE_SCORE = 3.5  # standard deviations that one distance counts at most
ALARM_SCORE = 5.0  # standard deviations, as usual for Page (1954); one distance counts 3 at most


def change_point(starts: FloatArray) -> int | None:
    """Return the number of the phase that begins a new period, or None if there is none.

    Args:
        starts: when phases begin, ascending, in seconds.
    """
    distances = np.log(np.maximum(np.diff(starts), 1e-9))
    if len(distances) < MIN_STRETCH:
        return None
    usual = distances[: max(2, len(distances) - 2)]
    centre = median(usual)
    spread = max(MAD_TO_DEVIATION * median(np.abs(usual - centre)), SPREAD_FLOOR)
    scores = np.clip(
        (distances - centre) / spread, -MAX_DISTANCE_SCORE, MAX_DISTANCE_SCORE
    ).tolist()
    places = [_alarm([sign * score for score in scores]) for sign in (1.0, -1.0)]
    alarms = [place for place in places if place is not None]
    return max(alarms) if alarms else None


def _alarm(scores: list[float]) -> int | None:
    """Where the sum that is above the threshold at the end began to rise."""
    total, began = 0.0, 0
    for place, score in enumerate(scores):
        total += score - SCORE_SLACK
        if total <= 0.0:
            total, began = 0.0, place + 1
    return began if total > ALARM_SCORE else None


def relative_difference(one: float, other: float) -> float:
    """How far two periods are apart, whichever is longer: 0 if equal, 1 for twice as long."""
    return math.expm1(abs(math.log(one / other)))


PRIOR_WEIGHT = 2.0  # phases that the spread of the period is worth
OUTCOME_DECAY = 0.9  # weight of an outcome beside that of the next one
KEPT_OUTCOMES = 32  # phases
MIN_CLOCK_SPREAD = 0.005  # of the period; no clock is better than this
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
            elif now > due + (MAX_CLOCK_VARIATION + MAX_OFFSET) * period:
                self._outcome(due, None, MISS_ERROR)  # a phase this late is none, whenever it comes
            else:
                return
        self._last_start = max(start, self._last_start)

    def _outcome(self, due: float, came: float | None, error: float) -> None:
        self.errors.append(error)
        self.outcomes.append(PredictionOutcome(due, came, error <= MAX_CLOCK_VARIATION))
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
        spread = max(period.spread / period.seconds, MIN_CLOCK_SPREAD) * (1.0 + 2.0 / seen)
        prior = math.erf(MAX_CLOCK_VARIATION / (spread * math.sqrt(2)))
        hits, total = PRIOR_WEIGHT * prior, PRIOR_WEIGHT
        for age, error in enumerate(reversed(self.errors)):
            weight = OUTCOME_DECAY**age
            hits += weight * (error <= MAX_CLOCK_VARIATION)
            total += weight
        known = seen + len(self.errors)
        share = hits / total * (known + 1.0) / (known + 2.0)
        return min(share, 1.0 / (1.0 + self._misses())) * (1.0 - period.false_alarm_probability)

    def _misses(self) -> int:
        """How many of the latest phases in a row were not on time."""
        count = 0
        for error in reversed(self.errors):
            if error <= MAX_CLOCK_VARIATION:
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
