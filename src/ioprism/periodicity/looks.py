"""What does one look at a running job find, what is expected next, and how sure is that?"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ioprism.model.arrays import MAD_TO_DEVIATION, TINY, FloatArray, Signal, median
from ioprism.periodicity import limits
from ioprism.periodicity.detect import Options, accept_period, detect
from ioprism.periodicity.phase_starts import Train, describe, find_train, train_of_all
from ioprism.periodicity.regularity import may_wander
from ioprism.periodicity.results import ExpectedPhase, NextPhase, Period, only_periodic
from ioprism.periodicity.segments import Segmentations, beats
from ioprism.periodicity.stream_buffers import MAX_EXACT_SAMPLES

LOOKS_PER_PERIOD = 4  # and per phase: more of them see nothing new


def what_is_seen(parts: Segmentations) -> tuple[int, ...]:
    """How many phases there are, and how far the latest one has come: what a look depends on."""
    seen = []
    for phases in (parts.by_levels, parts.by_pauses, parts.of_job):
        if phases is None or not len(phases):
            seen += [0, 0]
            continue
        lengths = phases.ends - phases.starts
        grown = LOOKS_PER_PERIOD * float(lengths[-1]) / median(lengths)
        seen += [len(phases), min(LOOKS_PER_PERIOD, int(grown))]
    return tuple(seen)


def by_phases(
    signal: Signal, parts: Segmentations, *, level: float, known: Period | None = None
) -> Period | None:
    """The period of a signal's phases, if chance gives it no more often than the level.

    The level is that of all looks where no period is known. If the phases of a known one say that
    it goes on, no other is sought.
    """
    train = None if known is None else _going_on(parts, known, level=level)
    train = train or find_train(signal, finest=parts.by_levels)
    if train is None:
        return None
    # A burst of many requests is one phase by one way of splitting and many by another: each way
    # has separate looks. Other scales come and go as the signal grows; theirs are those of the
    # most phases.
    among = train.among if train.among in parts.counts else max(parts.counts)
    chances, share = train.chances, share_of_look(look_at(among))
    if (chances.at_look(share) if known is None else chances.single_look) > math.log(level):
        return None
    options = Options("phases", level, maybe=False, confirm=False)
    period = only_periodic(accept_period(signal, describe(signal, train), options))
    certain = chances.doubt <= math.log(limits.MINOR * level)
    return period if period is None or certain else period.as_maybe()


def _going_on(parts: Segmentations, known: Period, *, level: float) -> Train | None:
    """The phases at the distances of a known period, if they show it by themselves."""
    phases = beats(parts, known)
    if phases is None or len(phases) < limits.MIN_SURE_PHASES:
        return None
    train = train_of_all(phases)
    same = relative_difference(train.seconds, known.seconds) <= limits.SAME_PERIOD
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
    if period.confidence < limits.MIN_SPECTRUM_SHARE:
        return None
    wanders = len(phases) >= limits.MIN_SURE_PHASES and may_wander(
        phases, level=limits.MINOR * level
    )
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
    return (signal.end - period.valid_ranges[-1][1]) / period.seconds


def look_at(phases: int) -> int:
    """Return the number of the look that this many phases belong to; 0 if they are too few."""
    early = phases - limits.MIN_SURE_PHASES + 1
    if early <= len(limits.FIRST_SHARES):
        return max(0, early)
    growth = phases / (limits.MIN_SURE_PHASES + len(limits.FIRST_SHARES))
    return (
        len(limits.FIRST_SHARES)
        + 1
        + math.floor(math.log(growth) / math.log(limits.NEXT_QUESTION) + 1e-9)
    )


def share_of_look(look: int) -> float:
    """The share of the false-alarm level that the k-th look may use; all looks make 1."""
    if look < 1:
        return TINY
    if look <= len(limits.FIRST_SHARES):
        return limits.FIRST_SHARES[look - 1]
    later = look - len(limits.FIRST_SHARES)
    return (1.0 - sum(limits.FIRST_SHARES)) / (later * (later + 1))


def change_point(starts: FloatArray) -> int | None:
    """Return the number of the phase that begins a new period, by ascending starts in seconds."""
    distances = np.log(np.maximum(np.diff(starts), 1e-9))
    if len(distances) < limits.MIN_STRETCH:
        return None
    usual = distances[: max(2, len(distances) - 2)]
    centre = median(usual)
    spread = max(MAD_TO_DEVIATION * median(np.abs(usual - centre)), limits.SAME)
    # One distance by itself gives no alarm.
    scores = np.clip((distances - centre) / spread, -limits.ALARM_SCORE, limits.ALARM_SCORE)
    places = [_alarm((sign * scores).tolist()) for sign in (1.0, -1.0)]
    alarms = [place for place in places if place is not None]
    return max(alarms) if alarms else None


def _alarm(scores: list[float]) -> int | None:
    """Where the sum that is above the threshold at the end began to rise."""
    total, began = 0.0, 0
    for place, score in enumerate(scores):
        total += score - limits.SCORE_SLACK
        if total <= 0.0:
            total, began = 0.0, place + 1
    return began if total > limits.ALARM_SCORE else None


def relative_difference(one: float, other: float) -> float:
    """How far two periods are apart, whichever is longer: 0 if equal, 1 for twice as long."""
    return math.expm1(abs(math.log(one / other)))


KEPT_ANSWERS = 64  # recent answers, and outcomes of predictions


@dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A phase that was predicted, and what came."""

    due: float  # seconds
    came: float | None  # seconds; None if it did not come
    on_time: bool


@dataclass(slots=True, eq=False)
class PredictionRecord:
    """Compares phases with what was predicted for them."""

    errors: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_ANSWERS))  # of a period
    outcomes: deque[PredictionOutcome] = field(default_factory=lambda: deque(maxlen=KEPT_ANSWERS))
    _last_start: float = -math.inf
    _expected: tuple[float, float] | None = None  # start and period, in seconds

    def observe(self, start: float, *, now: float) -> None:
        """Note when the latest phase began, and what time it is, in seconds."""
        if self._expected is not None:
            due, period = self._expected
            if start >= self._last_start + period / 2:
                self._outcome(due, start, abs(start - due) / period)
            elif now > due + (limits.SAME_PERIOD + limits.MAX_OFFSET) * period:
                self._outcome(due, None, 1.0)  # a phase this late is none, whenever it comes
            else:
                return
        self._last_start = max(start, self._last_start)

    def _outcome(self, due: float, came: float | None, error: float) -> None:
        self.errors.append(error)
        self.outcomes.append(PredictionOutcome(due, came, error <= limits.SAME_PERIOD))
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

    def _confidence(self, period: Period) -> float:
        """The probability that the next phase is on time.

        Earlier outcomes count, the latest most; the spread of the distances stands in while there
        are few of them. After n misses in a row it is at most 1 / (n + 1): the period may be over.
        """
        seen = max(1, period.repetitions)
        spread = max(period.spread / period.seconds, TINY) * (1.0 + 2.0 / seen)
        prior = math.erf(limits.SAME_PERIOD / (spread * math.sqrt(2)))
        hits, total = limits.PRIOR_WEIGHT * prior, limits.PRIOR_WEIGHT
        for age, error in enumerate(reversed(self.errors)):
            weight = limits.OUTCOME_DECAY**age
            hits += weight * (error <= limits.SAME_PERIOD)
            total += weight
        known = seen + len(self.errors)
        share = hits / total * (known + 1.0) / (known + 2.0)
        late = (error > limits.SAME_PERIOD for error in reversed(self.errors))
        misses = sum(1 for _ in itertools.takewhile(bool, late))
        return min(share, 1.0 / (1.0 + misses)) * (1.0 - period.false_alarm_probability)


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
        if groups and frequency <= (1.0 + limits.SAME_PERIOD) * groups[-1][-1]:
            groups[-1].append(frequency)
        else:
            groups.append([frequency])
    ranges = [FrequencyRange(group[0], group[-1], len(group) / len(every)) for group in groups]
    return tuple(sorted(ranges, key=lambda one: -one.probability))


MAX_PHASES_AHEAD = 64  # of one job, ahead


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
    """The phases of a job up to a horizon (seconds from now); each one further on is less sure.

    The next phase is expected by the job's clock, which shows `elapsed` seconds now.
    """
    first = expected.start - elapsed
    skipped = max(0, math.ceil(-first / period.seconds - limits.QUARTER))
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
    if len(jobs) < 2 or high - low < limits.NEGLIGIBLE * shortest:
        return
    rate = sum(phase.bytes / max(phase.end - phase.start, 1e-9) for phase in running)
    if known and known[-1].end == low and known[-1].jobs == jobs:
        known[-1] = Overlap(known[-1].start, high, jobs, max(rate, known[-1].rate))
    else:
        known.append(Overlap(low, high, jobs, rate))
