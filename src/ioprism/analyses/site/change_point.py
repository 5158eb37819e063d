"""When did a series of numbers change, and could chance alone look like that?

A job's numbers scatter, often with long tails, so everything is done on ranks. The candidate
split is where the ranks before and after differ most (the maximum of the standardised
Mann-Whitney statistic over all splits); its probability under chance comes from permutations,
with a normal tail beyond what they can resolve. A stretch is a pair of such splits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST = 5  # values on each side of a split, or in a stretch
PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class Split:
    """Where a series changes: values from `place` on differ from those before."""

    place: int
    probability: float  # that chance alone makes such a split


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values from `first` to `last`, both included, that lie below the others."""

    first: int
    last: int
    probability: float


def changed_at(values: Floats) -> Split | None:
    """Return the most likely change of a series, None where it is too short."""
    if len(values) < 2 * FEWEST:
        return None
    ranks = _ranks(values)
    place, score = _best_split(ranks)
    chance = np.random.default_rng(len(values))
    shuffled = (_best_split(chance.permutation(ranks))[1] for _ in range(PERMUTATIONS))
    return Split(place, _probability(score, list(shuffled)))


def _best_split(ranks: Floats) -> tuple[int, float]:
    count = len(ranks)
    before = np.arange(1, count)
    sums = np.cumsum(ranks)[:-1]
    spread = np.sqrt(before * (count - before) / (count * (count - 1)) * np.sum(ranks**2) + 1e-300)
    score = np.abs(sums) / spread
    score[: FEWEST - 1] = 0.0
    score[count - FEWEST :] = 0.0
    place = int(np.argmax(score))
    return place + 1, float(score[place])


def lowest_stretch(values: Floats) -> Stretch | None:
    """Return the stretch whose values lie lowest against all others."""
    if len(values) < 2 * FEWEST:
        return None
    ranks = -_ranks(values)  # low values count
    first, last, score = _best_stretch(ranks)
    chance = np.random.default_rng(len(values))
    shuffled = [_best_stretch(chance.permutation(ranks))[2] for _ in range(PERMUTATIONS)]
    return Stretch(first, last, _probability(score, shuffled))


def _best_stretch(ranks: Floats) -> tuple[int, int, float]:
    """The stretch with the largest standardised sum, over stretches of doubling lengths.

    Lengths grow by a fifth, and each best window is then fitted at both ends, so that the cost
    stays near that of sorting.
    """
    count = len(ranks)
    sums = np.concatenate(([0.0], np.cumsum(ranks)))
    scale = math.sqrt(float(np.mean(ranks**2))) + 1e-300
    best = (0, count - 1, 0.0)
    length = FEWEST
    while length <= count - FEWEST:
        windows = sums[length:] - sums[:-length]
        place = int(np.argmax(windows))
        score = float(windows[place]) / (scale * math.sqrt(length * (count - length) / count))
        if score > best[2]:
            best = (place, place + length - 1, score)
        length = max(length + 1, int(length * 1.2))
    return best


def _ranks(values: Floats) -> Floats:
    """Ranks around 0, equal values sharing theirs."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1], [True])))
    middles = (edges[:-1] + edges[1:] - 1) / 2
    ranks: Floats = np.empty(len(values))
    ranks[order] = np.repeat(middles, np.diff(edges))
    ranks -= ranks.mean()
    return ranks


def _probability(score: float, shuffled: list[float]) -> float:
    """How often chance reaches this score; beyond the permutations, by their extreme values."""
    above = sum(other >= score for other in shuffled)
    if above >= 5:
        return above / len(shuffled)
    # Maxima of many sums follow a Gumbel law; its two numbers come from the permutations.
    mean, deviation = float(np.mean(shuffled)), float(np.std(shuffled)) + 1e-12
    scale = deviation * math.sqrt(6) / math.pi
    middle = mean - 0.57722 * scale
    return -math.expm1(-math.exp(-(score - middle) / scale))
