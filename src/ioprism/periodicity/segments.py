"""When is a signal in a phase of I/O, and at which scales does it have phases?

A checkpoint is a burst of requests, each of which is a burst itself: the finest sampling splits a
phase into its requests. The right scale follows from the structure: gaps within a phase and
between phases differ in kind, so their sizes separate. A background that never rests leaves no
gaps; coarser samples show the phases then. Every scale is one more test of the same signal, which
the false-alarm probability accounts for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import FloatArray, Signal, median
from ioprism.periodicity.limits import FEWEST_REPETITIONS, MAX_OFFSET
from ioprism.periodicity.results import Period
from ioprism.phase_detection import gap_threshold

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


COARSENING = 4  # samples of a scale in one of the next
MIN_SCALE_SAMPLES = 128  # of the coarsest scale
MIN_GAP_RATIO = 2.0  # neighbours in the sorted gaps that differ by this factor are of two kinds
MAX_PARTINGS = 2
MAX_BACKGROUND = 0.1  # share of the mean up to which coarse samples are other, smaller I/O
# How likely a period is to show at a scale, beside any other one.
FINEST_WEIGHT = 8.0
LIKELY_WEIGHT = 4.0  # where gaps part most clearly, and for the phases of the job
OTHER_WEIGHT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """One way to split a signal into phases."""

    phases: SignalPhases
    weight: float  # of the evidence sought at it, beside those of others


def find_scales(signal: Signal, *, finest: SignalPhases | None = None) -> Iterator[Scale]:
    """Split a signal into three phases or more in every way, the finest first.

    Args:
        signal: the signal.
        finest: its phases by its levels, if they are known already.
    """
    return (scale for scale in _every(signal, finest) if len(scale.phases) >= MIN_PHASES)


def distinct(scales: Iterable[Scale]) -> list[Scale]:
    """The scales that differ, with weights that sum to one."""
    kept: list[Scale] = []
    for scale in scales:
        alike = (i for i, other in enumerate(kept) if _same(scale.phases, other.phases))
        place = next(alike, None)
        if place is None:
            kept.append(scale)
        else:
            kept[place] = replace(kept[place], weight=kept[place].weight + scale.weight)
    total = sum(scale.weight for scale in kept)
    return [replace(scale, weight=scale.weight / total) for scale in kept]


def _every(signal: Signal, known: SignalPhases | None) -> Iterator[Scale]:
    for coarse in coarser_signals(signal):
        finest = coarse is signal
        phases = known if finest and known is not None else find_phases(coarse)
        if phases is not None:
            yield Scale(phases, FINEST_WEIGHT if finest else OTHER_WEIGHT)
        weight = LIKELY_WEIGHT if finest else OTHER_WEIGHT
        for joined in _by_gaps(coarse, above=IDLE_LEVEL if finest else MAX_BACKGROUND):
            yield Scale(joined, weight)
            if finest:
                yield Scale(without_strays(joined), OTHER_WEIGHT)
            weight = OTHER_WEIGHT
    runs = busy_runs(signal)
    if len(runs[0]) >= MIN_PHASES:
        yield Scale(phases_of_job(signal, runs), LIKELY_WEIGHT)


def phases_of_job(signal: Signal, runs: tuple[IntArray, IntArray]) -> SignalPhases:
    """The segmentation that `ioprism phases` uses."""
    start, end = (signal.start + signal.interval * edge.astype(np.float64) for edge in runs)
    threshold = gap_threshold(start, end)
    # A gap as long as the threshold separates; samples are whole, so half of one is enough.
    return join_runs(signal, runs, shortest_gap=max(0.0, threshold / signal.interval - 0.5))


def coarser_signals(signal: Signal, *, fewest: int = MIN_SCALE_SAMPLES) -> Iterator[Signal]:
    """The signal itself, and averages over ever more of its samples."""
    block = 1
    while block == 1 or len(signal.values) >= block * fewest:
        yield average_blocks(signal, block)
        block *= COARSENING


def average_blocks(signal: Signal, block: int) -> Signal:
    """Means over blocks of samples; what does not fill a block at the end is left out."""
    if block == 1:
        return signal
    whole = len(signal.values) // block * block
    means = signal.values[:whole].reshape(-1, block).mean(axis=1)
    return Signal(signal.start, signal.interval * block, means)


def _by_gaps(signal: Signal, *, above: float) -> Iterator[SignalPhases]:
    """Busy stretches joined wherever gaps part into short and long ones."""
    runs = busy_runs(signal, above=above)
    if len(runs[0]) < MIN_PHASES:
        return
    gaps = (runs[0][1:] - runs[1][:-1]).astype(np.float64)
    for threshold in _partings(gaps):
        yield join_runs(signal, runs, shortest_gap=threshold)


def _partings(gaps: FloatArray) -> list[float]:
    """Gaps (samples) at which short and long ones part most clearly, the clearest first."""
    ordered = np.sort(gaps)[: len(gaps) - (MIN_PHASES - 2)]
    if len(ordered) < 1:
        return []
    if median(gaps) * MIN_GAP_RATIO > float(gaps.max()):
        return [0.0]  # all of one kind
    ratios = ordered[1:] / ordered[:-1]
    clearest = np.argsort(-ratios, kind="stable")[:MAX_PARTINGS]
    return [
        math.sqrt(float(ordered[place]) * float(ordered[place + 1]))
        for place in clearest.tolist()
        if ratios[place] >= MIN_GAP_RATIO
    ]


def _same(one: SignalPhases, other: SignalPhases) -> bool:
    """Whether two ways give the same phases, within a twentieth of their distance."""
    if len(one) != len(other):
        return False
    tolerance = 0.05 * float(np.diff(one.starts).mean())
    return bool(np.abs(one.starts - other.starts).max() <= tolerance)


MAX_JOINED_PAUSE = 0.5  # of a pause: what is shorter lies within a phase
MAX_LENGTH_RATIO = 2.0  # than a usual phase
MAX_BEAT_OFFSET = 0.5  # of the period; a beat further from its place is a missing or an extra one
MAX_ASTRAY_SHARE = 0.25  # share of the distances


@dataclass(frozen=True, slots=True, eq=False)
class Segmentations:
    """A signal split into phases in several ways; None where it cannot be."""

    by_levels: SignalPhases | None
    by_pauses: SignalPhases | None
    of_job: SignalPhases | None = None  # as `ioprism phases` splits it: however little they move
    by_known: SignalPhases | None = None  # at the pauses of a period that is known

    @property
    def counts(self) -> tuple[int, ...]:
        """How many phases there are, by every way."""
        ways = (self.by_levels, self.by_pauses, self.of_job)
        return tuple(0 if part is None else len(part) for part in ways)


def segments(signal: Signal, *, known: Period | None = None) -> Segmentations:
    """Split a signal in every way, and as a known period suggests."""
    runs = busy_runs(signal)
    return Segmentations(
        by_levels=find_phases(signal),
        by_pauses=find_pauses(signal),
        of_job=phases_of_job(signal, runs) if len(runs[0]) else None,
        by_known=None if known is None else _at_pauses(signal, runs, known),
    )


def _at_pauses(
    signal: Signal, runs: tuple[IntArray, IntArray], known: Period
) -> SignalPhases | None:
    """Join what is closer than half a usual pause: a phase may be a burst of many requests."""
    if not known.phases:
        return None
    length = median(np.array([end - start for start, end in known.phases]))
    pause = known.seconds - length
    if not len(runs[0]) or pause <= signal.interval:
        return None
    phases = join_runs(signal, runs, shortest_gap=MAX_JOINED_PAUSE * pause / signal.interval)
    # A faster period than the known one would be joined to one long phase.
    return phases if phases.ends[-1] - phases.starts[-1] <= MAX_LENGTH_RATIO * length else None


def beats(parts: Segmentations, period: Period) -> SignalPhases | None:
    """The phases that are about one period apart, or None if no way gives such."""
    for ways in ((parts.by_levels, parts.by_pauses), (parts.of_job,), (parts.by_known,)):
        candidates = [part for part in ways if part is not None]
        astray = [(_astray(part, period.seconds), number) for number, part in enumerate(candidates)]
        share, number = min(astray, default=(1.0, 0))
        if share <= MAX_ASTRAY_SHARE:
            return candidates[number]
    return None


def _astray(phases: SignalPhases, period: float) -> float:
    """Share of the distances far from the period; 1 if their median is far from it."""
    distances = np.diff(phases.starts)
    if len(distances) < FEWEST_REPETITIONS or abs(median(distances) - period) > MAX_OFFSET * period:
        return 1.0
    return float(np.mean(np.abs(distances - period) >= MAX_BEAT_OFFSET * period))
