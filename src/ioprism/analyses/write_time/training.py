"""Learn from samples how long writes take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprism.analyses.write_time.boosting import fit_trees
from ioprism.analyses.write_time.columns import Together, moving_together
from ioprism.analyses.write_time.fitting import (
    Fit,
    Residuals,
    choose,
    forward_residuals,
    forward_splits,
    positive,
)
from ioprism.analyses.write_time.gram import TrainingData
from ioprism.analyses.write_time.intervals import Calibration, calibrate
from ioprism.analyses.write_time.kinds import BOOSTING, KINDS
from ioprism.analyses.write_time.model import Predictor, Score, WriteTimeModel
from ioprism.analyses.write_time.parameters import parameters
from ioprism.analyses.write_time.preparation import Prepared, TrainingSettings, prepare
from ioprism.analyses.write_time.system import System
from ioprism.model.samples import Sample, WritePattern

AUTOMATIC = ("relative-lasso", "lasso")


def train(
    samples: Sequence[Sample], *, system: System, settings: TrainingSettings | None = None
) -> WriteTimeModel:
    """Fit every kind of model, and choose by samples held out.

    Raises:
        AnalysisError: the samples cannot teach a model.
    """
    settings = settings or TrainingSettings()
    prepared = prepare(samples, system, settings)
    fits: dict[str, Predictor] = {
        name: choose(prepared.data, kind, validation=prepared.validation)
        for name, kind in KINDS.items()
    }
    if settings.kind == BOOSTING:
        fits[BOOSTING] = fit_trees(prepared.data.part(~prepared.data.held_out), seed=settings.seed)
    scores = {name: _score(fit, prepared.validation) for name, fit in fits.items()}
    chosen = settings.kind
    if chosen == "auto":
        chosen = min(AUTOMATIC, key=lambda name: scores[name].mean_error)
    fit = fits.pop(chosen)
    return WriteTimeModel(
        system=system,
        features=prepared.features,
        fit=fit,
        beside=tuple(fits.values()),
        scores=scores,
        calibration=_calibration(fit, prepared, settings),
        facts=prepared.facts,
        ranges=_ranges(prepared.patterns, system),
        together=_together(fit, prepared),
    )


def _score(fit: Predictor, validation: TrainingData) -> Score:
    predicted = positive(fit.predict(validation.table), validation.seconds)
    errors = np.abs(predicted / validation.seconds - 1.0)
    return Score(
        samples=len(errors),
        within_20=float(np.mean(errors <= 0.2)),
        within_30=float(np.mean(errors <= 0.3)),
        mean_error=float(np.mean(errors)),
    )


def _calibration(fit: Predictor, prepared: Prepared, settings: TrainingSettings) -> Calibration:
    held_out = prepared.validation
    predicted = positive(fit.predict(held_out.table), held_out.seconds)
    known = np.log(held_out.seconds / predicted)
    if isinstance(fit, Fit):
        ahead = forward_residuals(prepared.data, KINDS[fit.kind], fit)
    else:
        ahead = _tree_residuals(prepared.data, settings.seed)
    return calibrate(known, ahead, level=settings.level)


def _tree_residuals(data: TrainingData, seed: int) -> Residuals:
    logarithms, doublings = [np.empty(0)], [np.empty(0)]
    for seen, ahead in forward_splits(data):
        predicted = fit_trees(seen, seed=seed).predict(ahead.table)
        logarithms.append(np.log(ahead.seconds / predicted))
        doublings.append(np.log2(ahead.nodes / seen.nodes.max()))
    return Residuals(np.concatenate(logarithms), np.concatenate(doublings))


def _ranges(patterns: Sequence[WritePattern], system: System) -> dict[str, tuple[float, float]]:
    values = parameters(patterns, system=system)
    return {name: (float(value.min()), float(value.max())) for name, value in values.items()}


def _together(fit: Predictor, prepared: Prepared) -> tuple[Together, ...]:
    if not isinstance(fit, Fit):
        return ()
    return moving_together(
        prepared.data.table,
        [feature.name for feature in prepared.features],
        active=[int(number) for number in np.flatnonzero(fit.coefficients)],
    )
