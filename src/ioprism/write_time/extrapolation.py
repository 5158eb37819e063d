"""How well a model extrapolates: larger training scales predicted from smaller ones.

No sample beyond the training scales is ever looked at. A check trains on the scales up to one of
them and predicts the others, up to sixteen times larger.

Intervals are conformal: they contain the asked share of the errors that the model made on samples
it did not see. There is one for every distance from the training scales, measured by the forward
checks, and one for writes whose repetitions disagree. Errors far out are mostly shared by all
samples of a scale, so the worst check at a distance counts, not their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ioprism.write_time.system import FloatArray
from ioprism.write_time.training_data import TrainingData

MAX_FACTOR = 16  # a check predicts scales up to this many times the largest it saw
MAX_CHECKS = 4
MIN_SCALES = 3  # that a check trains on

Predicts = Callable[[TrainingData], FloatArray]
Recipe = Callable[[TrainingData], Predicts]  # fits samples with everything else already chosen

KeyType = TypeVar("KeyType")
MIN_RESIDUALS = 10  # residuals that a quantile needs to mean something
SAFETY_PER_DOUBLING = 0.15  # per doubling: checks are few, and all of them are at smaller scales
UNCHECKED_SAFETY = 1.5  # per doubling, where no forward check was possible
UNKNOWN_NOISE = 0.5  # added to both ends' logarithms where no unconverged sample was measured


@dataclass(frozen=True, slots=True)
class ForwardCheck:
    """One training scale as predicted from smaller ones: log(measured / predicted)."""

    doublings: float  # of the node count, beyond the largest scale that was seen
    logarithms: FloatArray
    weight: float = 1.0  # in the mean over cells


Checks = tuple[ForwardCheck, ...]


def forward_splits(data: TrainingData) -> list[tuple[TrainingData, TrainingData]]:
    """Split the training scales into small ones, and those up to sixteen times larger."""
    scales = data.scales
    cuts = scales[MIN_SCALES - 1 : -1][-MAX_CHECKS:]
    return [
        (data.up_to(cut), data.part((data.nodes > cut) & (data.nodes <= MAX_FACTOR * cut)))
        for cut in cuts
        if scales[scales.index(cut) + 1] <= MAX_FACTOR * cut
    ]


def forward_checks(data: TrainingData, recipe: Recipe) -> Checks:
    """Fit every split's small scales, and compare with its larger ones."""
    cells: list[ForwardCheck] = []
    for seen, ahead in forward_splits(data):
        predicted = positive(recipe(seen)(ahead), seen.seconds)
        logarithms = np.log(ahead.seconds / predicted)
        cells += [
            ForwardCheck(
                float(np.log2(scale / seen.scales[-1])),
                logarithms[ahead.nodes == scale],
                len(seen.scales) / len(ahead.scales),
            )
            for scale in ahead.scales
        ]
    return tuple(cells)


def blend_checks(checks: Sequence[Checks]) -> Checks:
    """The checks of the geometric mean of several predictions."""
    return tuple(
        replace(cells[0], logarithms=np.mean([cell.logarithms for cell in cells], axis=0))
        for cells in zip(*checks, strict=True)
    )


def forward_error(checks: Checks) -> float:
    """Mean of |log(measured / predicted)|; a check counts by the number of scales it saw."""
    errors = [float(np.mean(np.abs(cell.logarithms))) for cell in checks]
    return float(np.average(errors, weights=[cell.weight for cell in checks]))


def first_within_tie(errors: Mapping[KeyType, float], *, tie: float) -> KeyType:
    """The first name whose error is within `tie` of the least: names are in order of preference."""
    limit = (1.0 + tie) * min(errors.values())
    return next(name for name, error in errors.items() if error <= limit)


def positive(predicted: FloatArray, seconds: FloatArray) -> FloatArray:
    """Lift predictions that a linear function drove to or below zero."""
    return np.maximum(predicted, 0.1 * float(seconds.min()))


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
        safety = 1.0 + distance * (SAFETY_PER_DOUBLING if self.measured_ahead else UNCHECKED_SAFETY)
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
    steps = [_cover([_step(0.0, errors, level) for errors in known])]
    for distance in sorted({round(cell.doublings) for cell in ahead} - {0}):
        cells = [
            _step(distance, cell.logarithms, level)
            for cell in ahead
            if round(cell.doublings) == distance and len(cell.logarithms) >= MIN_RESIDUALS
        ]
        if cells:
            steps.append(_cover(cells))
    growing = tuple(_cover(steps[: number + 1]) for number in range(len(steps)))
    return Calibration(level, growing, _noisy_step(growing[0], unconverged, level), len(steps) > 1)


def _noisy_step(known: Step, unconverged: FloatArray, level: float) -> Step:
    if len(unconverged) < MIN_RESIDUALS:
        spread = math.exp(UNKNOWN_NOISE)
        return Step(0.0, known.low / spread, known.high * spread, len(unconverged))
    return _cover([known, _step(0.0, unconverged, level)])


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


def _cover(steps: Sequence[Step]) -> Step:
    """Cover all of them, at the distance of the last."""
    return Step(
        steps[-1].doublings,
        min(step.low for step in steps),
        max(step.high for step in steps),
        steps[-1].samples,
    )
