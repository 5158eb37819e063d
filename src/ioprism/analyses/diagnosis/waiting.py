"""Do ranks wait for each other, or does each go its own way?"""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Calls, Floats, first_of_each
from ioprism.analyses.diagnosis.io_phases import longest_pause

FEWEST_BURSTS = 3  # of each rank: fewer do not show whether lateness lasts
MOST = 64  # bursts looked at
OWN_WAY = 0.5  # of what a burst adds to a rank's lateness is there when the next one starts


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
