"""Which writes take longer than predicted: what sets them apart from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.model.samples import Sample
from ioprism.write_time.lasso import BoolArray, FloatArray
from ioprism.write_time.parameters import parameters
from ioprism.write_time.system import System

LIMIT = 0.2  # a prediction this share below the measured time is too low
FEWEST = 10  # samples on either side of a split
SPLITS = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles of a parameter


@dataclass(frozen=True, slots=True)
class Underestimation:
    """How many predictions are too low, and the one split of the samples that says most."""

    samples: int
    too_low: int
    parameter: str | None = None
    at_least: bool = True  # the split: values at least this large, or below
    threshold: float = 0.0
    inside: tuple[int, int] = (0, 0)  # too low, all, of the samples in the split
    outside: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        body: dict[str, Any] = {"samples": self.too_low, "mostly": None}
        if self.parameter is not None:
            body["mostly"] = {
                "parameter": self.parameter,
                "at_least" if self.at_least else "below": self.threshold,
                "inside": {"too_low": self.inside[0], "samples": self.inside[1]},
                "outside": {"too_low": self.outside[0], "samples": self.outside[1]},
            }
        return body


def underestimation(
    samples: Sequence[Sample], predicted: FloatArray, *, system: System
) -> Underestimation:
    """Find the parameter whose high or low values go with predictions that are too low."""
    measured = np.array([s.seconds for s in samples])
    low = predicted < (1.0 - LIMIT) * measured
    nothing = Underestimation(len(samples), int(low.sum()))
    if not low.any():
        return nothing
    values = parameters([s.pattern for s in samples], system=system)
    splits = [
        _split(nothing, name, threshold, low, value >= threshold, at_least)
        for name, value in values.items()
        for threshold in np.unique(np.quantile(value, SPLITS, method="higher"))
        for at_least in (True, False)
    ]
    candidates = [s for s in splits if min(s.inside[1], s.outside[1]) >= FEWEST]
    return max(candidates, key=_difference, default=nothing)


def _split(
    whole: Underestimation,
    name: str,
    threshold: float,
    low: BoolArray,
    above: BoolArray,
    at_least: bool,
) -> Underestimation:
    inside = above if at_least else ~above
    return Underestimation(
        whole.samples,
        whole.too_low,
        name,
        at_least,
        float(threshold),
        (int(low[inside].sum()), int(inside.sum())),
        (int(low[~inside].sum()), int((~inside).sum())),
    )


def _difference(split: Underestimation) -> float:
    """By how much more often predictions are too low inside, in standard errors."""
    inside, outside = split.inside[0] / split.inside[1], split.outside[0] / split.outside[1]
    mean = split.too_low / split.samples
    spread = mean * (1.0 - mean) * (1.0 / split.inside[1] + 1.0 / split.outside[1])
    return (inside - outside) / float(np.sqrt(max(spread, 1e-12)))
