"""At which scales does a signal have phases?

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

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.segments import (
    IDLE_LEVEL,
    MIN_PHASES,
    IntArray,
    SignalPhases,
    busy_runs,
    find_pauses,
    find_phases,
    join_runs,
    without_strays,
)
from ioprism.periodicity.results import Period
from ioprism.phase_detection.segmentation import gap_threshold

COARSENING = 4  # samples of a scale in one of the next
MIN_SCALE_SAMPLES = 128  # of the coarsest scale
MIN_GAP_RATIO = 2.0  # neighbours in the sorted gaps that differ by this factor are of two kinds
MAX_PARTINGS = 2
MAX_BACKGROUND = 0.1  # share of the mean up to which coarse samples are other, smaller I/O
# How likely a period is to show at a scale, beside any other one.
FINEST_WEIGHT = 8.0
CLEAREST_GAPS_WEIGHT = 4.0
JOB_PHASES_WEIGHT = 4.0
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
        weight = CLEAREST_GAPS_WEIGHT if finest else OTHER_WEIGHT
        for joined in _by_gaps(coarse, above=IDLE_LEVEL if finest else MAX_BACKGROUND):
            yield Scale(joined, weight)
            if finest:
                yield Scale(without_strays(joined), OTHER_WEIGHT)
            weight = OTHER_WEIGHT
    runs = busy_runs(signal)
    if len(runs[0]) < MIN_PHASES:
        return
    pauses = find_pauses(signal)
    if pauses is not None:
        yield Scale(pauses, OTHER_WEIGHT)
    yield Scale(phases_of_job(signal, runs), JOB_PHASES_WEIGHT)


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


MIN_BEAT_DISTANCES = 2
MAX_JOINED_PAUSE = 0.5  # of a pause: what is shorter lies within a phase
MAX_LENGTH_RATIO = 2.0  # than a usual phase
MAX_MEDIAN_OFFSET = 0.15  # of the period, between it and the median distance of beats
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
    if (
        len(distances) < MIN_BEAT_DISTANCES
        or abs(median(distances) - period) > MAX_MEDIAN_OFFSET * period
    ):
        return 1.0
    return float(np.mean(np.abs(distances - period) >= MAX_BEAT_OFFSET * period))
