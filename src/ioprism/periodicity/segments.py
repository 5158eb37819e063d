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
from ioprism.periodicity import limits
from ioprism.periodicity.results import Period
from ioprism.phase_detection import gap_threshold

IntArray = npt.NDArray[np.int64]
Runs = tuple[IntArray, IntArray]  # first and past-the-last samples of stretches

HISTOGRAM_BINS = 256  # of Otsu's method (1979), made for 8-bit images


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

    def part(self, chosen: slice | npt.NDArray[np.bool_]) -> SignalPhases:
        """Some of the phases."""
        rows = {name: getattr(self, name)[chosen] for name in ("starts", "ends", "levels")}
        return replace(self, **rows)

    def __len__(self) -> int:
        return len(self.starts)


def find_phases(signal: Signal) -> SignalPhases | None:
    """Split a signal into phases, or None if it does not switch between two levels."""
    values = signal.values
    levels = _two_levels(values)
    if levels is None or not _rests(values, levels):
        return None
    volume = _running_sum(values)
    idle, height = levels[0], levels[1] - levels[0]
    active = _runs(values > idle + limits.SAME_LEVEL * height)
    half = np.flatnonzero(values > idle + 0.5 * height)  # phases are trimmed to these
    busy = idle + limits.MIN_MEAN_LEVEL * height
    rough = _busy_phases(volume, busy, half, _close(active, shortest_gap=2))
    if len(rough[0]) == 0:
        return None
    shortest_gap = _shortest_real_gap(values, volume, *rough)
    closed = _close(active, shortest_gap=shortest_gap)
    return _as_phases(signal, volume, _busy_phases(volume, busy, half, closed), shortest_gap)


def busy_runs(signal: Signal, *, above: float = limits.NEGLIGIBLE) -> Runs:
    """First and past-the-last samples of the stretches above a share of the mean.

    A signal below zero, which a filter leaves, has none: its ripples are not I/O.
    """
    if float(signal.values.min()) < 0.0:
        return _runs(np.zeros(len(signal.values), dtype=bool))
    return _runs(signal.values > above * float(np.abs(signal.values).mean()))


def join_runs(signal: Signal, runs: Runs, *, shortest_gap: float) -> SignalPhases:
    """Busy stretches as phases; those no further apart than a gap (samples) are one."""
    closed = _close(runs, shortest_gap=shortest_gap)
    return _as_phases(signal, _running_sum(signal.values), closed, shortest_gap)


def _as_phases(signal: Signal, volume: FloatArray, runs: Runs, shortest_gap: float) -> SignalPhases:
    starts, ends = ((signal.start + signal.interval * edge).astype(np.float64) for edge in runs)
    levels = _means(volume, *runs)
    return SignalPhases(starts, ends, levels, shortest_gap * signal.interval, signal.interval)


def find_pauses(signal: Signal) -> SignalPhases | None:
    """Split a signal where it does nothing at all, or None if it never or mostly does."""
    runs = busy_runs(signal)
    if len(runs[0]) < 2:
        return None
    pauses = runs[0][1:] - runs[1][:-1]
    ascending = np.sort(pauses)
    half = ascending[np.searchsorted(np.cumsum(ascending), pauses.sum() / 2)]
    phases = join_runs(signal, runs, shortest_gap=float(half) / 2)
    if 2.0 * float((phases.ends - phases.starts).sum()) < signal.end - signal.start:
        return None
    return replace(phases, shortest_gap=0.0)


def without_strays(phases: SignalPhases) -> SignalPhases:
    """The phases without those much smaller than the ones that hold half of all bytes."""
    kept = _are_of_size(phases.levels * (phases.ends - phases.starts))
    return phases.part(kept)


def _are_of_size(volumes: FloatArray) -> npt.NDArray[np.bool_]:
    """Which volumes are a fair share of a typical one, of which those hold half of all."""
    ascending = np.sort(volumes)
    half = int(np.searchsorted(np.cumsum(ascending), volumes.sum() / 2))
    typical = float(ascending[min(half, len(ascending) - 1)])
    # No size below zero is a stray one.
    return np.asarray(volumes >= (limits.MIN_COMPARABLE * typical if typical > 0.0 else -math.inf))


def _two_levels(values: FloatArray) -> tuple[float, float] | None:
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
    return float(moment[split] / below[split]), float((total - moment[split]) / above[split])


def _rests(values: FloatArray, levels: tuple[float, float]) -> bool:
    band = limits.MINOR * (levels[1] - levels[0])
    resting = [
        np.count_nonzero(values < level + band) - np.count_nonzero(values <= level - band)
        for level in levels
    ]
    return bool(max(resting) >= limits.RESTING_SHARE * len(values))


def _runs(active: npt.NDArray[np.bool_]) -> Runs:
    change = np.flatnonzero(np.diff(active, prepend=False, append=False))
    return change[0::2], change[1::2]


def _close(runs: Runs, *, shortest_gap: float) -> Runs:
    starts, ends = runs
    kept = starts[1:] - ends[:-1] > shortest_gap
    return starts[np.append(True, kept)], ends[np.append(kept, True)]


def _running_sum(values: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], np.cumsum(values)))


def _means(volume: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    means: FloatArray = (volume[ends] - volume[starts]) / (ends - starts)
    return means


def _busy_phases(volume: FloatArray, least: float, above: IntArray, runs: Runs) -> Runs:
    """The runs that are busy on average, without stray ones if the others are of a size."""
    starts, ends = runs
    busy = _means(volume, starts, ends) > least
    first = np.searchsorted(above, starts[busy])
    last = np.searchsorted(above, ends[busy]) - 1
    passes = first <= last
    starts, ends = above[first[passes]], above[last[passes]] + 1
    if len(starts) == 0:
        return starts, ends
    kept = _are_of_size(_means(volume, starts, ends) * (ends - starts))
    lengths = (ends - starts)[kept]
    middle = median(lengths)
    if median(np.abs(lengths - middle)) > limits.SAME_PERIOD * middle:
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


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """One way to split a signal into phases."""

    phases: SignalPhases
    weight: float  # of the evidence sought at it, beside those of others


def find_scales(signal: Signal, *, finest: SignalPhases | None = None) -> Iterator[Scale]:
    """Split a signal into three phases or more in every way, the finest first (may be known)."""
    return (scale for scale in _every(signal, finest) if len(scale.phases) >= limits.MIN_PHASES)


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
            yield Scale(phases, limits.FINEST_WEIGHT if finest else 1.0)
        weight = limits.LIKELY_WEIGHT if finest else 1.0
        for joined in _by_gaps(coarse, above=limits.NEGLIGIBLE if finest else limits.MINOR):
            yield Scale(joined, weight)
            if finest:
                yield Scale(without_strays(joined), 1.0)
            weight = 1.0
    runs = busy_runs(signal)
    if len(runs[0]) >= limits.MIN_PHASES:
        yield Scale(phases_of_job(signal, runs), limits.LIKELY_WEIGHT)


def phases_of_job(signal: Signal, runs: Runs) -> SignalPhases:
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
    if len(runs[0]) < limits.MIN_PHASES:
        return
    gaps = (runs[0][1:] - runs[1][:-1]).astype(np.float64)
    if median(gaps) * limits.OTHER_KIND > float(gaps.max()):
        yield join_runs(signal, runs, shortest_gap=0.0)  # all of one kind
        return
    ordered = np.sort(gaps)[: len(gaps) - (limits.MIN_PHASES - 2)]
    ratios = ordered[1:] / ordered[:-1]
    for place in np.argsort(-ratios, kind="stable")[: limits.MAX_PARTINGS].tolist():
        if ratios[place] >= limits.OTHER_KIND:
            middle = math.sqrt(float(ordered[place]) * float(ordered[place + 1]))
            yield join_runs(signal, runs, shortest_gap=middle)


def _same(one: SignalPhases, other: SignalPhases) -> bool:
    """Whether two ways give the same phases."""
    if len(one) != len(other):
        return False
    tolerance = limits.SAME * float(np.diff(one.starts).mean())
    return bool(np.abs(one.starts - other.starts).max() <= tolerance)


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


def _at_pauses(signal: Signal, runs: Runs, known: Period) -> SignalPhases | None:
    """Join what is closer than half a usual pause: a phase may be a burst of many requests."""
    if not known.phases:
        return None
    length = median(np.array([end - start for start, end in known.phases]))
    pause = known.seconds - length
    if not len(runs[0]) or pause <= signal.interval:
        return None
    phases = join_runs(signal, runs, shortest_gap=pause / 2 / signal.interval)
    # A faster period than the known one would be joined to one long phase.
    return phases if phases.ends[-1] - phases.starts[-1] <= limits.OTHER_KIND * length else None


def beats(parts: Segmentations, period: Period) -> SignalPhases | None:
    """The phases that are about one period apart, or None if no way gives such."""
    for ways in ((parts.by_levels, parts.by_pauses), (parts.of_job,), (parts.by_known,)):
        candidates = [part for part in ways if part is not None]
        astray = [(_astray(part, period.seconds), number) for number, part in enumerate(candidates)]
        share, number = min(astray, default=(1.0, 0))
        if share <= 1.0 - limits.MOST:
            return candidates[number]
    return None


def _astray(phases: SignalPhases, period: float) -> float:
    """Share of the distances far from the period; 1 if their median is far from it."""
    distances = np.diff(phases.starts)
    if (
        len(distances) < limits.FEWEST_REPETITIONS
        or abs(median(distances) - period) > limits.MAX_OFFSET * period
    ):
        return 1.0
    return float(np.mean(np.abs(distances - period) >= period / 2))
