"""Arrays of numbers: unions of intervals, quantiles, possible times, quantities over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def unite(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return the disjoint intervals that these cover; those that touch are joined.

    When the n-th start comes after the n-1 first ends, nothing is busy in between: so two
    sorts, each on its own, suffice. Traces are mostly in order, which a stable sort makes use of.
    """
    if not len(start):
        return start, end
    begins, finishes = np.sort(start, kind="stable"), np.sort(end, kind="stable")
    breaks = np.flatnonzero(begins[1:] > finishes[:-1])
    first = np.concatenate(([0], breaks + 1))
    last = np.concatenate((breaks, [len(start) - 1]))
    return begins[first], finishes[last]


class Cover:
    """Disjoint intervals made of any, and what they cover."""

    def __init__(self, start: Floats, end: Floats) -> None:
        self.start, self.end = unite(start, end)
        self._before = np.concatenate(([0.0], np.cumsum(self.end - self.start)))

    @property
    def seconds(self) -> float:
        """How long they last together."""
        return float(self._before[-1])

    def until(self, moments: Floats) -> Floats:
        """Seconds covered before each moment."""
        place = np.searchsorted(self.start, moments, side="right") - 1
        inside = np.minimum(moments, self.end[place]) - self.start[place] if len(self.end) else 0.0
        return np.where(place < 0, 0.0, self._before[place] + inside)

    def within(self, start: Floats, end: Floats) -> Floats:
        """Seconds of each interval that are covered."""
        return self.until(end) - self.until(start)

    def first_free(self, moments: Floats) -> Floats:
        """The first moment from each on that is not covered."""
        if not len(self.start):
            return moments
        place = np.searchsorted(self.start, moments, side="right") - 1
        return np.where(place < 0, moments, np.maximum(moments, self.end[place]))

    def gaps_in(self, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        """The parts of intervals that are not covered."""
        free_from = np.concatenate(([-np.inf], self.end))
        free_to = np.concatenate((self.start, [np.inf]))
        first = np.searchsorted(free_to, start, side="right")
        last = np.searchsorted(free_from, end, side="left")
        count = np.maximum(0, last - first)
        owner = np.repeat(np.arange(len(start)), count)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        gap = first[owner] + offset
        begin = np.maximum(start[owner], free_from[gap])
        finish = np.minimum(end[owner], free_to[gap])
        some = finish > begin
        return begin[some], finish[some]


TINY = 1e-300  # what a divisor or the argument of a logarithm is at least
MAD_TO_DEVIATION = 1.4826  # of a normal law (Rousseeuw and Croux, 1993)


def median(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> float:
    """The middle one, or the mean of both in the middle."""
    return quantile(numbers, 0.5)


def quantile(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64], share: float) -> float:
    """The number that this share of all is below; interpolated where it falls between two."""
    place = share * (len(numbers) - 1)
    low, high = math.floor(place), math.ceil(place)
    ordered = np.partition(numbers, [low, high] if high > low else low)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


CLOCKS_DIFFER = 1.01  # times the run time that a rank may spend in metadata calls


def believable_metadata(
    ranks: npt.ArrayLike, seconds: npt.ArrayLike, runtime: float | None
) -> bool:
    """Return whether no rank spends more time in metadata calls than the run lasts.

    Some Darshan versions count from the first open to the last. Records of all ranks (-1) do not
    count.
    """
    rank, spent = np.asarray(ranks, np.int64), np.asarray(seconds, np.float64)
    own = rank >= 0
    if not runtime or not own.any():
        return True
    return float(np.bincount(rank[own], spent[own]).max()) <= runtime * CLOCKS_DIFFER


FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """``values[i]`` holds from ``edges[i]`` to ``edges[i + 1]``, in seconds."""

    edges: FloatArray
    values: FloatArray

    @property
    def span(self) -> float:
        """From the first to the last edge, in seconds."""
        return float(self.edges[-1] - self.edges[0])


@dataclass(frozen=True, slots=True, eq=False)
class TimeSeries:
    """A quantity over time that a trace records itself, without calls."""

    name: str
    steps: StepFunction  # bytes per second, or the unit of the metric per second
    direction: str | None = None  # read, write, or None where the trace does not say


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """Evenly sampled values; sample ``i`` is the mean over ``start + i * interval`` onwards."""

    start: float  # seconds since the job started
    interval: float  # seconds between samples
    values: FloatArray  # bytes per second, or the unit of the metric

    @property
    def frequency(self) -> float:
        """Samples per second, in Hz."""
        return 1.0 / self.interval

    @property
    def end(self) -> float:
        """Where the last sample's interval ends, in seconds."""
        return self.start + self.interval * len(self.values)

    @property
    def times(self) -> FloatArray:
        """The left edge of every sample, in seconds."""
        return self.start + self.interval * np.arange(len(self.values), dtype=np.float64)
