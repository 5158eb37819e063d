"""Is the time of some calls a steady cost per call, or a few long waits?

Where each call takes about the same time, requests cost their latency, one after the other.
Where most return after a copy to memory and a few take nearly all the time, a cache absorbs the
calls and the storage behind it sets the pace: size, order and number of calls do not matter.
"""

from __future__ import annotations

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rows import Flags, Floats, departures, weighted_median

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
