"""Which phases are the beats of a rhythm, one by one, where it is steady enough to count?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray
from ioprism.periodicity.onsets.segments import Phases

MIN_PHASES = 3  # two repetitions
FEW_LATE = 0.1  # share of the distances
STEADY = 0.15  # relative spread up to which phases can be counted one by one
SAME_LENGTH = 0.25  # phases of a rhythm may at least differ in length by this share
SAME_LEVEL = 0.15  # and in their mean level by this
TOLERANCE = (0.15, 0.3)  # of the period: least and most deviation of a counted phase
KEPT = 0.7  # share of the phases that counting must account for


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


def count_beats(phases: Phases, *, first: int, last: int, missing: bool = False) -> list[Beat]:
    """The phases that belong to the rhythm of those from ``first`` to ``last``.

    Args:
        phases: all phases.
        first: the number of the first one that shows the rhythm.
        last: and of the last.
        missing: whether distances of two periods are among them.
    """
    inside = slice(first, last + 1)
    every = _as_beats(phases, range(len(phases))[inside])
    distances = np.diff(phases.starts[inside])
    if missing:
        periods = periods_between(distances).astype(np.int64).tolist()
        return [replace(one, periods=n) for one, n in zip(every, [1, *periods], strict=True)]
    typical, spread = _middle(distances)
    if spread > STEADY * typical:
        return every
    tolerance = float(np.clip(4.0 * spread, TOLERANCE[0] * typical, TOLERANCE[1] * typical))
    steady = _steadiest(distances, typical, tolerance)
    seed = range(first + steady[0], first + steady[1] + 1)
    pattern = _pattern(phases, seed, typical, tolerance)
    trimmed = _trimmed(phases, seed, pattern)
    if trimmed == seed and _all_belong(phases, pattern):
        return _as_beats(phases, range(len(phases)))
    counted = _count(phases, trimmed, pattern)
    return counted if len(counted) >= KEPT * len(every) else every


def periods_between(distances: FloatArray) -> FloatArray:
    """How many periods lie in each distance, where the usual one is a period."""
    return np.rint(distances / median(distances))


def _as_beats(phases: Phases, which: range) -> list[Beat]:
    chosen = slice(which.start, which.stop)
    starts, ends = phases.starts[chosen].tolist(), phases.ends[chosen].tolist()
    return [Beat(start, end, 1) for start, end in zip(starts, ends, strict=True)]


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
    chosen = slice(seed.start, seed.stop)
    lengths = (phases.ends[chosen] - phases.starts[chosen]).tolist()
    known = zip(seed, lengths, phases.levels[chosen].tolist(), strict=True)
    alike = [i for i, length, level in known if pattern.alike(length, level)]
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
    beats = [*_mirrored(before, inside[0]), *inside[1:], *after]
    # The first one may lack its beginning: its end is on time, its start is not.
    late = abs(beats[1].start - beats[0].start - beats[1].periods * pattern.period)
    return beats[1:] if late > pattern.tolerance else beats


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


def spread_of(beats: Sequence[Beat], seconds: float) -> float:
    """Standard deviation of the distance of two beats, in seconds."""
    distances = np.diff([beat.start for beat in beats])
    periods = np.array([beat.periods for beat in beats[1:]])
    return float(np.sqrt(np.mean((distances / periods - seconds) ** 2)))
