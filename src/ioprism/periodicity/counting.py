"""Which phases are the beats of a period, and does each follow one period after the last?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import MAD_TO_DEVIATION, FloatArray, Signal, median
from ioprism.periodicity import limits
from ioprism.periodicity.results import Pattern, Period
from ioprism.periodicity.segments import SignalPhases, busy_runs, find_phases, phases_of_job


@dataclass(frozen=True, slots=True)
class Beat:
    """One phase of periodic I/O, and how many periods it comes after the previous one."""

    start: float
    end: float
    periods: int


@dataclass(frozen=True, slots=True)
class BeatTemplate:
    """What the next phase of a period looks like."""

    period: float
    tolerance: float  # of the period
    length: float  # of a typical phase
    lengths: tuple[float, float]  # from the shortest to the longest
    levels: tuple[float, float]  # from the lowest to the highest

    def next_beat(self, here: Beat, *, start: float, end: float, level: float) -> Beat | None:
        """This phase as the next beat, or None if it is not one."""
        (shortest, longest), (lowest, highest) = self.lengths, self.levels
        alike = shortest <= end - start <= longest and lowest <= level <= highest
        longer = end - start > longest and level >= lowest
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


def count_beats(
    phases: SignalPhases, *, first: int, last: int, missing: bool = False
) -> list[Beat]:
    """The phases that belong to the period of those from ``first`` to ``last``.

    If some are missing, distances of two periods are among them.
    """
    inside = slice(first, last + 1)
    every = _as_beats(phases, range(len(phases))[inside])
    distances = np.diff(phases.starts[inside])
    if missing:
        periods = periods_between(distances).astype(np.int64).tolist()
        return [replace(one, periods=n) for one, n in zip(every, [1, *periods], strict=True)]
    typical, spread = _middle(distances)
    if spread > limits.MAX_OFFSET * typical:
        return every
    tolerance = float(
        np.clip(
            limits.MAX_DEVIATIONS * spread,
            limits.MAX_OFFSET * typical,
            2.0 * limits.MAX_OFFSET * typical,
        )
    )
    # The longest stretch of distances close to the period.
    steady = np.abs(distances - typical) <= tolerance
    change = np.flatnonzero(np.diff(steady, prepend=False, append=False))
    longest = 2 * int(np.argmax(change[1::2] - change[0::2]))
    seed = range(first + int(change[longest]), first + int(change[longest + 1]) + 1)
    late = np.abs(np.diff(phases.starts) - typical)
    if late.max() < typical / 2 and np.mean(late > tolerance) <= limits.MINOR:
        # No phase is missing or extra, and nearly all are on time.
        return _as_beats(phases, range(len(phases)))
    counted = _count(phases, seed, _pattern(phases, seed, typical, tolerance))
    return counted if len(counted) >= limits.MOST * len(every) else every


def periods_between(distances: FloatArray) -> FloatArray:
    """Divide each distance by the usual one, rounded: how many periods it covers."""
    return np.rint(distances / median(distances))


def _as_beats(phases: SignalPhases, which: range) -> list[Beat]:
    chosen = slice(which.start, which.stop)
    starts, ends = phases.starts[chosen].tolist(), phases.ends[chosen].tolist()
    return [Beat(start, end, 1) for start, end in zip(starts, ends, strict=True)]


def _middle(numbers: FloatArray) -> tuple[float, float]:
    """Median, and the standard deviation that the median deviation suggests."""
    middle = median(numbers)
    return middle, MAD_TO_DEVIATION * median(np.abs(numbers - middle))


def _pattern(phases: SignalPhases, seed: range, period: float, tolerance: float) -> BeatTemplate:
    chosen = slice(seed.start, seed.stop)
    length, length_spread = _middle(phases.ends[chosen] - phases.starts[chosen])
    level, level_spread = _middle(phases.levels[chosen])
    off_length = max(limits.MAX_DEVIATIONS * length_spread, limits.SAME_LENGTH * length)
    off_level = max(limits.MAX_DEVIATIONS * level_spread, limits.SAME_LEVEL * level)
    return BeatTemplate(
        period=period,
        tolerance=tolerance,
        length=length,
        lengths=(length - off_length, length + off_length),
        levels=(level - off_level, level + off_level),
    )


def _count(phases: SignalPhases, seed: range, pattern: BeatTemplate) -> list[Beat]:
    """Continue the period of the seed to both sides."""
    first, last = seed.start, seed.stop - 1
    inside = _as_beats(phases, seed)
    after = _follow(phases.starts[last:], phases.ends[last:], phases.levels[last:], pattern)
    before = _follow(
        -phases.ends[first::-1], -phases.starts[first::-1], phases.levels[first::-1], pattern
    )
    # Found backwards in time: each says how many periods it comes before the one after it.
    turned = [*reversed(before), Beat(-inside[0].end, -inside[0].start, 0)]
    periods = [1, *(beat.periods for beat in reversed(before))]
    earlier = [Beat(-b.end, -b.start, count) for b, count in zip(turned, periods, strict=True)]
    beats = [*earlier, *inside[1:], *after]
    # The first one may lack its beginning: its end is on time, its start is not.
    late = abs(beats[1].start - beats[0].start - beats[1].periods * pattern.period)
    return beats[1:] if late > pattern.tolerance else beats


def _follow(
    starts: FloatArray, ends: FloatArray, levels: FloatArray, pattern: BeatTemplate
) -> list[Beat]:
    """Continue a period after its last phase, the first one given; one beat may be missed."""
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


def spread_of(beats: Sequence[Beat], seconds: float) -> float:
    """Standard deviation of the distance of two beats, in seconds."""
    distances = np.diff([beat.start for beat in beats])
    periods = np.array([beat.periods for beat in beats[1:]])
    return float(np.sqrt(np.mean((distances / periods - seconds) ** 2)))


def whole_cycles(beats: Sequence[Beat], *, resolution: float) -> tuple[Beat, ...]:
    """One beat for each cycle of phases, or all where they have none; resolution in seconds."""
    starts = np.array([beat.start for beat in beats])
    distances = np.diff(starts)
    # Four samples, four, five, and again: that is how a period is rounded, not a cycle.
    even = max(limits.SAME * float(distances.mean()), resolution / 2)
    if any(beat.periods > 1 for beat in beats) or distances.std() <= even:
        return tuple(beats)
    for size in range(2, min(limits.MAX_CYCLE, len(distances) // limits.MIN_SURE_REPETITIONS) + 1):
        cycles = starts[size:] - starts[:-size]
        if cycles.std() <= limits.MIN_COMPARABLE * distances.std():
            # A cycle begins after its longest pause.
            pauses = [float(distances[place::size].mean()) for place in range(size)]
            first = (int(np.argmax(pauses)) + 1) % size
            groups = [beats[place : place + size] for place in range(first, len(beats), size)]
            return tuple(Beat(group[0].start, group[-1].end, 1) for group in groups)
    return tuple(beats)


def count_confirming_phases(signal: Signal, period: Period) -> int:
    """How many phases of a period begin with a phase of the job, going by a signal alone."""
    runs = busy_runs(signal, above=0.0)  # however little a request moves, it is I/O
    return count_common_starts(period, phases_of_job(signal, runs).starts) if len(runs[0]) else 0


def count_common_starts(period: Period, starts: FloatArray) -> int:
    """How many phases of a period begin with one of these (seconds, ascending)."""
    if not period.phases or not len(starts):
        return 0
    beats = np.array([start for start, _ in period.phases])
    after = np.searchsorted(starts, beats)
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(starts) - 1)
    away = np.minimum(np.abs(beats - starts[before]), np.abs(starts[after] - beats))
    return int(np.count_nonzero(away <= limits.MAX_OFFSET * period.seconds))


def needs_confirmation(signal: Signal, period: Period) -> bool:
    """Whether a few phases within a longer job are all there is.

    So few can be chosen from a job in many ways, and which gaps separate phases is a choice of
    its own. The job's phases, which are the same in every command, must show them.
    """
    few = period.repetitions < limits.MANY_REPETITIONS and bool(period.phases)
    return few and period.seconds_held < limits.MOST * (signal.end - signal.start)


def is_confirmed(period: Period) -> bool:
    """Whether most phases of a period are phases of the job."""
    return (period.confirmed or 0) >= limits.MOST * len(period.phases)


def pattern_of(signal: Signal, period: Period) -> Pattern:
    """Whether the phases of a period come after it each time, or at random slots."""
    if period.method == "phases":
        even = period.spread <= limits.SAME * period.seconds
        if even and period.seconds_held >= limits.NEARLY_ALL * (signal.end - signal.start):
            return "periodic"
        starts, ends = np.array(period.phases).T
        # A counter that is polled rounds lengths and distances equally.
        resolution = max(
            signal.interval,
            limits.POLLING_SHARE * median(ends - starts) / limits.MIN_DISTINCT_SAMPLES,
        )
        distances = np.diff(starts)
        if not _are_multiples(distances, period.seconds) and _has_few_values(distances, resolution):
            return "slotted"
    runs = busy_runs(signal)
    if len(runs[0]) <= limits.MANY_REPETITIONS:
        return "periodic"
    # However little a phase moves, it fills its slot: both ways of splitting must miss some.
    for phases in (find_phases(signal), phases_of_job(signal, runs)):
        distances = np.empty(0) if phases is None else np.diff(phases.starts)
        if not (_skips(distances, period.seconds) or _has_few_values(distances, signal.interval)):
            return "periodic"
    return "slotted"


def _are_multiples(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds)."""
    multiples = np.rint(distances / slot)
    off = distances / slot - multiples
    return bool(multiples.min() >= 1.0 and np.sqrt(np.mean(off**2)) <= limits.SAME)


def _skips(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds), now the first one and now another."""
    if len(distances) < limits.MANY_REPETITIONS or not _are_multiples(distances, slot):
        return False
    multiples = np.rint(distances / slot)
    mixed = float(np.mean(np.diff(multiples) == 0.0)) <= limits.MOST
    return mixed and float(np.mean(multiples == 1.0)) < limits.MOST


def _has_few_values(distances: FloatArray, resolution: float) -> bool:
    """Whether distances take two to six values, none of which is the usual one."""
    count = len(distances)
    if count < limits.MANY_REPETITIONS:
        return False
    deviation = float(distances.std())
    if deviation <= limits.SAME * float(distances.mean()):
        return False
    ordered = np.sort(distances)
    widest = np.argsort(-np.diff(ordered), kind="stable")
    for values in range(2, limits.MAX_VALUES + 1):
        cuts = np.sort(widest[: values - 1])
        groups = np.split(ordered, cuts + 1)
        within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / count
        means = np.array([group.mean() for group in groups])
        apart = float(np.diff(means).min())
        if apart < max(
            limits.MIN_VALUE_DISTANCE * float(distances.mean()),
            limits.MIN_DISTINCT_SAMPLES * resolution,
        ):
            return False
        if min(map(len, groups)) < limits.FEWEST_REPETITIONS:
            continue
        if within <= limits.MAX_WITHIN_VARIANCE * deviation**2:
            kinds = np.searchsorted((ordered[cuts] + ordered[cuts + 1]) / 2, distances)
            usual = max(map(len, groups)) >= limits.MOST * count
            return not usual and _are_in_random_order(kinds) and not _are_rounded(distances, apart)
    return False


def _are_in_random_order(kinds: npt.NDArray[np.int64]) -> bool:
    """Whether kinds follow each other neither in long runs nor in a cycle."""
    sizes = range(1, limits.MAX_CYCLE + 1)
    repeating = [float(np.mean(kinds[size:] == kinds[:-size])) for size in sizes]
    return repeating[0] <= limits.MOST and max(repeating[1:]) < limits.NEARLY_ALL


def _are_rounded(distances: FloatArray, unit: float) -> bool:
    """Whether these are equal distances whose ends were rounded to a unit (seconds).

    Rounding moves no start by more than half a unit; random distances add up.
    """
    starts = np.concatenate(([0.0], np.cumsum(distances)))
    numbers = np.arange(len(starts)) - (len(starts) - 1) / 2
    off = starts - numbers * float(numbers @ starts / (numbers @ numbers))
    return float(np.ptp(off)) <= limits.MAX_ROUNDING * unit
