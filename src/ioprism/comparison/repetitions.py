"""Did a change do anything? Times of repeated runs on both sides, and what noise alone explains.

Run times have outliers: another job on the file system adds a second to one run in six. Where there
are enough runs, five on each side, their ranks are compared (Mann and Whitney 1947), and the saving
is the median of all differences between the sides, with the interval that belongs to that test
(Hodges and Lehmann 1963). Ranks of fewer runs can prove nothing, so that those are compared by
Welch's t-test (1947), which lets each side vary in its own way. Where one side ran only once, its
variance is taken to be that of the other side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import NormalDist, fmean, median, variance
from typing import Any

import numpy as np

from ioprism.model.arrays import MAD_TO_DEVIATION, FloatArray
from ioprism.model.result import pick
from ioprism.phase_detection.find import Phase, Phases

LEVEL = 0.95  # of the interval of a difference, and of changes that are found: the convention
# Of a regression: a test suite that runs on every change should fail for nothing once in a hundred.
MAX_FALSE_ALARM = 0.01
# On each side, to judge a regression: if one run in six is an outlier, two on one side and none on
# the other occur in 1.9 % of comparisons and look like a regression; three in 0.3 %.
MIN_RUNS = 3
MIN_BULK = 5  # runs of a side needed to recognise outliers
MOST_EXACT = 30  # runs on each side; beyond, the normal approximation is good to three digits
MOST_RUNS = 100  # on each side: more repetitions are not practical


@dataclass(frozen=True, slots=True)
class Difference:
    """Seconds saved by a change: before less after."""

    before: float  # of a typical run: the median, or the mean of a few
    after: float
    saved: float
    low: float | None  # of the 95 % interval; None where no side ran twice
    high: float | None
    slower_by_chance: float | None  # how often noise alone makes it this much slower
    noise: float | None  # standard deviation of one run, outliers apart, over a typical run

    @property
    def change(self) -> float | None:
        """Growth over before; None where there was nothing before."""
        return -self.saved / self.before if self.before else None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the interval excludes no change; None where the noise is not known."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        repeated = self.low is not None
        return {
            **pick(self, "before", "after", "saved"),
            "interval": {**pick(self, "low", "high"), "level": LEVEL} if repeated else None,
            **pick(self, "change", "noise", "beyond_noise"),
        }

    def is_regression(self, share: float) -> bool:
        """Whether it is slower by at least this share, and noise hardly ever explains it."""
        change, chance = self.change, self.slower_by_chance
        if change is None or chance is None:
            return False
        return change >= share and chance <= MAX_FALSE_ALARM


def difference(
    before: Sequence[float], after: Sequence[float], *, false_alarm: float = MAX_FALSE_ALARM
) -> Difference:
    """Compare the times of runs before and after a change.

    Args:
        before: seconds of at least one run.
        after: the same after the change.
        false_alarm: the chance that will count as proof; it decides whether ranks can be used.
    """
    # The most extreme order of five and five runs is one of 252.
    if math.comb(len(before) + len(after), len(before)) * false_alarm > 1:
        return _difference_of_ranks(before, after)
    old, new = fmean(before), fmean(after)
    spread = _standard_error(before, after)
    if spread is None:
        return Difference(old, new, old - new, None, None, None, None)
    error, freedom = spread
    noise = _noise(before, after)
    if error == 0:  # a clock too coarse for the runs, or the same file given twice
        certain = 0.0 if new > old else 1.0
        return Difference(old, new, old - new, old - new, old - new, certain, noise)
    reach = student_quantile((1 + LEVEL) / 2, freedom) * error
    chance = 1 - student_cdf((new - old) / error, freedom)
    return Difference(old, new, old - new, old - new - reach, old - new + reach, chance, noise)


def _difference_of_ranks(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Compare every run before with every run after: how often is the one after longer?"""
    pairs = sorted(old - new for old in before for new in after)
    longer = sum((pair < 0) + 0.5 * (pair == 0) for pair in pairs)
    below = _below(len(before), len(after))
    # The distribution is symmetric: its upper tail is read from the lower one.
    chance = below[min(math.floor(len(pairs) - longer), len(pairs))]
    outside = (1 - LEVEL) / 2
    cut = sum(probability <= outside for probability in below)  # pairs beyond each end
    low, high = pairs[max(cut - 1, 0)], pairs[min(len(pairs) - cut, len(pairs) - 1)]
    typical = median(before), median(after)
    return Difference(*typical, median(pairs), low, high, chance, _noise(before, after))


def _below(first: int, second: int) -> list[float]:
    """Return the chance that at most 0, 1, 2, … pairs are in one order, if nothing differs."""
    pairs = first * second
    if max(first, second) > MOST_EXACT:
        law = NormalDist(pairs / 2, math.sqrt(pairs * (first + second + 1) / 12))
        return [law.cdf(place + 0.5) for place in range(pairs + 1)]
    # Counts of orders: the coefficients of a Gaussian binomial, factor by factor.
    ways = [1] + [0] * pairs
    for number in range(1, first + 1):
        for place in range(pairs, second + number - 1, -1):
            ways[place] -= ways[place - second - number]
        for place in range(number, pairs + 1):
            ways[place] += ways[place - number]
    total = math.comb(first + second, first)
    return [sum_of_ways / total for sum_of_ways in accumulate(ways)]


def _standard_error(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """Return the standard error of the difference, and its degrees of freedom."""
    repeated = [side for side in (before, after) if len(side) > 1]
    if not repeated:
        return None
    if len(repeated) == 1:
        (side,) = repeated
        return math.sqrt(variance(side) * (1 / len(before) + 1 / len(after))), len(side) - 1
    parts = [variance(side) / len(side) for side in repeated]
    total = sum(parts)
    if total == 0:
        return 0.0, 1.0
    shares = (part**2 / (len(side) - 1) for part, side in zip(parts, repeated, strict=True))
    return math.sqrt(total), total**2 / sum(shares)


def _noise(before: Sequence[float], after: Sequence[float]) -> float | None:
    """The relative standard deviation of one run, pooled over the sides that were repeated."""
    squares, freedom = 0.0, 0
    for side in (before, after):
        if len(side) > 1 and (typical := median(side)) > 0:
            squares += (len(side) - 1) * (_deviation(side) / typical) ** 2
            freedom += len(side) - 1
    return math.sqrt(squares / freedom) if freedom else None


def _deviation(side: Sequence[float]) -> float:
    """The standard deviation; that of the bulk where there are enough runs to tell outliers."""
    if len(side) < MIN_BULK:
        return math.sqrt(variance(side))
    middle = median(side)
    return MAD_TO_DEVIATION * median(abs(seconds - middle) for seconds in side)


def runs_needed(noise: float, share: float) -> int | None:
    """Return how many runs on each side find a change of this share in 19 of 20 cases.

    The standardised change must exceed the quantiles for 1 % false alarms and 5 % misses together.
    None where more than `MOST_RUNS` would be needed.
    """
    for runs in range(2, MOST_RUNS + 1):
        freedom = 2 * (runs - 1)
        wanted = student_quantile(1 - MAX_FALSE_ALARM, freedom) + student_quantile(LEVEL, freedom)
        error = noise * math.sqrt((1 + (1 + share) ** 2) / runs)  # noise grows with the run time
        if share >= wanted * error:
            return runs
    return None


def student_cdf(value: float, freedom: float) -> float:
    """Return how often Student's t with these degrees of freedom is below a value.

    Over the angle atan(t / sqrt(freedom)) the density is a power of the cosine, which is smooth.
    """
    angle = math.atan2(value, math.sqrt(freedom))
    nodes, weights = _quadrature()
    powers = np.cos(angle * (nodes + 1) / 2) ** (freedom - 1)
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return 0.5 + factor / math.sqrt(math.pi) * angle / 2 * float(weights @ powers)


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss and Legendre; 200 are exact to 1e-13 up to 10,000 runs."""
    return np.polynomial.legendre.leggauss(200)


def student_quantile(probability: float, freedom: float) -> float:
    """Return the value below which Student's t is with a probability of at least a half."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return high


# Costs of the alignment (Needleman and Wunsch 1970): two phases of one kind are paired rather than
# left alone, whatever their sizes, because a change may well alter how much a phase moves.
ALONE = 0.6  # of a phase without a partner
OTHER_KIND = 0.5  # more, where only one of the two also reads, or also writes
SIZES_APART = 8.0  # sizes that differ by this factor count as unlike
MOST_PHASES = 400  # of a run that are aligned, the longest: time grows with their square

Stretch = tuple[float, float]  # seconds from and to
Pair = tuple[Phase, Phase]


@dataclass(frozen=True, slots=True)
class AlignedStretch:
    """A stretch of both runs: a phase that both have, or what lies between two of them."""

    kind: str  # of the phase; empty between phases
    before: Stretch
    after: Stretch

    @property
    def saved(self) -> float:
        """Seconds that the run after needs less."""
        (a, b), (c, d) = self.before, self.after
        return (b - a) - (d - c)


def align_runs(
    before: Phases | None, after: Phases | None, spans: tuple[Stretch, Stretch]
) -> tuple[AlignedStretch, ...]:
    """Cut both runs at the phases that they share; `spans` are their first and last second."""
    return tuple(_segments(pair_phases(*_comparable(before, after)), spans))


def _segments(pairs: Sequence[Pair], spans: tuple[Stretch, Stretch]) -> Iterator[AlignedStretch]:
    (old, old_end), (new, new_end) = spans
    for first, second in pairs:
        yield AlignedStretch("", (old, first.start), (new, second.start))
        old, new = min(first.end, old_end), min(second.end, new_end)
        yield AlignedStretch(_common_kind(first, second), (first.start, old), (second.start, new))
    yield AlignedStretch("", (old, old_end), (new, new_end))


def _common_kind(old: Phase, new: Phase) -> str:
    """What either phase does: `write` beside `read and write` is `read and write`."""
    return " and ".join(sorted({*old.kind.split(" and "), *new.kind.split(" and ")}))


def _comparable(before: Phases | None, after: Phases | None) -> tuple[list[Phase], list[Phase]]:
    """The phases of the longest layer that both have; else the main one of each."""
    if before is None or after is None:
        return [], []
    shared = before.layers.keys() & after.layers.keys()
    sides = []
    for phases in (before, after):
        names = sorted(shared or phases.layers.keys())
        main = max(names, key=lambda name: _seconds(before, after, name), default=None)
        listed = [] if main is None else list(phases.layers[main].phases)
        longest = sorted(listed, key=lambda phase: phase.start - phase.end)[:MOST_PHASES]
        sides.append(sorted(longest, key=lambda phase: phase.start))
    return sides[0], sides[1]


def _seconds(before: Phases, after: Phases, layer: str) -> float:
    held = (run.layers[layer].phases for run in (before, after) if layer in run.layers)
    return sum(phase.end - phase.start for phases in held for phase in phases)


def pair_phases(before: Sequence[Phase], after: Sequence[Phase]) -> list[Pair]:
    """Return pairs of phases that do the same work, in order, at the least cost."""
    width = len(after) + 1
    costs = [[ALONE * (row + column) for column in range(width)] for row in range(len(before) + 1)]
    for row, old in enumerate(before, 1):
        above, line = costs[row - 1], costs[row]
        for column, new in enumerate(after, 1):
            alone = min(above[column], line[column - 1]) + ALONE
            line[column] = min(alone, above[column - 1] + _unlikeness(old, new))
    pairs: list[Pair] = []
    row, column = len(before), len(after)
    while row and column:
        old, new = before[row - 1], after[column - 1]
        if costs[row][column] == costs[row - 1][column - 1] + _unlikeness(old, new):
            pairs.append((old, new))
            row, column = row - 1, column - 1
        elif costs[row][column] == costs[row - 1][column] + ALONE:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]


def _unlikeness(old: Phase, new: Phase) -> float:
    """0 for equal phases, 1 for the same kind of another size, infinite for other kinds."""
    if not set(old.kind.split(" and ")) & set(new.kind.split(" and ")):
        return math.inf
    sizes = [phase.bytes or phase.operations or 1 for phase in (old, new)]
    apart = abs(math.log(sizes[0] / sizes[1])) / math.log(SIZES_APART)
    return min(1.0, apart) + (OTHER_KIND if old.kind != new.kind else 0.0)
