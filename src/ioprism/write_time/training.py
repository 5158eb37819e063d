"""Learn from samples how long writes take, with the kind of model that extrapolates best.

The choice looks at training scales only: every kind of `CANDIDATES` is
fitted to the small training scales and predict the larger ones (`fitting.py`). The mean of
|log(measured / predicted)| is a kind's error; a check counts by the number of scales it saw, as one
that saw more of them says more about a model of all. The first of the list that is not clearly
worse than the best is taken: kinds that explain come before those that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ioprism.model.samples import Sample, WritePattern
from ioprism.write_time.features import CollinearPair, collinear_pairs
from ioprism.write_time.fitting import (
    BOOSTING,
    KINDS,
    STAGES,
    Calibration,
    Checks,
    LinearFit,
    Predictor,
    Predicts,
    Trees,
    calibrate,
    can_boost,
    choose_fit,
    first_as_good,
    fit_trees,
    forward_checks,
    forward_error,
    positive,
    refit,
)
from ioprism.write_time.loads import NOT_SHARED, loads_of, parameters, whole_machine
from ioprism.write_time.model import Score, WriteTimeModel, shares_within
from ioprism.write_time.stage_model import TOGETHER, UNDECIDED, Shape, StageFit, fit_stages
from ioprism.write_time.system import FloatArray, System
from ioprism.write_time.training_data import (
    HELD_OUT,
    LEAKING,
    PreparedSamples,
    TrainingData,
    TrainingSettings,
    prepare,
)

CANDIDATES = (STAGES, "relative-lasso", "lasso", BOOSTING)
MISLEADING = 1.05  # times the error without them, from which short samples are left out
EXPONENTS = (5.0, 3.0, 2.0, 1.0)  # of those as good, the one nearest to a perfect pipeline
CROWDING = (0.0, 0.05, 0.1, 0.2)
OVERLAPS = (UNDECIDED, 1.0, TOGETHER)  # of files being created and data
DEFAULT_EXPONENT = 3.0  # the exponent where samples are too few to tell
MIN_SAMPLES_FOR_SHAPE = 30  # samples that tell how stages work together
FOLDS = round(1.0 / HELD_OUT)
MIN_LOG_LIKELIHOOD = 3.0  # a difference in log-likelihood that tells two shapes apart: 20 to 1
STAGE_PENALTY = 0.02
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
    if len(data.seconds) < MIN_SAMPLES_FOR_SHAPE:
        return alone
    with_short, without = (
        float(np.mean(_errors(_fit_shape(samples, choose_shape(samples, system, access)), data)))
        for samples in (data, alone)
    )
    return data if with_short <= MISLEADING * without else alone


def choose_shape(data: TrainingData, system: System, access: str = "write") -> Shape:
    """Choose how far stages overlap and slow down when shared, and when files are created.

    All shapes have as many unknowns, so the one that makes the samples likeliest is taken.
    """
    loads = loads_of(system, access)
    usual = Shape(
        DEFAULT_EXPONENT,
        STAGE_PENALTY,
        tuple(n for n, load in enumerate(loads) if load.stage == "metadata"),
        OVERLAPS[0],
        tuple(n for n, load in enumerate(loads) if load.stage not in NOT_SHARED),
        tuple(float(load) for load in whole_machine(system, access)),
    )
    if len(data.seconds) < MIN_SAMPLES_FOR_SHAPE:
        return usual
    shape = _likeliest(
        data,
        [
            replace(usual, exponent=exponent, crowding=crowding)
            for crowding in CROWDING
            for exponent in EXPONENTS
        ],
    )
    return _likeliest(data, [replace(shape, meeting=meeting) for meeting in OVERLAPS])


def _likeliest(data: TrainingData, shapes: Sequence[Shape]) -> Shape:
    """The first shape that no other one is clearly likelier than, errors being Laplace's."""
    known = data.with_short()
    misfit = np.array([np.mean(_errors(_fit_shape(data, shape), known)) for shape in shapes])
    unlikely = len(known.seconds) * np.log(np.maximum(misfit, 1e-9))
    return shapes[int(np.argmax(unlikely <= unlikely.min() + MIN_LOG_LIKELIHOOD))]


def _fit_shape(data: TrainingData, shape: Shape, *, with_bounds: bool = False) -> StageFit:
    known = data.with_short()
    return fit_stages(known.loads, known.seconds, shape, with_bounds=with_bounds)


def _errors(fit: StageFit, data: TrainingData) -> FloatArray:
    errors: FloatArray = np.abs(np.log(data.seconds / fit.predict(data.table, data.loads)))
    return errors


def check_forward(fit: Predictor, data: TrainingData, *, seed: int) -> Checks:
    """Fit the small training scales in the same way, and predict the larger ones."""
    return forward_checks(data, _recipe(fit, seed))


def unseen_errors(fit: Predictor, data: TrainingData, *, seed: int) -> FloatArray:
    """Log(measured / predicted) of every sample, predicted by a fit to the other four fifths."""
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
    """Check every candidate that was fitted, in order of preference."""
    return {name: check_forward(fits[name], data, seed=seed) for name in CANDIDATES if name in fits}


def _recipe(fit: Predictor, seed: int) -> Callable[[TrainingData], Predicts]:
    if isinstance(fit, StageFit):
        return _stage_recipe(fit.shape)
    if isinstance(fit, Trees):
        return lambda seen: _predicts(fit_trees(seen, seed=seed))
    if isinstance(fit, LinearFit):
        return lambda seen: _predicts(refit(seen, KINDS[fit.kind], fit))
    raise TypeError(f"{fit.kind} has no recipe")


def _stage_recipe(shape: Shape) -> Callable[[TrainingData], Predicts]:
    return lambda seen: _predicts(_fit_shape(seen, shape, with_bounds=True))


def _predicts(fit: Predictor) -> Predicts:
    return lambda ahead: fit.predict(ahead.table, ahead.loads)


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
    stages = _fit_stage_model(prepared.data, system, access)
    fits = _fits(prepared, stages, settings)
    checks = checks_of(fits, prepared.data, seed=settings.seed) if _is_auto(settings) else {}
    scores = {name: _score(fit, prepared.validation, checks) for name, fit in fits.items()}
    fit = fits[_choose_kind_name(settings, scores, checks)]
    ahead = checks.get(fit.kind) or check_forward(fit, prepared.data, seed=settings.seed)
    return WriteTimeModel(
        system=system,
        features=prepared.features,
        fit=fit,
        beside=tuple(f for f in fits.values() if f is not fit),
        stages=stages,
        scores=scores,
        calibration=_calibration(fit, prepared, ahead, settings),
        facts=replace(
            prepared.facts,
            short_used=len(prepared.data.short.seconds) if prepared.data.short else 0,
            notes=_notes(settings, samples, access),
        ),
        ranges=_ranges(prepared.patterns, system),
        together=_collinear(fit, prepared),
    )


def _is_auto(settings: TrainingSettings) -> bool:
    return settings.kind == AUTO and settings.validation != LEAKING


def _fit_stage_model(data: TrainingData, system: System, access: str) -> StageFit:
    seen = data.part(~data.held_out).with_short()
    shape = choose_shape(data, system, access)
    return fit_stages(seen.loads, seen.seconds, shape, with_bounds=True)


def _fits(
    prepared: PreparedSamples, stages: StageFit, settings: TrainingSettings
) -> dict[str, Predictor]:
    """Fit all kinds; boosting only where it is wanted, as it takes longest."""
    fits: dict[str, Predictor] = {STAGES: stages}
    for name, kind in KINDS.items():
        fits[name] = choose_fit(prepared.data, kind, validation=prepared.validation)
    if settings.kind == BOOSTING or (settings.kind == AUTO and can_boost()):
        fits[BOOSTING] = fit_trees(prepared.data.part(~prepared.data.held_out), seed=settings.seed)
    return fits


def _choose_kind_name(
    settings: TrainingSettings, scores: Mapping[str, Score], checks: Mapping[str, Checks]
) -> str:
    if settings.kind != AUTO:
        return settings.kind
    if any(checks.values()):
        return first_as_good(checks)
    return min((STAGES, "relative-lasso", "lasso"), key=lambda name: scores[name].mean_error)


def _notes(settings: TrainingSettings, samples: Sequence[Sample], access: str) -> tuple[str, ...]:
    others = sorted({s.pattern.access for s in samples} - {access})
    left = f"the model is of {access}; the store also has {', '.join(others)} (--access)"
    boosting = [NO_BOOSTING] if settings.kind == AUTO and not can_boost() else []
    return (*boosting, *([left] if others and settings.access is None else []))


def _score(fit: Predictor, validation: TrainingData, checks: Mapping[str, Checks]) -> Score:
    errors = np.abs(np.exp(-_residuals(fit, validation)) - 1.0)
    ahead = checks.get(fit.kind)
    close, fair = shares_within(errors)
    return Score(
        samples=len(errors),
        within_20=close,
        within_30=fair,
        mean_error=float(np.mean(errors)),
        forward_error=forward_error(ahead) if ahead else None,
    )


def _calibration(
    fit: Predictor, prepared: PreparedSamples, ahead: Checks, settings: TrainingSettings
) -> Calibration:
    unconverged = prepared.unconverged
    known = [_residuals(fit, prepared.validation)]
    if len(prepared.data.seconds) >= MIN_SAMPLES_FOR_SHAPE:
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


def _collinear(fit: Predictor, prepared: PreparedSamples) -> tuple[CollinearPair, ...]:
    if not isinstance(fit, LinearFit):
        return ()
    return collinear_pairs(
        prepared.data.table,
        [feature.name for feature in prepared.features],
        active=[int(number) for number in np.flatnonzero(fit.coefficients)],
    )
