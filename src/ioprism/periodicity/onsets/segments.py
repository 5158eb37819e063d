"""When is the signal in a phase of I/O, and when is it idle?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal

IntArray = npt.NDArray[np.int64]

MIN_PHASES = 3  # two repetitions
HISTOGRAM_BINS = 256  # of Otsu's method (1979), made for 8-bit images
RESTING_BAND = 0.1  # of the distance between the two levels
RESTING_SHARE = 0.2  # a signal with phases rests this much; noise has half of it in the band
START_LEVEL = 0.15  # a phase begins above this share of the way from idle to busy,
TRIM_LEVEL = 0.5  # is trimmed to where it first and last passes half of it,
MIN_MEAN_LEVEL = 0.4  # has at least this mean level,
MIN_VOLUME_RATIO = 0.3  # to the volume of a typical phase; others are stray requests,
MAX_LENGTH_SPREAD = 0.1  # provided that half of the phases differ in length by no more than this
IDLE_LEVEL = 0.01  # share of the mean below which nothing happens
MAX_INNER_PAUSE = 0.2  # share of a typical pause below which it belongs to the phase


@dataclass(frozen=True, slots=True, eq=False)
class SignalPhases:
    """Where phases begin and end, in seconds."""

    starts: FloatArray
    ends: FloatArray
    levels: FloatArray  # mean of the signal during each phase
    shortest_gap: float  # seconds; shorter pauses are taken for noise within a phase
    resolution: float  # seconds, of starts and ends

    @property
    def gaps(self) -> FloatArray:
        """From the end of each phase to the start of the next, in seconds."""
        return self.starts[1:] - self.ends[:-1]

    def part(self, first: int, last: int) -> SignalPhases:
        """The phases from ``first`` to ``last``, both included."""
        chosen = slice(first, last + 1)
        return replace(
            self,
            starts=self.starts[chosen],
            ends=self.ends[chosen],
            levels=self.levels[chosen],
        )

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Levels:
    """The two levels between which a signal switches."""

    idle: float
    busy: float

    def at(self, share: float) -> float:
        """The level this share of the way from idle to busy."""
        return self.idle + share * (self.busy - self.idle)


def find_phases(signal: Signal) -> SignalPhases | None:
    """Split a signal into phases, or None if it does not switch between two levels."""
    values = signal.values
    levels = _two_levels(values)
    if levels is None or not _rests(values, levels):
        return None
    volume = _running_sum(values)
    active = _runs(values > levels.at(START_LEVEL))
    half = np.flatnonzero(values > levels.at(TRIM_LEVEL))
    rough = _busy_phases(volume, levels, half, _close(active, shortest_gap=2))
    if len(rough[0]) == 0:
        return None
    shortest_gap = _shortest_real_gap(values, volume, *rough)
    closed = _close(active, shortest_gap=shortest_gap)
    starts, ends = _busy_phases(volume, levels, half, closed)
    return SignalPhases(
        _seconds(signal, starts),
        _seconds(signal, ends),
        _means(volume, starts, ends),
        signal.interval * shortest_gap,
        signal.interval,
    )


def busy_runs(signal: Signal, *, above: float = IDLE_LEVEL) -> tuple[IntArray, IntArray]:
    """First and past-the-last samples of the stretches above a share of the mean.

    A signal below zero, which a filter leaves, has none: its ripples are not I/O.
    """
    if float(signal.values.min()) < 0.0:
        return _runs(np.zeros(len(signal.values), dtype=bool))
    return _runs(signal.values > above * float(np.abs(signal.values).mean()))


def join_runs(
    signal: Signal, runs: tuple[IntArray, IntArray], *, shortest_gap: float
) -> SignalPhases:
    """Busy stretches as phases; those no further apart than a gap (samples) are one."""
    starts, ends = _close(runs, shortest_gap=shortest_gap)
    return SignalPhases(
        _seconds(signal, starts),
        _seconds(signal, ends),
        _means(_running_sum(signal.values), starts, ends),
        shortest_gap * signal.interval,
        signal.interval,
    )


def find_pauses(signal: Signal) -> SignalPhases | None:
    """Split a signal where it does nothing at all, or None if it never or mostly does."""
    runs = busy_runs(signal)
    if len(runs[0]) < 2:
        return None
    pauses = runs[0][1:] - runs[1][:-1]
    ascending = np.sort(pauses)
    half = ascending[np.searchsorted(np.cumsum(ascending), pauses.sum() / 2)]
    phases = join_runs(signal, runs, shortest_gap=MAX_INNER_PAUSE * float(half))
    if 2.0 * float((phases.ends - phases.starts).sum()) < signal.end - signal.start:
        return None
    return replace(phases, shortest_gap=0.0)


def without_strays(phases: SignalPhases) -> SignalPhases:
    """The phases without those much smaller than the ones that hold half of all bytes."""
    kept = _are_of_size(phases.levels * (phases.ends - phases.starts))
    return replace(
        phases, starts=phases.starts[kept], ends=phases.ends[kept], levels=phases.levels[kept]
    )


def _are_of_size(volumes: FloatArray) -> npt.NDArray[np.bool_]:
    """Which volumes are a fair share of a typical one, of which those hold half of all."""
    ascending = np.sort(volumes)
    half = int(np.searchsorted(np.cumsum(ascending), volumes.sum() / 2))
    typical = float(ascending[min(half, len(ascending) - 1)])
    least = (
        MIN_VOLUME_RATIO * typical if typical > 0.0 else -math.inf
    )  # no size below zero is a stray one
    return np.asarray(volumes >= least)


def _seconds(signal: Signal, samples: IntArray) -> FloatArray:
    return (signal.start + signal.interval * samples).astype(np.float64)


def _two_levels(values: FloatArray) -> Levels | None:
    """Otsu's method: the split that explains most of the variance."""
    low, high = float(values.min()), float(values.max())
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        return None
    per_bin = (high - low) / HISTOGRAM_BINS
    places = np.minimum(((values - low) / per_bin).astype(np.int64), HISTOGRAM_BINS - 1)
    counts = np.bincount(places, minlength=HISTOGRAM_BINS)
    centres = low + per_bin * (np.arange(HISTOGRAM_BINS) + 0.5)
    below, moment = np.cumsum(counts)[:-1], np.cumsum(counts * centres)
    above, total = len(values) - below, moment[-1]
    split = int(np.argmax((total * below / len(values) - moment[:-1]) ** 2 / (below * above)))
    return Levels(
        float(moment[split] / below[split]), float((total - moment[split]) / above[split])
    )


def _rests(values: FloatArray, levels: Levels) -> bool:
    band = RESTING_BAND * (levels.busy - levels.idle)
    resting = [
        np.count_nonzero(values < level + band) - np.count_nonzero(values <= level - band)
        for level in (levels.idle, levels.busy)
    ]
    return bool(max(resting) >= RESTING_SHARE * len(values))


def _runs(active: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    change = np.flatnonzero(np.diff(active, prepend=False, append=False))
    return change[0::2], change[1::2]


def _close(runs: tuple[IntArray, IntArray], *, shortest_gap: float) -> tuple[IntArray, IntArray]:
    starts, ends = runs
    kept = starts[1:] - ends[:-1] > shortest_gap
    return starts[np.append(True, kept)], ends[np.append(kept, True)]


def _running_sum(values: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], np.cumsum(values)))


def _means(volume: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    means: FloatArray = (volume[ends] - volume[starts]) / (ends - starts)
    return means


def _busy_phases(
    volume: FloatArray, levels: Levels, above: IntArray, runs: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    starts, ends = runs
    busy = _means(volume, starts, ends) > levels.at(MIN_MEAN_LEVEL)
    first = np.searchsorted(above, starts[busy])
    last = np.searchsorted(above, ends[busy]) - 1
    passes = first <= last
    return _without_strays(volume, above[first[passes]], above[last[passes]] + 1)


def _without_strays(
    volume: FloatArray, starts: IntArray, ends: IntArray
) -> tuple[IntArray, IntArray]:
    """Drop phases much smaller than those that hold half of all bytes, if those are of a size."""
    if len(starts) == 0:
        return starts, ends
    kept = _are_of_size(_means(volume, starts, ends) * (ends - starts))
    lengths = (ends - starts)[kept]
    middle = median(lengths)
    if median(np.abs(lengths - middle)) > MAX_LENGTH_SPREAD * middle:
        return starts, ends
    return starts[kept], ends[kept]


def _shortest_real_gap(
    values: FloatArray, volume: FloatArray, starts: IntArray, ends: IntArray
) -> float:
    """How many idle samples noise within a phase would hardly produce.

    A pause of one correlation length at the idle level is unlikely by exp(-level² / 2
    noise²); as many of them as beat the number of places where one could occur are real.
    """
    lengths = ends - starts
    means = _means(volume, starts, ends)
    inside = np.repeat(np.cumsum(np.append(0, lengths[:-1])) - starts, lengths)
    residuals = values[np.arange(len(inside)) - inside] - np.repeat(means, lengths)
    noise = float(np.mean(residuals**2))
    outside = len(values) - len(residuals)
    idle = float(volume[-1] - np.sum(means * lengths)) / outside if outside else 0.0
    level = float(np.average(means, weights=lengths)) - idle
    if noise <= 1e-12 * level**2:
        return 0.0
    correlation = float(np.clip(np.mean(residuals[1:] * residuals[:-1]) / noise, 0.0, 0.95))
    length = (1 + correlation) / (1 - correlation)
    gap = length * math.log(len(values)) * noise / level**2
    return math.floor(min(gap, len(values) / 20))
