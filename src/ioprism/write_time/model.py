"""A write-time model: what it predicts, how far off that may be, its file, and published ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

import numpy as np
from msgspec import ValidationError, convert

from ioprism.errors import AnalysisError
from ioprism.model.result import pick
from ioprism.model.samples import WritePattern
from ioprism.text import printable
from ioprism.version import __version__
from ioprism.write_time import limits
from ioprism.write_time.features import CollinearPair, Feature, feature_table, features
from ioprism.write_time.fitting import Calibration, LinearFit, Predictor, Trees
from ioprism.write_time.loads import loads_of, stage_loads
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.system import FloatArray, System, bundled_system, parse_system
from ioprism.write_time.training_data import TrainingFacts

FILE_FORMAT = "ioprism write-time model"
FILE_VERSION = 4
PUBLISHED = ("cetus", "titan")  # files of the folder `published`


@dataclass(frozen=True, slots=True)
class Score:
    """How well a fit does on samples it was not trained on."""

    samples: int
    within_20: float  # share of samples whose prediction is off by at most 20 %
    within_30: float
    mean_error: float  # mean of |predicted - measured| / measured
    forward_error: float | None = None  # mean of |log(measured / predicted)| of larger scales


def shares_within(errors: FloatArray) -> tuple[float, float]:
    """Return the shares of relative errors that are close, and fair."""
    close, fair = (float(np.mean(np.abs(errors) <= limit)) for limit in (limits.CLOSE, limits.FAIR))
    return close, fair


@dataclass(frozen=True, slots=True)
class WriteTimeModel:
    """Predicts the mean time of one kind of access on one system."""

    system: System
    features: tuple[Feature, ...]
    fit: Predictor
    beside: tuple[Predictor, ...]  # the other kinds, for comparison
    stages: StageFit  # says which stage takes how much, whatever kind was chosen
    scores: Mapping[str, Score]  # by kind, on validation samples
    calibration: Calibration
    facts: TrainingFacts
    ranges: Mapping[str, tuple[float, float]]  # of every parameter in training
    together: tuple[CollinearPair, ...]

    def predict(
        self, patterns: Sequence[WritePattern], *, fit: Predictor | None = None
    ) -> FloatArray:
        """Return seconds; never less than a tenth of the shortest sample."""
        table = feature_table(patterns, system=self.system, chosen=self.features)
        loads = stage_loads(patterns, system=self.system)
        least = limits.LEAST_SHARE * self.facts.shortest
        return np.maximum((fit or self.fit).predict(table, loads), least)

    def predict_samples(
        self, patterns: Sequence[WritePattern], *, fit: Predictor | None = None
    ) -> FloatArray:
        """Return seconds for writes that count as samples: they last longer than the least."""
        return np.maximum(self.predict(patterns, fit=fit), self.system.sampling.minimum_seconds)

    def intervals(
        self, patterns: Sequence[WritePattern], *, noisy: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two ends around each prediction, in seconds.

        Beyond the training scales a stage may begin to matter that no sample shows, and creating
        files may or may not overlap with writing. Both ends allow for it, as far as samples do.
        """
        predicted = self.predict(patterns)
        factors = [self.calibration.factors(self.doublings(p.nodes), noisy=noisy) for p in patterns]
        low, high = np.array(factors).reshape(-1, 2).T
        loads = stage_loads(patterns, system=self.system)
        usual = self.stages.predict(loads, loads)
        least, most = self.stages.fastest(loads) / usual, self.stages.slowest(loads) / usual
        beyond = np.array([p.nodes > self.facts.scales[-1][0] for p in patterns])
        nearest = self.calibration.factors(0.0, noisy=noisy)
        low = np.where(beyond, np.minimum(low, least * nearest[0]), low)
        high = np.where(beyond, np.maximum(high, most * nearest[1]), high)
        return predicted * low, predicted * high

    def doublings(self, nodes: int) -> float:
        """How many times the node count doubled beyond the training scales."""
        return float(np.log2(nodes / self.facts.scales[-1][0]))


def model_to_dict(model: WriteTimeModel) -> dict[str, Any]:
    """Return the content of a model file."""
    return {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "ioprism": __version__,
        "system": model.system.name,
        "features": [feature.to_dict() for feature in model.features],
        "fit": _fit_to_dict(model.fit),
        "stages": _fit_to_dict(model.stages),
        "beside": [_fit_to_dict(fit) for fit in model.beside],
        **pick(model, "scores", "calibration", "facts", "ranges", "together"),
        "system_description": model.system.text,
    }


def model_from_dict(content: object, *, source: str) -> WriteTimeModel:
    """Read the content of a model file.

    Raises:
        AnalysisError: it is not one, or of another version, or damaged.
    """
    if not isinstance(content, dict) or content.get("format") != FILE_FORMAT:
        raise AnalysisError(
            f"{printable(source)}: this is not a write-time model.\n"
            "Hint: `ioprism write-time train` writes one."
        )
    if content.get("version") != FILE_VERSION:
        raise AnalysisError(
            f"{printable(source)}: this model file has version {content.get('version')!r}, "
            f"this ioprism reads version {FILE_VERSION}.\nHint: train the model again."
        )
    try:
        return _model_of(content, source)
    except (KeyError, TypeError, ValueError, IndexError, ValidationError) as error:
        raise AnalysisError(
            f"{printable(source)}: this model file is damaged ({type(error).__name__}: "
            f"{printable(str(error))[:80]}).\nHint: train the model again."
        ) from error


def _model_of(content: Mapping[str, Any], source: str) -> WriteTimeModel:
    system = parse_system(content["system_description"], source=source)
    facts = dict(content["facts"])
    access = str(facts.get("access", "write"))
    known = {f.name: f for f in reversed(features(system, variant="full", access=access))}
    names = [feature["name"] for feature in content["features"]]
    stages = _fit_from_dict(content["stages"], names)
    if not isinstance(stages, StageFit):
        raise TypeError("the stages are of another kind")
    return WriteTimeModel(
        system=system,
        features=tuple(known[name] for name in names),
        fit=_fit_from_dict(content["fit"], names),
        beside=tuple(_fit_from_dict(fit, names) for fit in content["beside"]),
        stages=stages,
        scores=convert(content["scores"], dict[str, Score]),
        calibration=convert(content["calibration"], Calibration),
        facts=convert(facts, TrainingFacts),
        ranges=convert(content["ranges"], dict[str, tuple[float, float]]),
        together=convert(content["together"], tuple[CollinearPair, ...]),
    )


def _fit_to_dict(fit: Predictor) -> dict[str, Any]:
    if isinstance(fit, Trees):
        return {"kind": fit.kind, "start": fit.start, "trees": [t.tolist() for t in fit.trees]}
    if isinstance(fit, StageFit):
        lists = {name: getattr(fit, name).tolist() for name in ("costs", "bounds", "floors")}
        return {"kind": fit.kind, **asdict(fit), **lists}
    return {"kind": fit.kind, **_linear_facts(fit), "coefficients": fit.coefficients.tolist()}


def _linear_facts(fit: LinearFit) -> dict[str, Any]:
    return {
        "training_scales": list(fit.scales),
        "lambda": fit.penalty,
        "lambda_share": fit.penalty_share,
        "intercept": fit.intercept,
    }


def _fit_from_dict(content: Mapping[str, Any], names: Sequence[str]) -> Predictor:
    if "trees" in content:
        return convert(content, Trees, dec_hook=_finite_array)
    if "shape" in content:
        return convert(content, StageFit, dec_hook=_finite_array)
    coefficients = _finite_array(FloatArray, content["coefficients"])
    if coefficients.shape != (len(names),):
        raise ValueError("the coefficients do not fit the features")
    return LinearFit(
        kind=str(content["kind"]),
        scales=tuple(content["training_scales"]),
        penalty=float(content["lambda"]),
        penalty_share=content["lambda_share"],
        intercept=float(content["intercept"]),
        coefficients=coefficients,
    )


def _finite_array(_: object, values: Sequence[object]) -> FloatArray:
    numbers = np.array(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a coefficient is not finite")
    return numbers


def published_model(name: str) -> WriteTimeModel:
    """Return the model that the paper chose for one of the `PUBLISHED` systems."""
    file = resources.files("ioprism.write_time") / "published" / f"{name}.json"
    content = json.loads(file.read_text("utf-8"))
    return model_from_dict(
        {**content, "system_description": bundled_system(name).text}, source=file.name
    )


# What the contract promises for every model, where a kind has none of it.
NO_COEFFICIENTS: dict[str, Any] = {
    "training_scales": [],
    "lambda": None,
    "intercept": None,
    "features": [],
}


def training_document(model: WriteTimeModel) -> dict[str, Any]:
    """Return what `ioprism write-time train --json` says: the models, and their training."""
    facts, calibration = model.facts, model.calibration
    return {
        "model": {"system": model.system.name, **_fit_document(model.fit, model)},
        "beside": [_fit_document(fit, model) for fit in model.beside],
        "interval": pick(calibration, "level", "measured_ahead", "steps", "noisy"),
        "choice": {
            name: score.forward_error
            for name, score in model.scores.items()
            if score.forward_error is not None
        },
        "training": {
            **pick(facts, "samples", "runs", "max_nodes", "constant_features", "copied_features"),
            "scales": [{"nodes": nodes, "samples": samples} for nodes, samples in facts.scales],
            "validation": {"rule": facts.validation, "samples": facts.held_out},
            "left_out": {"unconverged": facts.unconverged, "too_short": facts.too_short},
            "feature_set": facts.variant,
            "collinear": [[pair.first, pair.second] for pair in model.together],
        },
    }


def _fit_document(fit: Predictor, model: WriteTimeModel) -> dict[str, Any]:
    shares = pick(model.scores[fit.kind], "within_20", "within_30", "mean_error")
    body: dict[str, Any] = {"kind": fit.kind, "validation": shares}
    if isinstance(fit, Trees):
        return body | {"trees": len(fit.trees), **NO_COEFFICIENTS}
    if isinstance(fit, StageFit):
        terms = [(load.name, load.stage, "") for load in loads_of(model.system, model.facts.access)]
        return body | {
            "training_scales": [nodes for nodes, _ in model.facts.scales],
            "lambda": fit.shape.penalty,
            "intercept": fit.start,
            "exponent": fit.shape.exponent,
            "straggling": fit.straggling,
            "features": _terms(terms, fit.costs),
        }
    terms = [(feature.name, feature.stage, feature.unit) for feature in model.features]
    return body | _linear_facts(fit) | {"features": _terms(terms, fit.coefficients)}


def _terms(terms: Sequence[tuple[str, str, str]], values: FloatArray) -> list[dict[str, Any]]:
    return [
        {"name": name, "coefficient": float(value), "stage": stage, "unit": unit}
        for (name, stage, unit), value in zip(terms, values, strict=True)
        if value
    ]
