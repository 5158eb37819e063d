"""When did a series change, or lie low for a while, and could chance alone look like that?

A change: numbers of jobs scatter, often with long tails, and jobs of different sizes differ, so
ranks are taken among comparable jobs (van Elteren's stratified test). The place is where the
standardised sum of ranks is largest; permutations among comparable jobs show how likely chance
reaches it, and beyond their number the law of such maxima does.

A stretch: the run of jobs that is best explained by low values being frequent in it. Its
probability is Chernoff's bound on a binomial tail, times the number of runs that there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.site.limits import FEWEST, OFTEN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PERMUTATIONS = 200
LONG_SERIES = 4000  # values that are permuted at most: mean maxima grow as sqrt(2 log log n)


@dataclass(frozen=True, slots=True)
class Split:
    """Where a series changes: values from `place` on differ from those before."""

    place: int
    score: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values from `first` up to, not including, `end` that are low more often than others."""

    first: int
    end: int
    probability: float  # that chance alone makes such a stretch


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A series as ranks among comparable values."""

    ranks: Floats
    groups: Ints  # values with the same number can be compared
    spread: Floats  # standard deviation of the sum of ranks before each place

    @classmethod
    def of(cls, values: Floats, groups: Ints) -> Ranked:
        """Rank values within groups; `groups` has the group number of each value."""
        ranks = np.zeros(len(values))
        variance = np.zeros(max(0, len(values) - 1))
        for group in np.unique(groups):
            own = groups == group
            ranks[own] = _ranks(values[own]) / (1 + own.sum())
            count, before = int(own.sum()), np.cumsum(own)[:-1]
            if count > 1:
                share = before * (count - before) / (count * (count - 1))
                variance += share * float(np.sum(ranks[own] ** 2))
        return cls(ranks, groups, np.sqrt(variance))

    def split(self, ranks: Floats | None = None) -> Split | None:
        """Return where the series changes most, None where it is too short."""
        count = len(self.ranks)
        if count < 2 * FEWEST:
            return None
        sums = np.cumsum(self.ranks if ranks is None else ranks)[:-1]
        score = np.abs(sums) / np.where(self.spread > 0, self.spread, np.inf)
        score[: FEWEST - 1] = 0.0
        score[count - FEWEST :] = 0.0
        place = int(np.argmax(score))
        return Split(place + 1, float(score[place]))

    def chance_of(self, split: Split) -> float:
        """How likely values in random order have such a split somewhere."""
        chance = np.random.default_rng(len(self.ranks))
        few = self._sample(chance)
        places = np.argsort(few.groups, kind="stable")
        scores = []
        for _ in range(PERMUTATIONS):
            shuffled = np.empty_like(few.ranks)
            order = np.lexsort((chance.random(len(few.ranks)), few.groups))
            shuffled[places] = few.ranks[order]
            other = few.split(shuffled)
            scores.append(0.0 if other is None else other.score)
        return _probability(split.score, scores)

    def _sample(self, chance: np.random.Generator) -> Ranked:
        """Return a part of a long series: the law of maxima hardly depends on the length."""
        if len(self.ranks) <= LONG_SERIES:
            return self
        chosen = np.sort(chance.choice(len(self.ranks), LONG_SERIES, replace=False))
        return Ranked.of(self.ranks[chosen], self.groups[chosen])


def low_stretch(low: Flags, *, usual: float) -> Stretch | None:
    """Return the stretch in which low values are frequent; `usual` is their share elsewhere."""
    if low.sum() < FEWEST or usual >= OFTEN:
        return None
    speaks = np.where(low, math.log(OFTEN / usual), math.log((1 - OFTEN) / (1 - usual)))
    sums = np.concatenate(([0.0], np.cumsum(speaks)))
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    first = int(np.flatnonzero(sums[: end + 1] == lowest[end])[-1])
    inside, length = int(low[first:end].sum()), end - first
    if inside < FEWEST:
        return None
    others = len(low) - length
    expected = max(usual, (int(low.sum()) - inside) / others if others else 0.0)
    runs = len(low) * (len(low) + 1) / 2
    return Stretch(first, end, min(1.0, runs * _binomial_tail(inside, length, expected)))


def _binomial_tail(hits: int, tries: int, share: float) -> float:
    """Chernoff's bound on the probability of at least this many hits."""
    seen = hits / tries
    if seen <= share:
        return 1.0
    divergence = seen * math.log(seen / share)
    if seen < 1:
        divergence += (1 - seen) * math.log((1 - seen) / (1 - share))
    return math.exp(-tries * divergence)


def _ranks(values: Floats) -> Floats:
    """Ranks around 0, equal values sharing theirs."""
    return pl.Series(values).rank("average").to_numpy() - (len(values) + 1) / 2


def rank_sum(larger: Floats, others: Floats) -> float:
    """How likely chance makes the first values this much larger (Mann-Whitney, one-sided)."""
    m, n = len(larger), len(others)
    ranks = _ranks(np.concatenate([larger, others]))
    spread = math.sqrt(m * n * float(np.sum(ranks**2)) / ((m + n) * (m + n - 1)))
    if spread == 0:
        return 1.0
    excess = float(ranks[:m].sum()) - 0.5  # the sum is a whole number, or half of one
    return 0.5 * math.erfc(excess / spread / math.sqrt(2))


def _probability(score: float, shuffled: list[float]) -> float:
    """How often chance reaches this score; beyond the permutations, by their extreme values."""
    above = sum(other >= score for other in shuffled)
    if above >= 5:
        return above / len(shuffled)
    # The sums are near normal, so squares of their maxima follow a Gumbel law, whose two
    # numbers come from the permutations.
    squares = np.square(shuffled)
    scale = (float(np.std(squares)) + 1e-12) * math.sqrt(6) / math.pi
    middle = float(np.mean(squares)) - np.euler_gamma * scale
    return -math.expm1(-math.exp(-(score**2 - middle) / scale))
