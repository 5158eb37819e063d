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
LITTLE = 0.7  # of the time in which anyone is in a call: with more, one rank tells as much as all
NEARLY = 0.2  # relative: the time that anyone is in a call, against what chance makes it
STRETCHES = 64  # of the run
CROWDED = 0.8  # of the time: if chance alone has someone in a call then, it tells nothing
IN_TURN = 0.5  # of the overlap that chance makes: with less, ranks take turns


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


def is_independent(calls: Calls) -> bool:
    """Return whether calls of different ranks overlap just as often as they would by chance.

    Ranks that wait for each other are in calls together, ranks that take turns never are. Where
    neither shows, each makes its calls whenever it gets to them, and its pauses are its own.
    Chance is reckoned in stretches of the run, because ranks may be busier at some times.
    """
    if not len(calls) or np.median(np.bincount(calls.rank)) < FEWEST_CALLS:
        return False
    own = own_time(calls)
    start, end = unite(calls.start, calls.end)
    busy = float((end - start).sum())
    by_chance, length = _busy_by_chance(calls, own)
    total = float(own.sum())
    return bool(
        np.bincount(calls.rank, own).max() < LITTLE * busy
        and by_chance < CROWDED * length
        and abs(busy - by_chance) < NEARLY * by_chance
        and total - busy >= IN_TURN * (total - by_chance)
    )


def _busy_by_chance(calls: Calls, own: Floats) -> tuple[float, float]:
    """Seconds in which anyone is in a call, if ranks know nothing of each other; and of all."""
    begin, ranks = float(calls.start.min()), int(calls.rank.max()) + 1
    whole = float(calls.end.max()) - begin
    stretch = np.minimum(STRETCHES - 1, (calls.start - begin) / whole * STRETCHES).astype(np.int64)
    seconds = np.bincount(stretch * ranks + calls.rank, own, minlength=STRETCHES * ranks)
    first, last = np.full(STRETCHES, np.inf), np.full(STRETCHES, -np.inf)
    np.minimum.at(first, stretch, calls.start)
    np.maximum.at(last, stretch, calls.end)
    length = np.maximum(1e-12, last - first)
    share = np.minimum(1.0, seconds.reshape(STRETCHES, ranks) / length[:, None])
    busy = length * (1 - np.prod(1 - share, axis=1))
    return float(busy.sum()), float(length.sum())


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
