"""Whether a difference between groups may be chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ioprism.diagnosis.rows import Flags, Floats, departures, weighted_median

if TYPE_CHECKING:
    from ioprism.diagnosis.observed import Observed

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


def outlier_test(value: float, peers: Floats, *, min_spread: float, values: int = 1) -> float:
    """Return how likely a value this far above its peers is (median and absolute deviation).

    The value may be the middle of several `values`.
    """
    if len(peers) < 2:
        return 1.0
    middle = float(np.median(peers))
    spread = max(min_spread, 1.4826 * float(np.median(np.abs(np.asarray(peers) - middle))))
    score = (value - middle) / (spread * math.sqrt(1 / values + 1 / len(peers)))
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


LONG = 10.0  # times the median from which a call is a wait rather than a usual call
MIN_WAIT = 1e-3  # seconds: shorter calls wait for the processor, not for storage
MIN_CALLS = 8  # for a median


def steady_seconds(observed: Observed, where: Flags) -> Floats:
    """The part of each row's seconds that is a steady cost per call; 0 outside `where`."""
    rows = observed.rows
    steady = np.zeros(len(rows))
    if not where.any():
        return steady
    if observed.per_call:
        classes = observed.service.classes
        queued = observed.shared_file & rows.moves_data
        key = np.where(queued, rows.file, -2 - rows.rank)
        served = np.where(queued, departures(rows, key), rows.seconds)
        for name in np.unique(classes[where]):
            some = where & (classes == name) & ~rows.inferred
            if some.sum() < MIN_CALLS:
                steady[some] = observed.own[some]
                continue
            # Where calls queue on a shared file, the time between their ends shows their cost.
            cost = served[some]
            usual = LONG * float(np.median(cost))
            share = float(np.minimum(cost, usual).sum()) / max(float(cost.sum()), 1e-12)
            steady[some] = observed.own[some] * share
        return steady
    stalled = (rows.longest > observed.limits.stalled_ratio * rows.mean_seconds) & (
        rows.longest > MIN_WAIT
    )
    return np.where(where & ~stalled, observed.own, 0.0)


def typical_seconds(observed: Observed, where: Flags) -> float:
    """Seconds of the median call; of counters, the mean call where no call stands out."""
    rows = observed.rows
    return weighted_median(rows.mean_seconds[where], rows.count[where])


def memory_seconds(observed: Observed, size: float) -> float:
    """Seconds of a call that only copies its bytes to or from memory."""
    return observed.limits.system_call + size / observed.limits.memory_rate
