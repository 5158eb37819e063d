"""Do the calls of all ranks pass one server, so that each waits for all others?

A mount, a network link or a small server serves calls of every kind one after the other. The trace
does not name it, but shows it: calls take longer the more others are under way. What a kind of
call costs the job is then not its duration, most of which is waiting, but the time by which its
end follows the end of the call before it. All these times add up to the time that anyone is in
a call.
"""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Calls, Flags, Floats, Ints
from ioprism.analyses.diagnosis.situation import Situation, medians_by

FEWEST = 200  # calls, for how their time depends on others
APART = 1.5  # times as many calls under way, for quiet and crowded moments to differ
EDGE = 0.1  # of the calls are in the quietest moments, and as many in the most crowded


def departures(calls: Calls) -> Floats:
    """Seconds from the end of the call before, or the call's own start, to its end."""
    order = np.argsort(calls.end, kind="stable")
    before = np.concatenate(([-np.inf], calls.end[order][:-1]))
    alone = np.empty(len(calls))
    alone[order] = calls.end[order] - np.maximum(calls.start[order], before)
    return alone


def crowding(at: Situation, some: Flags) -> float:
    """Return how calls slow down as others come: 0 not at all, 1 in proportion to their number.

    0 as well where moments are all equally crowded, so that nothing can be told.
    """
    if some.sum() < FEWEST:
        return 0.0
    beside = under_way(at.calls)[some].astype(np.float64)
    quiet, crowded = np.quantile(beside, [EDGE, 1 - EDGE])
    if crowded < APART * quiet:
        return 0.0
    kind, log = at.queues.classes[some], np.log(np.maximum(at.calls.duration[some], 1e-9))
    names, middle = medians_by(kind, log)
    level = log - middle[np.searchsorted(names, kind)]
    few, many = beside <= quiet, beside >= crowded
    step = np.log(beside[many]).mean() - np.log(beside[few]).mean()
    return float(np.clip((level[many].mean() - level[few].mean()) / step, 0.0, 1.0))


def under_way(calls: Calls) -> Ints:
    """How many calls of any rank are under way when each call starts, itself included."""
    started = np.searchsorted(np.sort(calls.start), calls.start, side="right")
    ended = np.searchsorted(np.sort(calls.end), calls.start, side="right")
    return np.asarray(np.maximum(1, started - ended), np.int64)
