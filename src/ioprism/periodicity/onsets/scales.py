"""At which scales does a signal have phases?

A checkpoint is a burst of requests, each of which is a burst of its own: the finest sampling
splits a phase into its requests. Which scale is meant follows from the structure: gaps within a
phase and between phases are of different kinds, so their sizes part. Where a background never
rests there are no gaps; coarser samples show the phases then. Every scale looked at is a
question of its own, and whoever asks several pays for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.segments import (
    NOTHING,
    IntArray,
    Phases,
    busy_runs,
    find_pauses,
    find_phases,
    join_runs,
    without_strays,
)
from ioprism.phase_detection.segmentation import gap_threshold

COARSER = 4  # samples of a scale in one of the next
FEWEST_SAMPLES = 128  # of the coarsest scale
MIN_PHASES = 3
PARTED = 2.0  # neighbours in the sorted gaps that differ by this factor are of two kinds
MOST_PARTINGS = 2
BACKGROUND = 0.1  # share of the mean up to which coarse samples are other, smaller I/O
# How likely a rhythm is to show at a scale, beside any other one.
FINEST = 8.0
BY_CLEAREST_GAPS = 4.0
BY_PHASES_OF_JOB = 4.0
ANY_OTHER = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """One way to split a signal into phases."""

    phases: Phases
    weight: float  # of the evidence sought at it, beside those of others


def find_scales(signal: Signal, *, finest: Phases | None = None) -> Iterator[Scale]:
    """Split a signal into three phases or more in every way, the finest first.

    Args:
        signal: the signal.
        finest: its phases by its levels, if they are known already.
    """
    return (scale for scale in _every(signal, finest) if len(scale.phases) >= MIN_PHASES)


def distinct(scales: Iterable[Scale]) -> list[Scale]:
    """The scales that differ, with weights that sum to one."""
    found: list[Scale] = []
    for scale in scales:
        alike = (i for i, other in enumerate(found) if _same(scale.phases, other.phases))
        place = next(alike, None)
        if place is None:
            found.append(scale)
        else:
            found[place] = replace(found[place], weight=found[place].weight + scale.weight)
    total = sum(scale.weight for scale in found)
    return [replace(scale, weight=scale.weight / total) for scale in found]


def _every(signal: Signal, known: Phases | None) -> Iterator[Scale]:
    for coarse in coarser_signals(signal):
        finest = coarse is signal
        phases = known if finest and known is not None else find_phases(coarse)
        if phases is not None:
            yield Scale(phases, FINEST if finest else ANY_OTHER)
        weight = BY_CLEAREST_GAPS if finest else ANY_OTHER
        for joined in _by_gaps(coarse, above=NOTHING if finest else BACKGROUND):
            yield Scale(joined, weight)
            if finest:
                yield Scale(without_strays(joined), ANY_OTHER)
            weight = ANY_OTHER
    runs = busy_runs(signal)
    if len(runs[0]) < MIN_PHASES:
        return
    pauses = find_pauses(signal)
    if pauses is not None:
        yield Scale(pauses, ANY_OTHER)
    yield Scale(phases_of_job(signal, runs), BY_PHASES_OF_JOB)


def phases_of_job(signal: Signal, runs: tuple[IntArray, IntArray]) -> Phases:
    """The segmentation that `ioprism phases` uses."""
    start, end = (signal.start + signal.interval * edge.astype(np.float64) for edge in runs)
    threshold = gap_threshold(start, end)
    # A gap as long as the threshold separates; samples are whole, so half of one is enough.
    return join_runs(signal, runs, shortest_gap=max(0.0, threshold / signal.interval - 0.5))


def coarser_signals(signal: Signal, *, fewest: int = FEWEST_SAMPLES) -> Iterator[Signal]:
    """The signal itself, and averages over ever more of its samples."""
    block = 1
    while block == 1 or len(signal.values) >= block * fewest:
        yield averaged(signal, block)
        block *= COARSER


def averaged(signal: Signal, block: int) -> Signal:
    """Means over blocks of samples; what does not fill a block at the end is left out."""
    if block == 1:
        return signal
    whole = len(signal.values) // block * block
    means = signal.values[:whole].reshape(-1, block).mean(axis=1)
    return Signal(signal.start, signal.interval * block, means)


def _by_gaps(signal: Signal, *, above: float) -> Iterator[Phases]:
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
    if median(gaps) * PARTED > float(gaps.max()):
        return [0.0]  # all of one kind
    ratios = ordered[1:] / ordered[:-1]
    clearest = np.argsort(-ratios, kind="stable")[:MOST_PARTINGS]
    return [
        math.sqrt(float(ordered[place]) * float(ordered[place + 1]))
        for place in clearest.tolist()
        if ratios[place] >= PARTED
    ]


def _same(one: Phases, other: Phases) -> bool:
    """Whether two ways give the same phases, within a twentieth of their distance."""
    if len(one) != len(other):
        return False
    tolerance = 0.05 * float(np.diff(one.starts).mean())
    return bool(np.abs(one.starts - other.starts).max() <= tolerance)
