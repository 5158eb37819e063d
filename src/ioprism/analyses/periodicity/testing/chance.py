"""How easily does chance alone produce this much regularity?

All answers are natural logarithms of probabilities, because strong rhythms underflow.
"""

from __future__ import annotations

import math

CERTAIN = 0.0  # log of probability 1
FEW_GAPS = 10  # below this the volume is tight everywhere
TAIL = 0.4  # per gap; chances below exp(-0.4 gaps) are beyond the log-normal approximation


def log_regular_gaps(*, gaps: int, variation: float) -> float:
    """Chance that memoryless gaps vary as little as this.

    If bursts come at random (a Poisson process), then whatever their lengths the idle
    gaps between them are exponential, and the gaps divided by their sum are uniform on a
    simplex. A coefficient of variation below ``variation`` is a ball around its centre, so
    the chance is a ratio of volumes; it is exact while the ball fits in, and too large
    beyond. For many gaps Greenwood's statistic is log-normal with moments known exactly.

    The chance of a ball around any other point is smaller, so the same bound holds for
    the distances of phase starts given the lengths of the phases.

    Args:
        gaps: how many gaps.
        variation: their standard deviation divided by their mean.
    """
    if gaps < 2:
        return CERTAIN
    volume = min(CERTAIN, _log_ball_in_simplex(gaps, variation))
    if gaps < FEW_GAPS:
        return volume
    return min(volume, max(_log_greenwood(gaps, variation), -TAIL * gaps))


def log_alike(*, phases: int, matching: int, chance_of_match: float) -> float:
    """Chance that as many unrelated phases match the middle one.

    Args:
        phases: how many phases, the middle one included.
        matching: how many of them match it, itself included.
        chance_of_match: that one unrelated phase does.
    """
    others, needed = phases - 1, matching - 1
    terms = [
        math.comb(others, k) * chance_of_match**k * (1.0 - chance_of_match) ** (others - k)
        for k in range(max(needed, 0), others + 1)
    ]
    return math.log(min(1.0, max(math.fsum(terms), 1e-300)))


def log_sum_of_evidence(*, tests: int, evidence: float) -> float:
    """Chance that independent tests together give as much evidence (Fisher's method).

    Args:
        tests: how many.
        evidence: the sum of their negative log probabilities.
    """
    if evidence <= 0.0:
        return CERTAIN
    logs = [k * math.log(evidence) - math.lgamma(k + 1) for k in range(tests)]
    largest = max(logs)
    return min(CERTAIN, largest + math.log(sum(math.exp(x - largest) for x in logs)) - evidence)


def probability(log_chance: float) -> float:
    """The probability itself, between 0 and 1."""
    return math.exp(min(log_chance, CERTAIN))


def _log_ball_in_simplex(gaps: int, variation: float) -> float:
    dimensions = gaps - 1
    radius_squared = max(variation * variation / gaps, 1e-300)
    ball = dimensions / 2 * math.log(math.pi * radius_squared) - math.lgamma(dimensions / 2 + 1)
    simplex = 0.5 * math.log(gaps) - math.lgamma(dimensions + 1)
    return ball - simplex


def _log_greenwood(gaps: int, variation: float) -> float:
    mean = (gaps - 1) / (gaps + 1)
    variance = 4 * gaps**2 * (gaps - 1) / ((gaps + 1) ** 2 * (gaps + 2) * (gaps + 3))
    width = math.log1p(variance / mean**2)
    centre = math.log(mean) - width / 2
    z = (2 * math.log(max(variation, 1e-150)) - centre) / math.sqrt(width)
    return math.log(max(0.5 * math.erfc(-z / math.sqrt(2)), 1e-300))
