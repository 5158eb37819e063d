"""Do phases of I/O begin at regular distances, even if the distances jitter?

The false-alarm probability is that of bursts at random times (a Poisson process), whatever
their lengths. Phases that are all alike speak for a loop in the program, which unrelated
bursts of random size do not show; they may lower it, but by no more than ``LOOP_EVIDENCE``.
The confidence is one minus the coefficient of variation of the distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.analyses.periodicity.onsets.segments import Phases, find_pauses, find_phases, median
from ioprism.analyses.periodicity.results import Period
from ioprism.analyses.periodicity.spectral.spectrum import cosine_at
from ioprism.analyses.periodicity.testing.chance import (
    CERTAIN,
    log_alike,
    log_regular_gaps,
    probability,
)
from ioprism.model.signal import FloatArray, Signal

MIN_PHASES = 3  # two repetitions
MIN_RUN = 4  # gaps; a shorter regular stretch among irregular phases is chance
ROUNDING = math.sqrt(1 / 6)  # standard deviation of a difference of two rounded times
PHASES_WEIGHT = 0.95  # of the evidence sought in phases, the rest in pauses
WHOLE_WEIGHT = 0.9  # of the evidence sought in all phases, the rest in stretches of them
MATCH = 0.07  # phases are alike if their lengths differ by less than this share
CHANCE_OF_MATCH = 0.15  # at most, for lengths that vary by a third or more
ALIKE = math.log(0.01)
SUGGESTIVE = math.log(0.16)  # alike phases count only if their distances suggest a rhythm
LOOP_EVIDENCE = math.log(0.05)
FEW_LATE = 0.1  # share of the distances
STEADY = 0.15  # relative spread up to which phases can be counted one by one
SAME_LENGTH = 0.25  # phases of a rhythm may at least differ in length by this share
SAME_LEVEL = 0.15  # and in their mean level by this
TOLERANCE = (0.15, 0.3)  # of the period: least and most deviation of a counted phase


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive phases from ``first`` to ``last`` (included), and the chance of their rhythm."""

    first: int
    last: int
    log_chance: float


@dataclass(frozen=True, slots=True)
class Beat:
    """One phase of a rhythm: its place in time and how many periods after the one before."""

    start: float
    end: float
    periods: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """What the next phase of a rhythm looks like."""

    period: float
    tolerance: float  # of the period
    length: float
    length_tolerance: float
    level: float
    level_tolerance: float

    def alike(self, length: float, level: float) -> bool:
        """Whether a phase is as long and as high as the others."""
        return (
            abs(length - self.length) <= self.length_tolerance
            and abs(level - self.level) <= self.level_tolerance
        )

    def next_beat(self, here: Beat, *, start: float, end: float, level: float) -> Beat | None:
        """This phase as the next beat, or None if it is not one."""
        alike = self.alike(end - start, level)
        longer = (
            end - start > self.length + self.length_tolerance
            and level >= self.level - self.level_tolerance
        )
        for periods in (1, 2):
            by_start = abs(start - here.start - periods * self.period)
            by_end = abs(end - here.end - periods * self.period)
            if min(by_start, by_end) > self.tolerance:
                continue
            if alike:
                return Beat(start, end, periods)
            if longer:
                # It runs into other I/O, but one of its edges is where it should be.
                begin = start if by_start <= by_end else end - self.length
                return Beat(begin, begin + self.length, periods)
        return None


def find_period(signal: Signal) -> Period | None:
    """Return the mean distance of phase starts, or None if there are no three phases."""
    found = [
        _rhythm(signal, phases, weight)
        for phases, weight in (
            (find_phases(signal), PHASES_WEIGHT),
            (find_pauses(signal), 1.0 - PHASES_WEIGHT),
        )
        if phases is not None and len(phases) >= MIN_PHASES
    ]
    return min(found, key=lambda period: period.false_alarm_probability, default=None)


def _rhythm(signal: Signal, phases: Phases, weight: float) -> Period:
    stretch = _most_regular(phases)
    beats = _beats(phases, stretch)
    repetitions = sum(beat.periods for beat in beats[1:])
    seconds = (beats[-1].start - beats[0].start) / repetitions
    spread = _spread(beats, seconds)
    amplitude, phase = cosine_at(signal, 1.0 / seconds)
    return Period(
        seconds=seconds,
        frequency=1.0 / seconds,
        confidence=max(0.0, 1.0 - spread / seconds),
        false_alarm_probability=probability(stretch.log_chance - math.log(weight)),
        valid_ranges=((beats[0].start, beats[-1].end),),
        amplitude=amplitude,
        phase=phase,
        spread=spread,
        method="phases",
        repetitions=repetitions,
    )


def _most_regular(phases: Phases) -> Stretch:
    whole = _whole(phases)
    part = _best_part(phases)
    return min(whole, part, key=lambda stretch: stretch.log_chance)


def _whole(phases: Phases) -> Stretch:
    gaps = phases.waits
    lengths = phases.ends - phases.starts
    log_chance = _log_chance(phases, float(gaps.std()), gaps)
    if lengths.std() > 0.2 * lengths.mean():
        # Starts may be regular where lengths, and so gaps, are not: a second question.
        distances = float(np.diff(phases.starts).std())
        log_chance = min(log_chance, _log_chance(phases, distances, gaps)) + math.log(2)
    if log_chance < SUGGESTIVE and _log_alike(phases) < ALIKE:
        log_chance += LOOP_EVIDENCE
    return Stretch(0, len(phases) - 1, min(CERTAIN, log_chance - math.log(WHOLE_WEIGHT)))


def _log_chance(phases: Phases, deviation: float, gaps: FloatArray) -> float:
    # Pauses shorter than the shortest gap are not seen; being memoryless, what is left
    # of the longer ones is exponential again.
    mean = float(gaps.mean()) - phases.shortest_gap
    deviation = max(deviation, ROUNDING * phases.resolution)
    if mean <= 0.0:
        return CERTAIN
    return log_regular_gaps(gaps=len(gaps), variation=deviation / mean)


def _log_alike(phases: Phases) -> float:
    lengths = phases.ends - phases.starts
    middle = median(lengths)
    if phases.resolution > MATCH * middle:
        return CERTAIN
    matching = int(np.count_nonzero(np.abs(lengths - middle) <= MATCH * middle))
    return log_alike(phases=len(phases), matching=matching, chance_of_match=CHANCE_OF_MATCH)


def _best_part(phases: Phases) -> Stretch:
    gaps = _Moments.of(phases.waits)
    spacings = (gaps, _Moments.of(np.diff(phases.starts)))
    least = ROUNDING * phases.resolution
    best, questions = Stretch(0, len(phases.waits), CERTAIN), 0
    for size in _sizes(len(phases.waits)):
        mean = gaps.mean(size) - phases.shortest_gap
        questions += 2 * len(mean)
        for spacing in spacings:
            deviation = np.maximum(spacing.deviation(size), least)
            variation = np.where(mean > 0.0, deviation / np.maximum(mean, 1e-300), np.inf)
            first = int(variation.argmin())
            chance = log_regular_gaps(gaps=size, variation=float(variation[first]))
            if chance < best.log_chance:
                best = Stretch(first, first + size, chance)
    if questions == 0:
        return best
    corrected = best.log_chance + math.log(questions) - math.log(1.0 - WHOLE_WEIGHT)
    return replace(best, log_chance=min(CERTAIN, corrected))


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Running sums, from which mean and deviation of any stretch follow."""

    middle: float
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, numbers: FloatArray) -> _Moments:
        middle = float(numbers.mean())
        centred = numbers - middle
        running = np.zeros((2, len(numbers) + 1))
        np.cumsum(centred, out=running[0, 1:])
        np.cumsum(centred**2, out=running[1, 1:])
        return cls(middle, running[0], running[1])

    def mean(self, size: int) -> FloatArray:
        """Of each stretch of this size."""
        return self.middle + (self.sums[size:] - self.sums[:-size]) / size

    def deviation(self, size: int) -> FloatArray:
        """Standard deviation of each stretch of this size."""
        mean = (self.sums[size:] - self.sums[:-size]) / size
        variance = (self.squares[size:] - self.squares[:-size]) / size - mean**2
        return np.sqrt(np.maximum(variance, 0.0))


def _sizes(most: int) -> list[int]:
    sizes, size = [], float(MIN_RUN)
    while size < most:
        sizes.append(round(size))
        size *= 1.25
    return sorted(set(sizes))


def _beats(phases: Phases, stretch: Stretch) -> list[Beat]:
    """The phases that belong to the rhythm, counted one by one where it is steady enough."""
    inside = slice(stretch.first, stretch.last + 1)
    every = _as_beats(phases, range(len(phases))[inside])
    distances = np.diff(phases.starts[inside])
    typical, spread = _middle(distances)
    if spread > STEADY * typical:
        return every
    tolerance = float(np.clip(4.0 * spread, TOLERANCE[0] * typical, TOLERANCE[1] * typical))
    first, last = _steadiest(distances, typical, tolerance)
    seed = range(stretch.first + first, stretch.first + last + 1)
    pattern = _pattern(phases, seed, typical, tolerance)
    trimmed = _trimmed(phases, seed, pattern)
    if trimmed == seed and _all_belong(phases, pattern):
        return _as_beats(phases, range(len(phases)))
    counted = _count(phases, trimmed, pattern)
    return counted if len(counted) >= 0.7 * len(every) else every


def _as_beats(phases: Phases, which: range) -> list[Beat]:
    return [Beat(float(phases.starts[i]), float(phases.ends[i]), 1) for i in which]


def _middle(numbers: FloatArray) -> tuple[float, float]:
    """Median, and the standard deviation that the median deviation suggests."""
    middle = median(numbers)
    return middle, 1.4826 * median(np.abs(numbers - middle))


def _steadiest(distances: FloatArray, period: float, tolerance: float) -> tuple[int, int]:
    """First and last phase of the longest stretch of distances close to the period."""
    steady = np.abs(distances - period) <= tolerance
    change = np.flatnonzero(np.diff(steady, prepend=False, append=False))
    longest = int(np.argmax(change[1::2] - change[0::2]))
    return int(change[2 * longest]), int(change[2 * longest + 1])


def _pattern(phases: Phases, seed: range, period: float, tolerance: float) -> Pattern:
    chosen = slice(seed.start, seed.stop)
    length, length_spread = _middle(phases.ends[chosen] - phases.starts[chosen])
    level, level_spread = _middle(phases.levels[chosen])
    return Pattern(
        period=period,
        tolerance=tolerance,
        length=length,
        length_tolerance=max(4.0 * length_spread, SAME_LENGTH * length),
        level=level,
        level_tolerance=max(4.0 * level_spread, SAME_LEVEL * level),
    )


def _trimmed(phases: Phases, seed: range, pattern: Pattern) -> range:
    """The seed without phases at its edges that only happen to be on time."""
    lengths = phases.ends - phases.starts
    alike = [i for i in seed if pattern.alike(float(lengths[i]), float(phases.levels[i]))]
    return range(alike[0], alike[-1] + 1) if len(alike) >= MIN_PHASES else seed


def _all_belong(phases: Phases, pattern: Pattern) -> bool:
    """Whether no phase is missing or extra and nearly all are on time."""
    late = np.abs(np.diff(phases.starts) - pattern.period)
    return bool(late.max() < pattern.period / 2 and np.mean(late > pattern.tolerance) <= FEW_LATE)


def _count(phases: Phases, seed: range, pattern: Pattern) -> list[Beat]:
    """Continue the rhythm of the seed to both sides."""
    first, last = seed.start, seed.stop - 1
    inside = _as_beats(phases, seed)
    after = _follow(phases.starts[last:], phases.ends[last:], phases.levels[last:], pattern)
    before = _follow(
        -phases.ends[first::-1], -phases.starts[first::-1], phases.levels[first::-1], pattern
    )
    return [*_mirrored(before, inside[0]), *inside[1:], *after]


def _follow(
    starts: FloatArray, ends: FloatArray, levels: FloatArray, pattern: Pattern
) -> list[Beat]:
    """Continue a rhythm after its last phase, the first one given; one beat may be missed."""
    beats: list[Beat] = []
    here = Beat(float(starts[0]), float(ends[0]), 0)
    known = zip(starts[1:].tolist(), ends[1:].tolist(), levels[1:].tolist(), strict=True)
    for start, end, level in known:
        if start - here.start > 2 * pattern.period + pattern.tolerance:
            break
        beat = pattern.next_beat(here, start=start, end=end, level=level)
        if beat is not None:
            beats.append(beat)
            here = beat
    while beats and beats[-1].periods > 1:
        beats.pop()  # beyond a missed beat, one phase alone is chance
    return beats


def _mirrored(before: Sequence[Beat], first: Beat) -> list[Beat]:
    """Beats found backwards in time, turned round, and the first beat after them."""
    turned = [*reversed(before), Beat(-first.end, -first.start, 0)]
    periods = [1, *(beat.periods for beat in reversed(before))]
    return [
        Beat(-beat.end, -beat.start, count) for beat, count in zip(turned, periods, strict=True)
    ]


def _spread(beats: Sequence[Beat], seconds: float) -> float:
    distances = np.diff([beat.start for beat in beats])
    periods = np.array([beat.periods for beat in beats[1:]])
    return float(np.sqrt(np.mean((distances / periods - seconds) ** 2)))
