"""Whether a difference between groups may be chance."""

from __future__ import annotations

import math

import numpy as np

from ioprism.diagnosis.rows import Floats

MIN_PROBABILITY = 1e-300


def rank_test(slow: Floats, peers: Floats) -> float:
    """Return how likely chance makes `slow` larger than `peers` (Mann-Whitney, one-sided).

    Exact where all of `slow` are above all peers; else by the normal approximation, where equal
    values count half.
    """
    few, many = len(slow), len(peers)
    if not few or not many:
        return 1.0
    if float(np.min(slow)) > float(np.max(peers)):
        combinations = math.lgamma(few + many + 1) - math.lgamma(few + 1) - math.lgamma(many + 1)
        return max(MIN_PROBABILITY, math.exp(-min(600.0, combinations)))
    ordered = np.sort(peers)
    above = sum(np.searchsorted(ordered, slow, side).sum() for side in ("left", "right")) / 2
    spread = math.sqrt(few * many * (few + many + 1) / 12)
    score = (above - few * many / 2 - 0.5) / spread
    return 0.5 * math.erfc(score / math.sqrt(2))


def outlier_test(value: float, peers: Floats, *, min_spread: float) -> float:
    """Return how likely a value this far above its peers is (median and absolute deviation)."""
    if len(peers) < 2:
        return 1.0
    middle = float(np.median(peers))
    spread = max(min_spread, 1.4826 * float(np.median(np.abs(np.asarray(peers) - middle))))
    score = (value - middle) / (spread * math.sqrt(1 + 1 / len(peers)))
    return _probability_above(score, len(peers) - 1)


def repeat_test(seconds: Floats, counts: Floats, least: float, *, trimmed: float) -> float:
    """Return how likely the same calls, made again, take less than `least` seconds together.

    A single slow call is therefore not reported as a cause; many slow calls are. A process that
    is interrupted a few times makes the spread of its calls large, however steady the others
    are: the calls are also tested without the longest ones.

    Args:
        seconds: of each row of calls.
        counts: calls per row; rows of several calls are taken to spread as much as their mean.
        least: seconds.
        trimmed: share of the calls that may be long by chance.
    """
    total = float(counts.sum())
    if total < 2:
        return 1.0
    if (counts > 1).any():
        spent = float(seconds.sum())
        return _probability_above(
            (spent - least) / max(spent / math.sqrt(total), 1e-12), int(total) - 1
        )
    usual = np.sort(seconds)[: len(seconds) - max(1, round(trimmed * len(seconds)))]
    return min(1.0, 2 * min(_repeat(seconds, least), _repeat(usual, least)))


def _repeat(seconds: Floats, least: float) -> float:
    count = len(seconds)
    if count < 2:
        return 1.0
    error = max(float(np.std(seconds, ddof=1)), 1e-12) * math.sqrt(count)
    return _probability_above((float(seconds.sum()) - least) / error, count - 1)


def _probability_above(score: float, freedom: int) -> float:
    """The probability of a higher score in Student's t distribution.

    By Wallace's transform (1959) to a normal score, which is close for all degrees of freedom.
    """
    if score <= 0:
        return 1.0
    normal = math.sqrt(freedom * math.log1p(score**2 / freedom)) * (8 * freedom + 1)
    normal /= 8 * freedom + 3
    return 0.5 * math.erfc(normal / math.sqrt(2))
