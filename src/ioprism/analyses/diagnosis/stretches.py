"""Neighbouring phases that are slower than all others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ioprism.analyses.diagnosis.limits import SLOWER
from ioprism.analyses.diagnosis.middle import median, quantile

MOST_STEPS = 100  # phases, or groups of neighbouring ones, that runs are looked for in
USUAL = 0.9  # of the others are at most as slow as what a run is compared with


def best_run(level: Sequence[float]) -> tuple[int, int] | None:
    """The run of neighbours, less than half of all, that stands out most."""
    step = -(-len(level) // MOST_STEPS)
    levels = [median(level[begin : begin + step]) for begin in range(0, len(level), step)]
    best, most = None, 0.0
    for first in range(len(levels)):
        for last in range(first, min(len(levels), first + (len(levels) - 1) // 2)):
            usual = quantile(levels[:first] + levels[last + 1 :], USUAL)
            steps = [one - usual for one in levels[first : last + 1]]
            if min(steps) > math.log(SLOWER) and sum(steps) > most:
                best, most = (first * step, min((last + 1) * step, len(level)) - 1), sum(steps)
    return best
