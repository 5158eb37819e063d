"""Do phases begin at a few fixed distances in random order, rather than one after a period?

A scheduler's tick that brings a burst only now and then, or steps of a few kinds, give distances
of a few exact values. Their mean is no period: when the next phase begins is random among those
values. Such phases are called slotted.
"""

from __future__ import annotations

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.scales import phases_of_job
from ioprism.periodicity.onsets.segments import busy_runs, find_phases
from ioprism.periodicity.results import Pattern, Period

FEWEST_DISTANCES = 7
PER_VALUE = 2.0  # distances for each value, so that values are shown and not fitted
MOST_VALUES = 6
WITHIN = 4e-3  # of the variance of the distances that lies within values; jitter has all of it
EXACT = 0.02  # of the mean distance: standard deviation of distances of one value
FEWEST_OF_VALUE = 2  # distances; a single one is an exception
APART = 0.04  # of the mean distance, between two values
MIXED = 0.3  # share of the distances that differ from the one before; a change of period has few
UNEVEN = 0.05  # variation of the distances, below which one value will do
ROUNDED = 3.0  # samples; distances that differ by less differ by rounding
POLLED = 0.6  # of a phase's length, by which rounding may move its start
NEARLY_ALL = 0.9  # of the time: phases that are even for as long leave no slot empty
USUAL = 0.7  # share of the commonest value, above which the others are exceptions
OFF_MULTIPLE = 0.05  # of the period, root mean square; distances of slots are multiples


def pattern_of(signal: Signal, period: Period) -> Pattern:
    """Whether the phases of a period come after it each time, or at random slots."""
    if period.method == "phases":
        held = sum(end - start for start, end in period.valid_ranges)
        even = period.spread <= UNEVEN * period.seconds
        if even and held >= NEARLY_ALL * (signal.end - signal.start):
            return "periodic"
        starts, ends = np.array(period.phases).T
        # A counter that is polled rounds lengths and distances alike.
        resolution = max(signal.interval, POLLED * median(ends - starts) / ROUNDED)
        distances = np.diff(starts)
        if not _are_multiples(distances, period.seconds) and _has_few_values(distances, resolution):
            return "slotted"
    runs = busy_runs(signal)
    if len(runs[0]) <= FEWEST_DISTANCES:
        return "periodic"
    # However little a phase moves, it fills its slot: both ways of splitting must miss some.
    ways = (find_phases(signal), phases_of_job(signal, runs))
    missing = [way is not None and _skips(np.diff(way.starts), period.seconds) for way in ways]
    return "slotted" if all(missing) else "periodic"


def _are_multiples(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds)."""
    multiples = np.rint(distances / slot)
    off = distances / slot - multiples
    return bool(multiples.min() >= 1.0 and np.sqrt(np.mean(off**2)) <= OFF_MULTIPLE)


def _skips(distances: FloatArray, slot: float) -> bool:
    """Whether distances are multiples of a slot (seconds), now the first one and now another."""
    if len(distances) < FEWEST_DISTANCES or not _are_multiples(distances, slot):
        return False
    multiples = np.rint(distances / slot)
    mixed = float(np.mean(np.diff(multiples) != 0.0)) >= MIXED
    return mixed and float(np.mean(multiples == 1.0)) < USUAL


def _has_few_values(distances: FloatArray, resolution: float) -> bool:
    """Whether distances take two to six values, none of which is the usual one."""
    count, deviation = len(distances), float(distances.std()) if len(distances) else 0.0
    if count < FEWEST_DISTANCES:
        return False
    if deviation <= UNEVEN * float(distances.mean()):
        return False
    ordered = np.sort(distances)
    widest = np.argsort(-np.diff(ordered), kind="stable")
    for values in range(2, MOST_VALUES + 1):
        if count < PER_VALUE * values:
            return False
        cuts = np.sort(widest[: values - 1])
        groups = np.split(ordered, cuts + 1)
        within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / count
        means = np.array([group.mean() for group in groups])
        apart = float(np.diff(means).min())
        if apart < max(APART * float(distances.mean()), ROUNDED * resolution):
            return False
        if min(map(len, groups)) < FEWEST_OF_VALUE:
            continue
        if within <= min(WITHIN * deviation**2, (EXACT * float(distances.mean())) ** 2):
            kinds = np.searchsorted((ordered[cuts] + ordered[cuts + 1]) / 2, distances)
            mixed = float(np.mean(np.diff(kinds) != 0)) >= MIXED
            return mixed and max(map(len, groups)) < USUAL * count
    return False
