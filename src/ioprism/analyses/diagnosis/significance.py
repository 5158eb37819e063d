"""Whether a difference between groups may be chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ioprism.analyses.diagnosis.middle import median

if TYPE_CHECKING:  # most counters are diagnosed without an array library
    from ioprism.analyses.diagnosis.calls import Floats

SIGNIFICANT = 0.01  # after correction for the number of things tried
TRIED = 12  # causes without peers that each trace is searched for
LONGEST = 0.05  # share of calls that may be long for reasons of their own
WORTH = 0.01  # of the run time: less is no cause


def rank_test(slow: Floats | list[float], peers: Floats | list[float]) -> float:
    """Return how likely chance makes `slow` larger than `peers` (Mann-Whitney, one-sided).

    Exact where all of `slow` are above all peers; elsewhere by the normal approximation, where
    equals count for half.
    """
    few, many = len(slow), len(peers)
    if not few or not many:
        return 1.0
    if min(slow) > max(peers):
        return 1 / math.comb(few + many, few)
    import numpy as np

    ordered = np.sort(peers)
    above = sum(np.searchsorted(ordered, slow, side).sum() for side in ("left", "right")) / 2
    spread = math.sqrt(few * many * (few + many + 1) / 12)
    score = (above - few * many / 2 - 0.5) / spread
    return 0.5 * math.erfc(score / math.sqrt(2))


def outlier_test(value: float, peers: Floats | list[float], *, floor: float) -> float:
    """Return how likely a value so far above its peers is (median and absolute deviation).

    `floor` is the least spread that peers are believed to have.
    """
    if len(peers) < 2:
        return 1.0
    middle = median(peers)
    spread = max(floor, 1.4826 * median(abs(peer - middle) for peer in peers))
    score = (value - middle) / (spread * math.sqrt(1 + 1 / len(peers)))
    return _chance_above(score, len(peers) - 1)


def again_test(seconds: Floats, least: float) -> float:
    """Return how likely as many calls like these, made again, take less than `least` together.

    One call that happened to take long is no cause; many that all do are one. A process that is
    interrupted a few times makes the spread of its calls large, however steady the others are: so
    the calls are also asked without the longest twentieth.
    """
    count = len(seconds)
    if count < 2:
        return 1.0
    import numpy as np

    usual = np.sort(seconds)[: count - max(1, round(LONGEST * count))]
    return min(1.0, 2 * min(_again(seconds, least), _again(usual, least)))


def _again(seconds: Floats, least: float) -> float:
    count = len(seconds)
    if count < 2:
        return 1.0
    import numpy as np

    error = max(float(np.std(seconds, ddof=1)), 1e-12) * math.sqrt(count)
    return _chance_above((float(seconds.sum()) - least) / error, count - 1)


def counted_test(seconds: float, count: float, least: float) -> float:
    """The same where only the sum is known: calls are taken to spread as much as their mean."""
    if count < 2 or seconds <= 0:
        return 1.0
    return _chance_above((seconds - least) / (seconds / math.sqrt(count)), int(count) - 1)


def _chance_above(score: float, freedom: int) -> float:
    """The chance of a score so high, in Student's t distribution.

    By Wallace's transform (1959) to a normal score, close for all freedoms.
    """
    if score <= 0:
        return 1.0
    normal = math.sqrt(freedom * math.log1p(score**2 / freedom)) * (8 * freedom + 1)
    normal /= 8 * freedom + 3
    return 0.5 * math.erfc(normal / math.sqrt(2))
