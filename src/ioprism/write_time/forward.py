"""Predict larger training scales from smaller ones: how a model's extrapolation is judged.

No sample beyond the training scales is ever looked at. A check trains on the scales up to one of
them and predicts the others, up to sixteen times larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ioprism.write_time.gram import TrainingData
from ioprism.write_time.lasso import FloatArray

AHEAD = 16  # a check predicts scales up to this many times the largest it saw
CHECKS = 4
FEWEST_SCALES = 3  # that a check trains on

Predicts = Callable[[TrainingData], FloatArray]
Recipe = Callable[[TrainingData], Predicts]  # fits samples with everything else already chosen

Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Cell:
    """One training scale as predicted from smaller ones: log(measured / predicted)."""

    doublings: float  # of the node count, beyond the largest scale that was seen
    logarithms: FloatArray
    weight: float = 1.0  # in the mean over cells


Checks = tuple[Cell, ...]


def forward_splits(data: TrainingData) -> list[tuple[TrainingData, TrainingData]]:
    """Split the training scales into small ones, and those up to sixteen times larger."""
    scales = data.scales
    cuts = scales[FEWEST_SCALES - 1 : -1][-CHECKS:]
    return [
        (data.up_to(cut), data.part((data.nodes > cut) & (data.nodes <= AHEAD * cut)))
        for cut in cuts
        if scales[scales.index(cut) + 1] <= AHEAD * cut
    ]


def forward_checks(data: TrainingData, recipe: Recipe) -> Checks:
    """Fit every split's small scales, and compare with its larger ones."""
    cells: list[Cell] = []
    for seen, ahead in forward_splits(data):
        predicted = positive(recipe(seen)(ahead), seen.seconds)
        logarithms = np.log(ahead.seconds / predicted)
        cells += [
            Cell(
                float(np.log2(scale / seen.scales[-1])),
                logarithms[ahead.nodes == scale],
                len(seen.scales) / len(ahead.scales),
            )
            for scale in ahead.scales
        ]
    return tuple(cells)


def blended(checks: Sequence[Checks]) -> Checks:
    """The checks of the geometric mean of several predictions."""
    return tuple(
        replace(cells[0], logarithms=np.mean([cell.logarithms for cell in cells], axis=0))
        for cells in zip(*checks, strict=True)
    )


def forward_error(checks: Checks) -> float:
    """Mean of |log(measured / predicted)|; a check counts by the number of scales it saw."""
    errors = [float(np.mean(np.abs(cell.logarithms))) for cell in checks]
    return float(np.average(errors, weights=[cell.weight for cell in checks]))


def best(errors: Mapping[Name, float], *, tie: float) -> Name:
    """The first name whose error is within `tie` of the least: names are in order of preference."""
    limit = (1.0 + tie) * min(errors.values())
    return next(name for name, error in errors.items() if error <= limit)


def positive(predicted: FloatArray, seconds: FloatArray) -> FloatArray:
    """Lift predictions that a linear function drove to or below zero."""
    return np.maximum(predicted, 0.1 * float(seconds.min()))
