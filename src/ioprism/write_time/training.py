"""Learn from samples how long writes take, with the kind of model that extrapolates best.

The choice looks at training scales only: every kind of `CANDIDATES` is
fitted to the small training scales and predict the larger ones (`fitting.py`). The mean of
|log(measured / predicted)| is a kind's error; a check counts by the number of scales it saw, as one
that saw more of them says more about a model of all. The first of the list that is not clearly
worse than the best is taken: kinds that explain come before those that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ioprism.model.samples import Sample
from ioprism.write_time import fitting, limits
from ioprism.write_time.features import CollinearPair, collinear_pairs
from ioprism.write_time.loads import NOT_SHARED, loads_of, parameters, whole_machine
from ioprism.write_time.model import Score, WriteTimeModel, shares_within
from ioprism.write_time.stage_model import Shape, StageFit, fit_stages
from ioprism.write_time.system import FloatArray, System
from ioprism.write_time.training_data import (
    LEAKING,
    PreparedSamples,
    TrainingData,
    TrainingSettings,
    prepare,
)

CANDIDATES = (fitting.STAGES, "relative-lasso", "lasso", fitting.BOOSTING)
OVERLAPS = (limits.UNDECIDED, 1.0, limits.TOGETHER)  # of files being created and data
FOLDS = round(1.0 / limits.HELD_OUT)
AUTO = "auto"
NO_BOOSTING = (
    "boosting was not considered: scikit-learn is not installed (pip install 'ioprism[boosting]')"
)


def without_misleading(data: TrainingData, system: System, access: str) -> TrainingData:
    """Leave out the short samples where stages that know them explain the others worse.

    A cache may take in a short write: it then says nothing about the stages behind the cache.
    """
    if data.short is None:
        return data
    alone = replace(data, short=None)
    if len(data.seconds) < limits.MIN_SAMPLES_FOR_SHAPE:
        return alone
    with_short, without = (
        float(np.mean(_errors(_fit_shape(samples, choose_shape(samples, system, access)), data)))
        for samples in (data, alone)
    )
    return data if with_short <= (1.0 + limits.SAME) * without else alone


def choose_shape(data: TrainingData, system: System, access: str = "write") -> Shape:
    """Choose how far stages overlap and slow down when shared, and when files are created.

    All shapes have as many unknowns, so the one that makes the samples likeliest is taken.
    """
    loads = loads_of(system, access)
    usual = Shape(
        limits.TOGETHER,
        limits.STAGE_PENALTY,
        tuple(n for n, load in enumerate(loads) if load.stage == "metadata"),
        OVERLAPS[0],
        tuple(n for n, load in enumerate(loads) if load.stage not in NOT_SHARED),
        tuple(float(load) for load in whole_machine(system, access)),
    )
    if len(data.seconds) < limits.MIN_SAMPLES_FOR_SHAPE:
        return usual
    shape = _likeliest(
        data,
        [
            replace(usual, exponent=exponent, crowding=crowding)
            for crowding in limits.CROWDING
            for exponent in limits.EXPONENTS
        ],
    )
    return _likeliest(data, [replace(shape, meeting=meeting) for meeting in OVERLAPS])


def _likeliest(data: TrainingData, shapes: Sequence[Shape]) -> Shape:
    """The first shape that no other one is clearly likelier than, errors being Laplace's."""
    known = data.with_short()
    misfit = np.array([np.mean(_errors(_fit_shape(data, shape), known)) for shape in shapes])
    unlikely = len(known.seconds) * np.log(np.maximum(misfit, 1e-9))
    return shapes[int(np.argmax(unlikely <= unlikely.min() + limits.MIN_LOG_LIKELIHOOD))]


def _fit_shape(data: TrainingData, shape: Shape, *, with_bounds: bool = False) -> StageFit:
    known = data.with_short()
    return fit_stages(known.loads, known.seconds, shape, with_bounds=with_bounds)


def _errors(fit: StageFit, data: TrainingData) -> FloatArray:
    errors: FloatArray = np.abs(np.log(data.seconds / fit.predict(data.table, data.loads)))
    return errors


def unseen_errors(recipe: fitting.Recipe, data: TrainingData, *, seed: int) -> FloatArray:
    """Log(measured / predicted) of every sample, predicted by a fit to the other four fifths."""
    data = replace(data, held_out=np.zeros(len(data.seconds), dtype=bool))
    folds = np.random.default_rng(seed).permutation(len(data.seconds)) % FOLDS
    logarithms = np.empty(len(data.seconds))
    for fold in range(FOLDS):
        fit = recipe(data.part(folds != fold))
        logarithms[folds == fold] = fitting.log_ratios(fit, data.part(folds == fold), known=data)
    return logarithms


def _recipe(fit: fitting.Predictor, seed: int) -> fitting.Recipe:
    """Return how to fit other samples in the same way."""
    if isinstance(fit, StageFit):
        return lambda seen: _fit_shape(seen, fit.shape, with_bounds=True)
    if isinstance(fit, fitting.Trees):
        return lambda seen: fitting.fit_trees(seen, seed=seed)
    return lambda seen: fitting.refit(seen, fitting.KINDS[fit.kind], fit)


def train_model(
    samples: Sequence[Sample], *, system: System, settings: TrainingSettings | None = None
) -> WriteTimeModel:
    """Fit every kind of model, and choose one by how well it predicts larger training scales.

    Raises:
        AnalysisError: the samples cannot teach a model.
        MissingPackageError: boosting was asked for, and scikit-learn is not installed.
    """
    settings = settings or TrainingSettings()
    prepared = prepare(samples, system, settings)
    access = prepared.facts.access
    prepared = replace(prepared, data=without_misleading(prepared.data, system, access))
    seen = prepared.data.part(~prepared.data.held_out).with_short()
    shape = choose_shape(prepared.data, system, access)
    stages = fit_stages(seen.loads, seen.seconds, shape, with_bounds=True)
    fits = _fits(prepared, stages, settings)
    checks = {
        name: fitting.forward_checks(prepared.data, _recipe(fits[name], settings.seed))
        for name in CANDIDATES
        if name in fits and settings.kind == AUTO and settings.validation != LEAKING
    }
    scores = {name: _score(fit, prepared.validation, checks) for name, fit in fits.items()}
    fit = fits[_choose_kind_name(settings, scores, checks)]
    recipe = _recipe(fit, settings.seed)
    ahead = checks.get(fit.kind) or fitting.forward_checks(prepared.data, recipe)
    return WriteTimeModel(
        system=system,
        features=prepared.features,
        fit=fit,
        beside=tuple(f for f in fits.values() if f is not fit),
        stages=stages,
        scores=scores,
        calibration=_calibration(fit, recipe, prepared, ahead, settings),
        facts=replace(
            prepared.facts,
            short_used=len(prepared.data.short.seconds) if prepared.data.short else 0,
            notes=_notes(settings, samples, access),
        ),
        ranges={
            name: (float(value.min()), float(value.max()))
            for name, value in parameters(prepared.patterns, system=system).items()
        },
        together=_collinear(fit, prepared),
    )


def _fits(
    prepared: PreparedSamples, stages: StageFit, settings: TrainingSettings
) -> dict[str, fitting.Predictor]:
    """Fit all kinds; boosting only where it is wanted, as it takes longest."""
    fits: dict[str, fitting.Predictor] = {fitting.STAGES: stages}
    for name, kind in fitting.KINDS.items():
        fits[name] = fitting.choose_fit(prepared.data, kind, validation=prepared.validation)
    if settings.kind == fitting.BOOSTING or (settings.kind == AUTO and fitting.can_boost()):
        fits[fitting.BOOSTING] = fitting.fit_trees(
            prepared.data.part(~prepared.data.held_out), seed=settings.seed
        )
    return fits


def _choose_kind_name(
    settings: TrainingSettings, scores: Mapping[str, Score], checks: Mapping[str, fitting.Checks]
) -> str:
    if settings.kind != AUTO:
        return settings.kind
    if any(checks.values()):
        return fitting.first_as_good(checks)
    return min(
        (fitting.STAGES, "relative-lasso", "lasso"), key=lambda name: scores[name].mean_error
    )


def _notes(settings: TrainingSettings, samples: Sequence[Sample], access: str) -> tuple[str, ...]:
    others = sorted({s.pattern.access for s in samples} - {access})
    left = f"the model is of {access}; the store also has {', '.join(others)} (--access)"
    boosting = [NO_BOOSTING] if settings.kind == AUTO and not fitting.can_boost() else []
    return (*boosting, *([left] if others and settings.access is None else []))


def _score(
    fit: fitting.Predictor, validation: TrainingData, checks: Mapping[str, fitting.Checks]
) -> Score:
    errors = np.abs(np.exp(-fitting.log_ratios(fit, validation, known=validation)) - 1.0)
    ahead = checks.get(fit.kind)
    close, fair = shares_within(errors)
    return Score(
        samples=len(errors),
        within_20=close,
        within_30=fair,
        mean_error=float(np.mean(errors)),
        forward_error=fitting.forward_error(ahead) if ahead else None,
    )


def _calibration(
    fit: fitting.Predictor,
    recipe: fitting.Recipe,
    prepared: PreparedSamples,
    ahead: fitting.Checks,
    settings: TrainingSettings,
) -> fitting.Calibration:
    known = [fitting.log_ratios(fit, prepared.validation, known=prepared.validation)]
    if len(prepared.data.seconds) >= limits.MIN_SAMPLES_FOR_SHAPE:
        known.append(unseen_errors(recipe, prepared.data, seed=settings.seed))
    noisy, unconverged = prepared.unconverged, np.empty(0)
    if len(noisy.seconds):
        unconverged = fitting.log_ratios(fit, noisy, known=noisy)
    return fitting.calibrate(known, ahead, unconverged, level=settings.level)


def _collinear(fit: fitting.Predictor, prepared: PreparedSamples) -> tuple[CollinearPair, ...]:
    if not isinstance(fit, fitting.LinearFit):
        return ()
    return collinear_pairs(
        prepared.data.table,
        [feature.name for feature in prepared.features],
        active=[int(number) for number in np.flatnonzero(fit.coefficients)],
    )
