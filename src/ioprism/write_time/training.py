"""Learn from samples how long writes take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ioprism.model.samples import Sample, WritePattern
from ioprism.write_time.boosting import can_boost, fit_trees
from ioprism.write_time.choice import (
    BLENDS,
    FEWEST,
    Blend,
    Predictor,
    check,
    checks_of,
    choose_kind,
    choose_shape,
    unseen_errors,
    without_misleading,
)
from ioprism.write_time.columns import Together, moving_together
from ioprism.write_time.fitting import Fit, choose
from ioprism.write_time.forward import Checks, forward_error, positive
from ioprism.write_time.gram import TrainingData
from ioprism.write_time.intervals import Calibration, calibrate
from ioprism.write_time.kinds import BOOSTING, KINDS, STAGES
from ioprism.write_time.lasso import FloatArray
from ioprism.write_time.model import Score, WriteTimeModel
from ioprism.write_time.parameters import parameters
from ioprism.write_time.preparation import (
    LEAKING,
    Prepared,
    TrainingSettings,
    prepare,
)
from ioprism.write_time.stage_model import StageFit, fit_stages
from ioprism.write_time.system import System

AUTO = "auto"
NO_BOOSTING = (
    "boosting was not considered: scikit-learn is not installed (pip install 'ioprism[boosting]')"
)


def train(
    samples: Sequence[Sample], *, system: System, settings: TrainingSettings | None = None
) -> WriteTimeModel:
    """Fit every kind of model, and choose one by how well it predicts larger training scales.

    Raises:
        AnalysisError: the samples cannot teach a model.
        MissingPackageError: boosting was asked for, and scikit-learn is not installed.
    """
    settings = settings or TrainingSettings()
    prepared = prepare(samples, system, settings)
    prepared = replace(prepared, data=without_misleading(prepared.data, system))
    stages = _stages(prepared.data, system)
    fits = _fits(prepared, stages, settings)
    checks = checks_of(fits, prepared.data, seed=settings.seed) if _is_auto(settings) else {}
    scores = {name: _score(fit, prepared.validation, checks) for name, fit in fits.items()}
    fit = fits[_chosen(settings, scores, checks)]
    ahead = checks.get(fit.kind) or check(fit, prepared.data, seed=settings.seed)
    return WriteTimeModel(
        system=system,
        features=prepared.features,
        fit=fit,
        beside=tuple(f for f in fits.values() if f is not fit and not isinstance(f, Blend)),
        stages=stages,
        scores=scores,
        calibration=_calibration(fit, prepared, ahead, settings),
        facts=replace(
            prepared.facts,
            short_used=len(prepared.data.short.seconds) if prepared.data.short else 0,
            notes=_notes(settings),
        ),
        ranges=_ranges(prepared.patterns, system),
        together=_together(fit, prepared),
    )


def _is_auto(settings: TrainingSettings) -> bool:
    return settings.kind == AUTO and settings.validation != LEAKING


def _stages(data: TrainingData, system: System) -> StageFit:
    seen = data.part(~data.held_out).with_short()
    return fit_stages(seen.loads, seen.seconds, choose_shape(data, system), with_bounds=True)


def _fits(prepared: Prepared, stages: StageFit, settings: TrainingSettings) -> dict[str, Predictor]:
    """Fit all kinds; boosting only where it is wanted, as it takes longest."""
    fits: dict[str, Predictor] = {STAGES: stages}
    for name, kind in KINDS.items():
        fits[name] = choose(prepared.data, kind, validation=prepared.validation)
    if settings.kind == BOOSTING or (settings.kind == AUTO and can_boost()):
        fits[BOOSTING] = fit_trees(prepared.data.part(~prepared.data.held_out), seed=settings.seed)
    for members in BLENDS:
        if all(member in fits for member in members):
            blend = Blend(tuple(fits[member] for member in members))
            fits[blend.kind] = blend
    return fits


def _chosen(
    settings: TrainingSettings, scores: Mapping[str, Score], checks: Mapping[str, Checks]
) -> str:
    if settings.kind != AUTO:
        return settings.kind
    if any(checks.values()):
        return choose_kind(checks)
    return min((STAGES, "relative-lasso", "lasso"), key=lambda name: scores[name].mean_error)


def _notes(settings: TrainingSettings) -> tuple[str, ...]:
    return (NO_BOOSTING,) if settings.kind == AUTO and not can_boost() else ()


def _score(fit: Predictor, validation: TrainingData, checks: Mapping[str, Checks]) -> Score:
    errors = np.abs(np.exp(-_residuals(fit, validation)) - 1.0)
    ahead = checks.get(fit.kind)
    return Score(
        samples=len(errors),
        within_20=float(np.mean(errors <= 0.2)),
        within_30=float(np.mean(errors <= 0.3)),
        mean_error=float(np.mean(errors)),
        forward_error=forward_error(ahead) if ahead else None,
    )


def _calibration(
    fit: Predictor, prepared: Prepared, ahead: Checks, settings: TrainingSettings
) -> Calibration:
    unconverged = prepared.unconverged
    known = [_residuals(fit, prepared.validation)]
    if len(prepared.data.seconds) >= FEWEST:
        known.append(unseen_errors(fit, prepared.data, seed=settings.seed))
    return calibrate(
        known,
        ahead,
        _residuals(fit, unconverged) if len(unconverged.seconds) else np.empty(0),
        level=settings.level,
    )


def _residuals(fit: Predictor, data: TrainingData) -> FloatArray:
    """Log(measured / predicted)."""
    predicted = positive(fit.predict(data.table, data.loads), data.seconds)
    residuals: FloatArray = np.log(data.seconds / predicted)
    return residuals


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
