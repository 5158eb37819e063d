"""Which kind of model predicts a system best beyond its training scales.

The rule looks at training scales only: every kind of `CANDIDATES` and the blends of `BLENDS` are
fitted to the small training scales and predict the larger ones (`forward.py`). The mean of
|log(measured / predicted)| is a kind's error; a check counts by the number of scales it saw, as one
that saw more of them says more about a model of all. The first of the list whose error is within
`TIE` of the least is taken: kinds that explain come before those that do not, and single ones
before blends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from ioprism.write_time.boosting import Trees, fit_trees
from ioprism.write_time.fitting import Fit, refit
from ioprism.write_time.forward import (
    Checks,
    Predicts,
    best,
    blended,
    forward_checks,
    forward_error,
    positive,
)
from ioprism.write_time.gram import TrainingData
from ioprism.write_time.kinds import BLEND, BOOSTING, KINDS, STAGES
from ioprism.write_time.lasso import FloatArray
from ioprism.write_time.stage_loads import LOADS, OWN, whole_machine
from ioprism.write_time.stage_model import (
    TOGETHER,
    UNDECIDED,
    Shape,
    StageFit,
    fit_stages,
)
from ioprism.write_time.system import System

CANDIDATES = (STAGES, "relative-lasso", "lasso", BOOSTING)
BLENDS = ((STAGES, "relative-lasso"), (STAGES, BOOSTING), ("relative-lasso", BOOSTING))
TIE = 0.05
EXPONENTS = (5.0, 3.0, 2.0, 1.0)  # of those as good, the one nearest to a perfect pipeline
CROWDING = (0.0, 0.05, 0.1, 0.2)
MEETING = (UNDECIDED, 1.0, TOGETHER)  # of files being created and data
USUAL = 3.0  # the exponent where samples are too few to tell
FEWEST = 30  # samples that tell how stages work together
FOLDS = 5
EVIDENCE = 3.0  # a difference in log-likelihood that tells two shapes apart: 20 to 1
PENALTY = 0.02


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


def without_misleading(data: TrainingData, system: System) -> TrainingData:
    """Leave out the short samples where stages that know them explain the others worse.

    A cache may take in a short write: it then says nothing about the stages behind the cache.
    """
    if data.short is None:
        return data
    alone = replace(data, short=None)
    if len(data.seconds) < FEWEST:
        return alone
    with_short, without = (
        float(np.mean(_errors(_fitted(samples, choose_shape(samples, system)), data)))
        for samples in (data, alone)
    )
    return data if with_short <= (1.0 + TIE) * without else alone


def choose_shape(data: TrainingData, system: System) -> Shape:
    """Choose how far stages overlap and slow down when shared, and when files are created.

    All shapes have as many unknowns, so the one that makes the samples likeliest is taken.
    """
    loads = LOADS[system.filesystem]
    usual = Shape(
        USUAL,
        PENALTY,
        tuple(n for n, load in enumerate(loads) if load.stage == "metadata"),
        MEETING[0],
        tuple(n for n, load in enumerate(loads) if load.stage not in OWN),
        tuple(float(load) for load in whole_machine(system)),
    )
    if len(data.seconds) < FEWEST:
        return usual
    shape = _likeliest(
        data,
        [
            replace(usual, exponent=exponent, crowding=crowding)
            for crowding in CROWDING
            for exponent in EXPONENTS
        ],
    )
    return _likeliest(data, [replace(shape, meeting=meeting) for meeting in MEETING])


def _likeliest(data: TrainingData, shapes: Sequence[Shape]) -> Shape:
    """The first shape that no other one is clearly likelier than, errors being Laplace's."""
    known = data.with_short()
    misfit = np.array([np.mean(_errors(_fitted(data, shape), known)) for shape in shapes])
    unlikely = len(known.seconds) * np.log(np.maximum(misfit, 1e-9))
    return shapes[int(np.argmax(unlikely <= unlikely.min() + EVIDENCE))]


def _fitted(data: TrainingData, shape: Shape, *, with_bounds: bool = False) -> StageFit:
    known = data.with_short()
    return fit_stages(known.loads, known.seconds, shape, with_bounds=with_bounds)


def _errors(fit: StageFit, data: TrainingData) -> FloatArray:
    errors: FloatArray = np.abs(np.log(data.seconds / fit.predict(data.table, data.loads)))
    return errors


def check(fit: Predictor, data: TrainingData, *, seed: int) -> Checks:
    """Fit the small training scales in the same way, and predict the larger ones."""
    if isinstance(fit, Blend):
        return blended([check(member, data, seed=seed) for member in fit.members])
    return forward_checks(data, _recipe(fit, seed))


def unseen_errors(fit: Predictor, data: TrainingData, *, seed: int) -> FloatArray:
    """Log(measured / predicted) of every sample, predicted by a fit to the other four fifths."""
    if isinstance(fit, Blend):
        errors = [unseen_errors(member, data, seed=seed) for member in fit.members]
        return cast("FloatArray", np.mean(errors, axis=0))
    data = replace(data, held_out=np.zeros(len(data.seconds), dtype=bool))
    folds = np.random.default_rng(seed).permutation(len(data.seconds)) % FOLDS
    recipe = _recipe(fit, seed)
    logarithms = np.empty(len(data.seconds))
    for fold in range(FOLDS):
        predicted = recipe(data.part(folds != fold))(data.part(folds == fold))
        logarithms[folds == fold] = np.log(
            data.seconds[folds == fold] / positive(predicted, data.seconds)
        )
    return logarithms


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
    return lambda seen: _predicts(_fitted(seen, shape, with_bounds=True))


def _predicts(fit: Predictor) -> Predicts:
    return lambda ahead: fit.predict(ahead.table, ahead.loads)
