"""How far off a prediction may be: an interval with its level, wider beyond the known scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.analyses.write_time.fitting import Residuals
from ioprism.analyses.write_time.lasso import FloatArray

FEWEST = 10  # residuals that a quantile needs to mean something
# Forward checks are few, and what a fit misses farther out is mostly one error shared by all
# samples of a scale: per doubling beyond the training scales the interval grows by this share.
SAFETY = 0.5
UNKNOWN_SAFETY = 1.5  # where no forward check was possible


@dataclass(frozen=True, slots=True)
class Step:
    """Factors around a prediction, at this many doublings beyond the training scales."""

    doublings: float
    low: float
    high: float
    samples: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factors at rising distance from the training scales, and the level they stand for."""

    level: float
    steps: tuple[Step, ...]  # the first at distance 0
    measured_ahead: bool  # whether the growth beyond the training scales was measured

    def factors(self, doublings: float) -> tuple[float, float]:
        """Return what to multiply a prediction with for its interval's two ends."""
        distance = max(0.0, doublings)
        places = [step.doublings for step in self.steps]
        lows = [math.log(step.low) for step in self.steps]
        highs = [math.log(step.high) for step in self.steps]
        safety = 1.0 + distance * (SAFETY if self.measured_ahead else UNKNOWN_SAFETY)
        low = safety * float(np.interp(distance, places, lows))
        high = safety * float(np.interp(distance, places, highs))
        return math.exp(low), math.exp(high)


def calibrate(known: FloatArray, ahead: Residuals, *, level: float) -> Calibration:
    """Take the factors from errors on samples that the fits did not see.

    Args:
        known: log(measured / predicted) of held-out samples of the training scales.
        ahead: the same for training scales larger than those a fit was trained on.
        level: the share of measurements that the interval is to hold.
    """
    steps = [_step(0.0, known, level)]
    for distance in np.unique(np.round(ahead.doublings)):
        near = ahead.logarithms[np.round(ahead.doublings) == distance]
        if distance > 0 and len(near) >= FEWEST:
            steps.append(_step(float(distance), near, level))
    return Calibration(level, _widening(steps), measured_ahead=len(steps) > 1)


def _step(distance: float, logarithms: FloatArray, level: float) -> Step:
    low, high = _quantiles(logarithms, level)
    return Step(distance, math.exp(min(low, 0.0)), math.exp(max(high, 0.0)), len(logarithms))


def _quantiles(values: FloatArray, level: float) -> tuple[float, float]:
    """The middle `level` of new values lies within, as in split conformal prediction."""
    ordered = np.sort(values)
    count = len(ordered)
    if not count:
        return -1.0, 1.0
    tail = math.floor((count + 1) * (1.0 - level) / 2)
    inner = max(tail - 1, 0)
    return float(ordered[inner]), float(ordered[count - 1 - inner])


def _widening(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Never let an interval be narrower farther out."""
    found: list[Step] = []
    for step in steps:
        low = min([step.low, *(s.low for s in found)])
        high = max([step.high, *(s.high for s in found)])
        found.append(Step(step.doublings, low, high, step.samples))
    return tuple(found)
