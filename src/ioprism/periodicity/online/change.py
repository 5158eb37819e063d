"""When did the distances between phases begin to differ from what they were?

A two-sided cumulative sum (Page, 1954) over the logarithms of the distances, so that twice as
often and half as often count alike. Each distance counts at most `CLIP`, so one phase that is
missed or extra is no change, and two distances in a row that are far off are one.
"""

from __future__ import annotations

import math

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray

MIN_DISTANCES = 4  # to know what is usual, and two that are not
SPREAD_FLOOR = 0.05  # relative; jitter below this is no change of rhythm
SLACK = 0.5  # standard deviations that every distance may be off
CLIP = 3.5  # standard deviations that one distance counts at most
THRESHOLD = 5.0  # standard deviations; one distance alone (3.0) stays below
MAD_TO_DEVIATION = 1.4826  # for a normal distribution


def change_point(starts: FloatArray) -> int | None:
    """Return the number of the phase that begins a new rhythm, or None if there is none.

    Args:
        starts: when phases begin, ascending, in seconds.
    """
    distances = np.log(np.maximum(np.diff(starts), 1e-9))
    if len(distances) < MIN_DISTANCES:
        return None
    usual = distances[: max(2, len(distances) - 2)]
    centre = median(usual)
    spread = max(MAD_TO_DEVIATION * median(np.abs(usual - centre)), SPREAD_FLOOR)
    scores = np.clip((distances - centre) / spread, -CLIP, CLIP).tolist()
    found = [_alarm([sign * score for score in scores]) for sign in (1.0, -1.0)]
    alarms = [place for place in found if place is not None]
    return max(alarms) if alarms else None


def _alarm(scores: list[float]) -> int | None:
    """Where the sum that is above the threshold at the end began to rise."""
    total, began = 0.0, 0
    for place, score in enumerate(scores):
        total += score - SLACK
        if total <= 0.0:
            total, began = 0.0, place + 1
    return began if total > THRESHOLD else None


def relative_difference(one: float, other: float) -> float:
    """How far two periods are apart, whichever is longer: 0 if equal, 1 for twice as long."""
    return math.expm1(abs(math.log(one / other)))
