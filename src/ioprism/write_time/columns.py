"""Which features of a table can teach something: neither constant nor copies of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.write_time.features import Feature
from ioprism.write_time.lasso import FloatArray

SAME = 1e-12  # relative difference below which two columns are one
NEARLY_COLLINEAR = 0.9999  # correlation of logarithms


@dataclass(frozen=True, slots=True)
class Columns:
    """The features kept, and those left out because others say the same or nothing."""

    kept: tuple[int, ...]
    constant: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]  # the one left out, and the one that stands for it


@dataclass(frozen=True, slots=True)
class Together:
    """Two features that moved together in training: the fit cannot tell which one matters."""

    first: str
    second: str
    ratio_low: float
    ratio_high: float


def informative(table: FloatArray, features: Sequence[Feature]) -> Columns:
    """Choose the columns to train on."""
    kept: list[int] = []
    constant: list[str] = []
    copies: list[tuple[str, str]] = []
    for number, feature in enumerate(features):
        column = table[:, number]
        if np.ptp(column) <= SAME * np.abs(column).max():
            constant.append(feature.name)
            continue
        same = (k for k in kept if np.allclose(column, table[:, k], rtol=SAME, atol=0.0))
        twin = next(same, None)
        if twin is None:
            kept.append(number)
        elif feature.name != features[twin].name:
            copies.append((feature.name, features[twin].name))
    return Columns(tuple(kept), tuple(constant), tuple(copies))


def moving_together(
    table: FloatArray, names: Sequence[str], *, active: Sequence[int]
) -> tuple[Together, ...]:
    """Find the loads of the fit that training hardly told apart from another feature."""
    positive = [number for number in range(len(names)) if (table[:, number] > 0).all()]
    logarithms = np.log(table[:, positive])
    correlations = np.corrcoef(logarithms, rowvar=False) if len(positive) > 1 else np.eye(1)
    pairs: list[Together] = []
    for row, first in enumerate(positive):
        for column, second in enumerate(positive[:row]):
            involved = first in active or second in active
            if involved and correlations[row, column] > NEARLY_COLLINEAR:
                ratios = table[:, first] / table[:, second]
                low, high = float(ratios.min()), float(ratios.max())
                pairs.append(Together(names[first], names[second], low, high))
    return tuple(pairs)
