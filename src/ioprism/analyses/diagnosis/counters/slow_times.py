"""A stretch of time in which the same bytes took longer, by the heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.counters.counted import Counted
from ioprism.analyses.diagnosis.counters.heat import HeatPhases
from ioprism.analyses.diagnosis.limits import FEWEST_PHASES, SLOWER
from ioprism.analyses.diagnosis.middle import median
from ioprism.analyses.diagnosis.significance import outlier_test
from ioprism.analyses.diagnosis.stretches import best_run

LEAST_BINS = 2.0  # that slow phases are longer: less is the width of the bins
ROUNDING = 0.4  # bins: by so much a phase's length varies as it begins and ends inside bins
SMALL = 0.1  # of the usual bytes: such phases are of another kind
MOST_RANKS = 0.6  # that must be slower in a stretch, for others to be the reason


def find(at: Counted) -> Iterator[Candidate]:
    """Find neighbouring phases that took longer for their bytes than all others."""
    if at.heat is None or len(at.heat) < FEWEST_PHASES:
        return
    heat = at.heat
    moved, seconds = [sum(phase.values()) for phase in heat.moved], heat.seconds
    usual = median(moved)
    present = [phase for phase, size in enumerate(moved) if size > SMALL * usual]
    if len(present) < FEWEST_PHASES:
        return
    cost = [seconds[phase] / moved[phase] for phase in present]
    run = best_run([math.log(one) for one in cost])
    if run is None:
        return
    slow, sound = present[run[0] : run[1] + 1], present[: run[0]] + present[run[1] + 1 :]
    rate = sum(seconds[phase] / moved[phase] for phase in sound) / len(sound)
    # How much longer each phase took than it would at the rate of the others.
    longer = {phase: seconds[phase] - moved[phase] * rate for phase in present}
    lost = [longer[phase] for phase in slow]
    if min(lost) < LEAST_BINS * heat.width or not _everywhere(heat, slow, sound):
        return
    tried = len(present) * (len(present) + 1) / 2
    others = [longer[phase] for phase in sound]
    test = tried * outlier_test(median(lost), others, floor=ROUNDING * heat.width)
    yield _interference(at, heat, slow, sum(lost), min(1.0, test))


def _everywhere(heat: HeatPhases, slow: Sequence[int], sound: Sequence[int]) -> bool:
    """Whether most ranks are busy longer then."""

    def usual(rank: int, phases: Sequence[int]) -> float:
        return median(heat.busy[phase].get(rank, 0.0) for phase in phases)

    longer = 1 + (SLOWER - 1) / 2
    slower = sum(usual(rank, slow) > longer * usual(rank, sound) for rank in range(heat.ranks))
    return slower >= MOST_RANKS * heat.ranks


def _interference(
    at: Counted, heat: HeatPhases, slow: Sequence[int], longer: float, p_value: float
) -> Candidate:
    # A phase fills its first and last bin in part, so that it seems longer than it is; slow and
    # sound phases alike, so that their difference holds, unless calls fill little of their bins.
    saved = min(longer, at.held)
    low = saved * min(1.0, at.held / sum(heat.seconds))
    high = saved + ROUNDING * heat.width * len(slow)
    first, last = slow[0], slow[-1]
    before = heat.end[first - 1] if first else 0.0
    after = heat.start[last + 1] if last + 1 < len(heat) else heat.end[last]
    culprit: dict[str, object] = {
        "from": (before + heat.start[first]) / 2,
        "to": (heat.end[last] + after) / 2,
    }
    left = (at.held - saved, at.held - high, at.held - low)
    return at.candidate("interference", culprit, left, at.records, p_value=p_value)
