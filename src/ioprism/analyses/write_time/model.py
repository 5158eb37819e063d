"""A trained write-time model, and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ioprism.analyses.write_time.boosting import Trees
from ioprism.analyses.write_time.columns import Together
from ioprism.analyses.write_time.features import Feature, feature_table, features
from ioprism.analyses.write_time.fitting import Fit
from ioprism.analyses.write_time.intervals import Calibration, Step
from ioprism.analyses.write_time.lasso import FloatArray
from ioprism.analyses.write_time.system import System, parse_system
from ioprism.errors import AnalysisError
from ioprism.model.samples import WritePattern
from ioprism.text import printable
from ioprism.version import __version__

FORMAT = "ioprism write-time model"
VERSION = 1

Predictor = Fit | Trees


@dataclass(frozen=True, slots=True)
class Score:
    """How well a fit does on samples it was not trained on."""

    samples: int
    within_20: float  # share of samples whose prediction is off by at most 20 %
    within_30: float
    mean_error: float  # mean of |predicted - measured| / measured


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What a model was trained on."""

    samples: int
    runs: int
    scales: tuple[tuple[int, int], ...]  # nodes, samples
    held_out: int
    validation: str
    validation_samples: tuple[str, ...]  # fingerprints, where they are no training samples
    max_nodes: int
    unconverged: int  # left out
    too_short: int  # left out
    shortest: float  # seconds
    seed: int
    variant: str
    constant_features: tuple[str, ...]
    copied_features: tuple[tuple[str, str], ...]
    unknown_placement: int  # samples without a node list


@dataclass(frozen=True, slots=True)
class WriteTimeModel:
    """Predicts the mean time of file-per-process writes on one system."""

    system: System
    features: tuple[Feature, ...]
    fit: Predictor
    beside: tuple[Predictor, ...]  # the other kinds, for comparison
    scores: Mapping[str, Score]  # by kind, on validation samples
    calibration: Calibration
    facts: TrainingFacts
    ranges: Mapping[str, tuple[float, float]]  # of every parameter in training
    together: tuple[Together, ...]

    def predict(
        self, patterns: Sequence[WritePattern], *, fit: Predictor | None = None
    ) -> FloatArray:
        """Return seconds; never less than a tenth of the shortest sample."""
        table = feature_table(patterns, system=self.system, chosen=self.features)
        return np.maximum((fit or self.fit).predict(table), 0.1 * self.facts.shortest)

    def doublings(self, nodes: int) -> float:
        """How many times the node count doubled beyond the training scales."""
        return float(np.log2(nodes / self.facts.scales[-1][0]))


def to_dict(model: WriteTimeModel) -> dict[str, Any]:
    """Return the content of a model file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "ioprism": __version__,
        "system": model.system.name,
        "features": [
            {"name": f.name, "stage": f.stage, "unit": f.unit, "kind": f.kind}
            for f in model.features
        ],
        "fit": _fit_to_dict(model.fit),
        "beside": [_fit_to_dict(fit) for fit in model.beside],
        "scores": {name: asdict(score) for name, score in model.scores.items()},
        "calibration": asdict(model.calibration),
        "facts": asdict(model.facts),
        "ranges": {name: list(pair) for name, pair in model.ranges.items()},
        "together": [asdict(pair) for pair in model.together],
        "system_description": model.system.text,
    }


def from_dict(content: object, *, source: str) -> WriteTimeModel:
    """Read the content of a model file.

    Raises:
        AnalysisError: it is not one, or of another version, or damaged.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise AnalysisError(
            f"{printable(source)}: this is not a write-time model.\n"
            "Hint: `ioprism write-time train` writes one."
        )
    if content.get("version") != VERSION:
        raise AnalysisError(
            f"{printable(source)}: this model file has version {content.get('version')!r}, "
            f"this ioprism reads version {VERSION}.\nHint: train the model again."
        )
    try:
        return _model(content, source)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise AnalysisError(
            f"{printable(source)}: this model file is damaged ({type(error).__name__}: "
            f"{printable(str(error))[:80]}).\nHint: train the model again."
        ) from error


def _model(content: Mapping[str, Any], source: str) -> WriteTimeModel:
    system = parse_system(content["system_description"], source=source)
    facts = dict(content["facts"])
    known = {f.name: f for f in reversed(features(system, variant="full"))}
    names = [feature["name"] for feature in content["features"]]
    calibration = content["calibration"]
    steps = tuple(Step(**step) for step in calibration["steps"])
    return WriteTimeModel(
        system=system,
        features=tuple(known[name] for name in names),
        fit=_fit_from_dict(content["fit"], names),
        beside=tuple(_fit_from_dict(fit, names) for fit in content["beside"]),
        scores={name: Score(**score) for name, score in content["scores"].items()},
        calibration=Calibration(calibration["level"], steps, calibration["measured_ahead"]),
        facts=TrainingFacts(**{name: _frozen(value) for name, value in facts.items()}),
        ranges={name: (low, high) for name, (low, high) in content["ranges"].items()},
        together=tuple(Together(**pair) for pair in content["together"]),
    )


def _frozen(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _fit_to_dict(fit: Predictor) -> dict[str, Any]:
    if isinstance(fit, Trees):
        return {"kind": fit.kind, "start": fit.start, "trees": [t.tolist() for t in fit.trees]}
    return {
        "kind": fit.kind,
        "training_scales": list(fit.scales),
        "lambda": fit.penalty,
        "lambda_share": fit.penalty_share,
        "intercept": fit.intercept,
        "coefficients": [float(value) for value in fit.coefficients],
    }


def _fit_from_dict(content: Mapping[str, Any], names: Sequence[str]) -> Predictor:
    if "trees" in content:
        trees = tuple(np.array(tree, dtype=np.float64).reshape(-1, 5) for tree in content["trees"])
        return Trees(float(content["start"]), trees)
    coefficients = np.array(content["coefficients"], dtype=np.float64)
    if coefficients.shape != (len(names),) or not np.isfinite(coefficients).all():
        raise ValueError("the coefficients do not fit the features")
    return Fit(
        kind=str(content["kind"]),
        scales=tuple(content["training_scales"]),
        penalty=float(content["lambda"]),
        penalty_share=content["lambda_share"],
        intercept=float(content["intercept"]),
        coefficients=coefficients,
    )
