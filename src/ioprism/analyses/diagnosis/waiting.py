"""Do ranks wait for each other, or does each go its own way?"""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Calls, Floats, first_of_each, own_time
from ioprism.analyses.diagnosis.io_phases import longest_pause
from ioprism.views.time.intervals import unite

FEWEST_BURSTS = 3  # of each rank: fewer do not show whether lateness lasts
MOST = 64  # bursts looked at
OWN_WAY = 0.5  # of what a burst adds to a rank's lateness is there when the next one starts
FEWEST_CALLS = 16  # of each rank: fewer overlap with those of others or not, by luck
LITTLE = 1 / 3  # of the time in which anyone is in a call: what the busiest of many ranks has
STRETCHES, MOMENTS = 64, 256  # of the run, and of each stretch
BY_CHANCE = (0.5, 1.6)  # times the variance of ranks that know nothing of each other
# Few ranks that meet may look like chance at times, and are far from it at others.
FEWEST_STRETCHES, STEADY = 8, (0.25, 4.0)


def ranks_wait(calls: Calls) -> bool:
    """Return whether a rank that is late with one burst is on time again with the next.

    Where ranks meet, all start the next burst together, whoever was late; where they do not,
    what delays one rank's burst delays all its later ones. Bursts are compared by number, so
    that only programs tell whose ranks do the same number of bursts.
    """
    bursts = bursts_of_ranks(calls)
    if bursts is None:
        return True
    start, end = (times[:, :MOST] - np.median(times[:, :MOST], axis=0) for times in bursts)
    # A rank that always computes longer is late each time, also where all wait for it: what
    # counts is how much later each burst makes it.
    added = (end - start)[:, :-1]
    kept = np.diff(start, axis=1)
    total = float((added**2).sum())
    return total <= 0 or float((added * kept).sum()) / total < OWN_WAY


def is_independent(calls: Calls, windows: Floats) -> bool:
    """Return whether as many ranks are in calls at once as would be by chance.

    Ranks that wait for each other are in calls together or not at all, so their number at once
    varies much; where they take turns it hardly varies. Between them, each makes its calls
    whenever it gets to them, and its pauses are its own. Chance is reckoned in stretches of the
    run, because ranks may be busier at some times.

    Args:
        calls: of all ranks.
        windows: when each window that the calls are a sample of begins, if they are one.
    """
    made = np.bincount(calls.rank)
    if len(made) < 2 or np.median(made) < FEWEST_CALLS:
        return False
    own = own_time(calls)
    start, end = unite(calls.start, calls.end)
    few = np.bincount(calls.rank, own).max() >= LITTLE * float((end - start).sum())
    variances = _variances(calls, own, windows)
    if len(variances) < (FEWEST_STRETCHES if few else 1):
        return False
    low, middle, high = np.quantile(variances, (0.1, 0.5, 0.9))
    steady = STEADY[0] <= low and high <= STEADY[1]
    return bool(BY_CHANCE[0] <= middle <= BY_CHANCE[1] and (steady or not few))


def _variances(calls: Calls, own: Floats, windows: Floats) -> list[float]:
    """Variance of the number of ranks in calls at once, over what chance makes it, by stretch."""
    ranks = int(calls.rank.max()) + 1
    starts, ends = np.sort(calls.end - own), np.sort(calls.end)
    parts = max(1, min(STRETCHES, len(calls) // FEWEST_CALLS))
    order = np.argsort(calls.start)
    even = np.arange(1, parts) * len(calls) // parts  # as many calls in each
    cuts = np.union1d(even, np.searchsorted(calls.start[order], windows))
    found = []
    for mine in np.split(order, cuts):
        if len(mine) < FEWEST_CALLS:
            continue
        first, last = float(calls.start[mine].min()), float(calls.end[mine].max())
        moments = np.linspace(first, last, MOMENTS)
        at_once = np.searchsorted(starts, moments, "right") - np.searchsorted(ends, moments)
        share = np.bincount(calls.rank[mine], own[mine], minlength=ranks) / max(last - first, 1e-12)
        by_chance = float((share * (1 - share)).clip(min=0.0).sum())
        found.append(float(at_once.var()) / max(by_chance, 1e-12))
    return found


def bursts_of_ranks(calls: Calls) -> tuple[Floats, Floats] | None:
    """Start and end of the bursts of each rank; None where ranks differ in their number."""
    if not len(calls):
        return None
    firsts = first_of_each(calls.rank)
    gap = calls.start[1:] - calls.end[:-1]
    inside = np.diff(calls.rank) == 0
    pauses = gap[inside & (gap > 0)]
    if not len(pauses):
        return None
    breaks = np.flatnonzero(~inside | (gap > longest_pause(pauses, calls.duration))) + 1
    begin = np.concatenate(([0], breaks))
    last = np.concatenate((breaks, [len(calls)])) - 1
    counts = np.diff(np.concatenate((np.searchsorted(begin, firsts), [len(begin)])))
    if len(counts) < 2 or counts[0] < FEWEST_BURSTS or not (counts == counts[0]).all():
        return None
    shape = (len(firsts), int(counts[0]))
    return calls.start[begin].reshape(shape), calls.end[last].reshape(shape)
