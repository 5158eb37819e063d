"""What heat maps add to counters: when phases were slow, and who moved more of a shared file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.counted import Counted
from ioprism.analyses.diagnosis.heat_phases import FEWEST, HeatPhases
from ioprism.analyses.diagnosis.significance import outlier_test
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.slow_times import SLOWER, best_run

LEAST_BINS = 2.0  # that slow phases are longer: less is the width of the bins
ROUNDING = 0.4  # bins: by so much a phase's length varies as it begins and ends inside bins
SMALL = 0.1  # of the usual bytes: such phases are of another kind
MOST_RANKS = 0.6  # that must be slower in a stretch, for others to be the reason


def find(at: Counted) -> Iterator[Candidate]:
    """Find a stretch of time in which the same bytes took longer."""
    if at.heat is None or len(at.heat) < FEWEST:
        return
    heat = at.heat
    total = heat.moved.sum(axis=1)
    present = np.flatnonzero(total > SMALL * np.median(total))
    if len(present) < FEWEST:
        return
    cost = heat.seconds[present] / total[present]
    run = best_run(np.log(cost))
    if run is None:
        return
    inside = np.isin(np.arange(len(present)), np.arange(run[0], run[1] + 1))
    # What each phase would take at the rate of the others, and how much longer it took.
    longer = heat.seconds[present] - total[present] * np.mean(cost[~inside])
    if longer[inside].min() < LEAST_BINS * heat.width or not _everywhere(heat, present, inside):
        return
    tried = len(present) * (len(present) + 1) / 2
    typical, others = float(np.median(longer[inside])), longer[~inside]
    test = tried * outlier_test(typical, others, floor=ROUNDING * heat.width)
    yield _interference(at, heat, present[inside], longer[inside], min(1.0, test))


def _everywhere(heat: HeatPhases, present: Ints, inside: Flags) -> bool:
    """Whether most ranks are busy longer then."""
    then = np.median(heat.busy[present[inside]], axis=0)
    usual = np.median(heat.busy[present[~inside]], axis=0)
    return bool((then > (1 + (SLOWER - 1) / 2) * usual).mean() >= MOST_RANKS)


def _interference(
    at: Counted, heat: HeatPhases, slow: Ints, longer: Floats, p_value: float
) -> Candidate:
    # A phase fills its first and last bin in part, so that it seems longer than it is; slow and
    # sound phases alike, so that their difference holds, unless calls fill little of their bins.
    saved = min(float(longer.sum()), at.held)
    low = saved * min(1.0, at.held / float(heat.seconds.sum()))
    high = saved + ROUNDING * heat.width * len(slow)
    begin = float(heat.start[slow[0]])
    finish = float(heat.end[slow[-1]])
    before = heat.end[slow[0] - 1] if slow[0] else 0.0
    after = heat.start[slow[-1] + 1] if slow[-1] + 1 < len(heat) else finish
    culprit: dict[str, object] = {
        "from": (float(before) + begin) / 2,
        "to": (finish + float(after)) / 2,
    }
    left = (at.held - saved, at.held - high, at.held - low)
    everything = np.ones(len(at.records), np.bool_)
    return at.candidate("interference", culprit, left, everything, p_value=p_value)
