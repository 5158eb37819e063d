"""Are the phases of a period phases of the job, and does each follow one period after the last?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.counting import MAX_CYCLE
from ioprism.periodicity.onsets.scales import phases_of_job
from ioprism.periodicity.onsets.segments import SignalPhases, busy_runs, find_phases
from ioprism.periodicity.results import Pattern, Period

MAX_START_OFFSET = 0.15  # of the period, between the start of a phase and that of the job's
MANY_REPETITIONS = 8  # repetitions; more than these need no witness
MAX_PARTIAL_SHARE = 0.7  # share of the signal below which a period holds in a part of it
MIN_CONFIRMED_SHARE = 0.7  # share of the phases that must be phases of the job


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
    return int(np.count_nonzero(away <= MAX_START_OFFSET * period.seconds))


def needs_confirmation(signal: Signal, period: Period) -> bool:
    """Whether a few phases within a longer job are all there is.

    So few can be chosen from a job in many ways, and which gaps separate phases is a choice of
    its own. The job's phases, which are the same in every command, must show them.
    """
    few = period.repetitions < MANY_REPETITIONS and bool(period.phases)
    return few and period.seconds_held < MAX_PARTIAL_SHARE * (signal.end - signal.start)


def is_confirmed(period: Period) -> bool:
    """Whether most phases of a period are phases of the job."""
    return (period.confirmed or 0) >= MIN_CONFIRMED_SHARE * len(period.phases)


MIN_DISTANCES = 7
MIN_DISTANCES_PER_VALUE = 2.0  # distances for each value, so that values are shown and not fitted
MAX_VALUES = 6
MAX_WITHIN_VARIANCE = 4e-3  # share of the variance within values; jitter has all of it
MAX_VALUE_SPREAD = 0.02  # of the mean distance: standard deviation of distances of one value
MIN_OF_VALUE = 2  # distances; a single one is an exception
MIN_VALUE_DISTANCE = 0.04  # of the mean distance, between two values
MIN_CHANGES = 0.3  # share of the distances that differ from the last; a new period has few
MAX_EVEN_VARIATION = 0.05  # variation of the distances, below which one value will do
ROUNDING_SAMPLES = 3.0  # samples; distances that differ by less differ by rounding
POLLING_SHARE = 0.6  # of a phase's length, by which rounding may move its start
MIN_EVEN_SHARE = 0.9  # of the time: phases that are even for as long leave no slot empty
MAX_USUAL_SHARE = 0.7  # share of the commonest value, above which the others are exceptions
MIN_CYCLE_SHARE = 0.9  # of distances equal to the one a cycle ago
MAX_ROUNDING = 1.2  # units between the largest deviations of rounded starts; a line takes a little
MAX_MULTIPLE_ERROR = 0.05  # of the period, root mean square; distances of slots are multiples


def pattern_of(signal: Signal, period: Period) -> Pattern:
    """Whether the phases of a period come after it each time, or at random slots."""
    if period.method == "phases":
        even = period.spread <= MAX_EVEN_VARIATION * period.seconds
        if even and period.seconds_held >= MIN_EVEN_SHARE * (signal.end - signal.start):
            return "periodic"
        starts, ends = np.array(period.phases).T
        # A counter that is polled rounds lengths and distances equally.
        resolution = max(signal.interval, POLLING_SHARE * median(ends - starts) / ROUNDING_SAMPLES)
        distances = np.diff(starts)
        if not _are_multiples(distances, period.seconds) and _has_few_values(distances, resolution):
            return "slotted"
    runs = busy_runs(signal)
    if len(runs[0]) <= MIN_DISTANCES:
        return "periodic"
    # However little a phase moves, it fills its slot: both ways of splitting must miss some.
    ways = (find_phases(signal), phases_of_job(signal, runs))
    return "slotted" if all(_are_slots(way, period.seconds) for way in ways) else "periodic"


def _are_slots(phases: SignalPhases | None, slot: float) -> bool:
    """Whether phases begin at random multiples of a slot (seconds), or at a few distances."""
    if phases is None:
        return False
    distances = np.diff(phases.starts)
    return _skips(distances, slot) or _has_few_values(distances, phases.resolution)


def _are_multiples(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds)."""
    multiples = np.rint(distances / slot)
    off = distances / slot - multiples
    return bool(multiples.min() >= 1.0 and np.sqrt(np.mean(off**2)) <= MAX_MULTIPLE_ERROR)


def _skips(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds), now the first one and now another."""
    if len(distances) < MIN_DISTANCES or not _are_multiples(distances, slot):
        return False
    multiples = np.rint(distances / slot)
    mixed = float(np.mean(np.diff(multiples) != 0.0)) >= MIN_CHANGES
    return mixed and float(np.mean(multiples == 1.0)) < MAX_USUAL_SHARE


def _has_few_values(distances: FloatArray, resolution: float) -> bool:
    """Whether distances take two to six values, none of which is the usual one."""
    count, deviation = len(distances), float(distances.std()) if len(distances) else 0.0
    if count < MIN_DISTANCES:
        return False
    if deviation <= MAX_EVEN_VARIATION * float(distances.mean()):
        return False
    ordered = np.sort(distances)
    widest = np.argsort(-np.diff(ordered), kind="stable")
    for values in range(2, MAX_VALUES + 1):
        if count < MIN_DISTANCES_PER_VALUE * values:
            return False
        cuts = np.sort(widest[: values - 1])
        groups = np.split(ordered, cuts + 1)
        within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / count
        means = np.array([group.mean() for group in groups])
        apart = float(np.diff(means).min())
        if apart < max(MIN_VALUE_DISTANCE * float(distances.mean()), ROUNDING_SAMPLES * resolution):
            return False
        if min(map(len, groups)) < MIN_OF_VALUE:
            continue
        if within <= min(
            MAX_WITHIN_VARIANCE * deviation**2, (MAX_VALUE_SPREAD * float(distances.mean())) ** 2
        ):
            kinds = np.searchsorted((ordered[cuts] + ordered[cuts + 1]) / 2, distances)
            usual = max(map(len, groups)) >= MAX_USUAL_SHARE * count
            return not usual and _are_in_random_order(kinds) and not _are_rounded(distances, apart)
    return False


def _are_in_random_order(kinds: npt.NDArray[np.int64]) -> bool:
    """Whether kinds follow each other neither in long runs nor in a cycle."""
    if float(np.mean(np.diff(kinds) != 0)) < MIN_CHANGES:
        return False
    return all(
        float(np.mean(kinds[size:] == kinds[:-size])) < MIN_CYCLE_SHARE
        for size in range(2, MAX_CYCLE + 1)
    )


def _are_rounded(distances: FloatArray, unit: float) -> bool:
    """Whether these are equal distances whose ends were rounded to a unit (seconds).

    Rounding moves no start by more than half a unit; random distances add up.
    """
    starts = np.concatenate(([0.0], np.cumsum(distances)))
    numbers = np.arange(len(starts)) - (len(starts) - 1) / 2
    off = starts - numbers * float(numbers @ starts / (numbers @ numbers))
    return float(np.ptp(off)) <= MAX_ROUNDING * unit
