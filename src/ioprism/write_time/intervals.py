"""How far off a prediction may be: an interval with its level, wider beyond the known scales.

Conformal: the interval holds the asked share of the errors that the model made on samples it did
not see. There is one for every distance from the training scales, measured by the forward checks,
and one for writes whose repetitions disagree. Errors far out are mostly shared by all samples of a
scale, so the worst check at a distance counts, not their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.write_time.forward import Checks
from ioprism.write_time.lasso import FloatArray

FEWEST = 10  # residuals that a quantile needs to mean something
SAFETY = 0.15  # per doubling: checks are few, and all of them are at smaller scales
UNKNOWN_SAFETY = 1.5  # per doubling, where no forward check was possible
UNKNOWN_NOISE = 0.5  # added to both ends' logarithms where no unconverged sample was measured


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
    noisy: Step  # at distance 0, for writes whose repetitions disagree
    measured_ahead: bool  # whether the growth beyond the training scales was measured

    def factors(self, doublings: float, *, noisy: bool = False) -> tuple[float, float]:
        """Return what to multiply a prediction with for its interval's two ends."""
        distance = max(0.0, doublings)
        low = self._at(distance, [math.log(step.low) for step in self.steps])
        high = self._at(distance, [math.log(step.high) for step in self.steps])
        if noisy:
            # The noise of such a write is there at any scale; the model's own error grows.
            low += math.log(self.noisy.low / self.steps[0].low)
            high += math.log(self.noisy.high / self.steps[0].high)
        return math.exp(low), math.exp(high)

    def _at(self, distance: float, ends: Sequence[float]) -> float:
        places = [step.doublings for step in self.steps]
        safety = 1.0 + distance * (SAFETY if self.measured_ahead else UNKNOWN_SAFETY)
        bound = float(np.interp(distance, places, ends))
        if distance > places[-1] > 0:
            bound += (ends[-1] - ends[0]) / places[-1] * (distance - places[-1])
        return safety * bound


def calibrate(
    known: Sequence[FloatArray], ahead: Checks, unconverged: FloatArray, *, level: float
) -> Calibration:
    """Take the factors from errors on samples that the fits did not see.

    Args:
        known: log(measured / predicted) of samples of the training scales: those held out, and
            where there are enough, each of them as predicted from others; the wider ends count.
        ahead: the same for training scales larger than those a fit was trained on.
        unconverged: the same for samples of the training scales that did not converge.
        level: the share of measurements that the interval is to hold.
    """
    steps = [_widest([_step(0.0, errors, level) for errors in known])]
    for distance in sorted({round(cell.doublings) for cell in ahead} - {0}):
        cells = [
            _step(distance, cell.logarithms, level)
            for cell in ahead
            if round(cell.doublings) == distance and len(cell.logarithms) >= FEWEST
        ]
        if cells:
            steps.append(_widest(cells))
    growing = tuple(_widest(steps[: number + 1]) for number in range(len(steps)))
    return Calibration(level, growing, _noisy(growing[0], unconverged, level), len(steps) > 1)


def _noisy(known: Step, unconverged: FloatArray, level: float) -> Step:
    if len(unconverged) < FEWEST:
        spread = math.exp(UNKNOWN_NOISE)
        return Step(0.0, known.low / spread, known.high * spread, len(unconverged))
    return _widest([known, _step(0.0, unconverged, level)])


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


def _widest(steps: Sequence[Step]) -> Step:
    """Cover all of them, at the distance of the last."""
    return Step(
        steps[-1].doublings,
        min(step.low for step in steps),
        max(step.high for step in steps),
        steps[-1].samples,
    )
