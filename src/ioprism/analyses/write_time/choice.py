"""Which kind of model predicts a system best beyond its training scales.

The rule looks at training scales only: every kind of `CANDIDATES` and the blends of `BLENDS` are
fitted to the small training scales and predict the larger ones (`forward.py`). The
mean of |log(measured / predicted)|, every scale of every check counting the same, is a kind's
error. The first of the list whose error is within `TIE` of the least is taken: kinds that explain
come before those that do not, and single ones before blends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ioprism.analyses.write_time.boosting import Trees, fit_trees
from ioprism.analyses.write_time.fitting import Fit, refit
from ioprism.analyses.write_time.forward import (
    Checks,
    Predicts,
    best,
    blended,
    forward_checks,
    forward_error,
    forward_splits,
)
from ioprism.analyses.write_time.gram import TrainingData
from ioprism.analyses.write_time.kinds import BLEND, BOOSTING, KINDS, STAGES
from ioprism.analyses.write_time.lasso import FloatArray
from ioprism.analyses.write_time.stage_model import Shape, StageFit, fit_stages

CANDIDATES = (STAGES, "relative-lasso", "lasso", BOOSTING)
BLENDS = ((STAGES, "relative-lasso"), (STAGES, BOOSTING), ("relative-lasso", BOOSTING))
TIE = 0.05
HARDLY = 0.01  # errors that differ by less do not tell whether files are created before
EXPONENTS = (5.0, 3.0, 2.0, 1.0)  # of those as good, the one nearest to a perfect pipeline
MEETING = (1.5, 1.0)  # of files being created and data; where nothing tells, the middle
USUAL = 3.0  # the exponent where no forward check is possible
PENALTY = 0.03


class Predictor(Protocol):
    """Predicts from features and loads."""

    @property
    def kind(self) -> str:
        """What sort of model it is."""
        ...

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Blend:
    """The geometric mean of what several models predict."""

    members: tuple[Predictor, ...]

    @property
    def kind(self) -> str:
        """Both names, such as ``blend: stages, boosting``."""
        return f"{BLEND}: {', '.join(member.kind for member in self.members)}"

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        logarithms = [np.log(np.maximum(m.predict(table, loads), 1e-9)) for m in self.members]
        seconds: FloatArray = np.exp(np.mean(logarithms, axis=0))
        return seconds


def choose_shape(data: TrainingData, metadata: tuple[int, ...]) -> Shape:
    """Choose by forward checks how far stages overlap, and whether files are created before."""
    if not forward_splits(data):
        return Shape(USUAL, PENALTY, metadata, MEETING[0])
    errors = {
        (exponent, meeting): forward_error(
            forward_checks(data, _stages(Shape(exponent, PENALTY, metadata, meeting)))
        )
        for exponent in EXPONENTS
        for meeting in MEETING
    }
    by_exponent = {x: min(errors[x, meeting] for meeting in MEETING) for x in EXPONENTS}
    exponent = best(by_exponent, tie=TIE)
    meeting = best({m: errors[exponent, m] for m in MEETING}, tie=HARDLY)
    return Shape(exponent, PENALTY, metadata, meeting)


def check(fit: Predictor, data: TrainingData, *, seed: int) -> Checks:
    """Fit the small training scales in the same way, and predict the larger ones."""
    if isinstance(fit, Blend):
        return blended([check(member, data, seed=seed) for member in fit.members])
    return forward_checks(data, _recipe(fit, seed))


def checks_of(fits: Mapping[str, Predictor], data: TrainingData, *, seed: int) -> dict[str, Checks]:
    """Check every candidate that was fitted, and the blends of them, in order of preference."""
    checks = {name: check(fits[name], data, seed=seed) for name in CANDIDATES if name in fits}
    for members in BLENDS:
        if all(member in checks for member in members):
            name = Blend(tuple(fits[member] for member in members)).kind
            checks[name] = blended([checks[member] for member in members])
    return checks


def choose_kind(checks: Mapping[str, Checks]) -> str:
    """Apply the rule."""
    return best({name: forward_error(cells) for name, cells in checks.items()}, tie=TIE)


def _recipe(fit: Predictor, seed: int) -> Callable[[TrainingData], Predicts]:
    if isinstance(fit, StageFit):
        return _stages(fit.shape)
    if isinstance(fit, Trees):
        return lambda seen: _predicts(fit_trees(seen, seed=seed))
    if isinstance(fit, Fit):
        return lambda seen: _predicts(refit(seen, KINDS[fit.kind], fit))
    raise TypeError(f"{fit.kind} has no recipe")


def _stages(shape: Shape) -> Callable[[TrainingData], Predicts]:
    return lambda seen: _predicts(fit_stages(seen.loads, seen.seconds, shape))


def _predicts(fit: Predictor) -> Predicts:
    return lambda ahead: fit.predict(ahead.table, ahead.loads)
