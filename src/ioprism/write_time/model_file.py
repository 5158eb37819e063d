"""Keep a trained model in a file, and read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ioprism.errors import AnalysisError
from ioprism.text import printable
from ioprism.version import __version__
from ioprism.write_time.boosting import Trees
from ioprism.write_time.choice import Blend, Predictor
from ioprism.write_time.columns import Together
from ioprism.write_time.features import features
from ioprism.write_time.fitting import Fit
from ioprism.write_time.intervals import Calibration, Step
from ioprism.write_time.lasso import FloatArray
from ioprism.write_time.model import Score, TrainingFacts, WriteTimeModel
from ioprism.write_time.stage_model import Shape, StageFit
from ioprism.write_time.system import parse_system

FORMAT = "ioprism write-time model"
VERSION = 4


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
        "stages": _fit_to_dict(model.stages),
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
    stages = _fit_from_dict(content["stages"], names)
    if not isinstance(stages, StageFit):
        raise TypeError("the stages are of another kind")
    return WriteTimeModel(
        system=system,
        features=tuple(known[name] for name in names),
        fit=_fit_from_dict(content["fit"], names),
        beside=tuple(_fit_from_dict(fit, names) for fit in content["beside"]),
        stages=stages,
        scores={name: Score(**score) for name, score in content["scores"].items()},
        calibration=_calibration(content["calibration"]),
        facts=TrainingFacts(**{name: _frozen(value) for name, value in facts.items()}),
        ranges={name: (low, high) for name, (low, high) in content["ranges"].items()},
        together=tuple(Together(**pair) for pair in content["together"]),
    )


def _frozen(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _calibration(content: Mapping[str, Any]) -> Calibration:
    return Calibration(
        level=content["level"],
        steps=tuple(Step(**step) for step in content["steps"]),
        noisy=Step(**content["noisy"]),
        measured_ahead=content["measured_ahead"],
    )


def _fit_to_dict(fit: Predictor) -> dict[str, Any]:
    if isinstance(fit, Blend):
        return {"kind": fit.kind, "members": [_fit_to_dict(member) for member in fit.members]}
    if isinstance(fit, Trees):
        return {"kind": fit.kind, "start": fit.start, "trees": [t.tolist() for t in fit.trees]}
    if isinstance(fit, StageFit):
        lists = {name: getattr(fit, name).tolist() for name in ("costs", "bounds", "floors")}
        return {"kind": fit.kind, **asdict(fit), **lists}
    if isinstance(fit, Fit):
        return {
            "kind": fit.kind,
            "training_scales": list(fit.scales),
            "lambda": fit.penalty,
            "lambda_share": fit.penalty_share,
            "intercept": fit.intercept,
            "coefficients": [float(value) for value in fit.coefficients],
        }
    raise TypeError(f"{fit.kind} cannot be kept in a file")


def _fit_from_dict(content: Mapping[str, Any], names: Sequence[str]) -> Predictor:
    if "members" in content:
        return Blend(tuple(_fit_from_dict(member, names) for member in content["members"]))
    if "trees" in content:
        trees = tuple(np.array(tree, dtype=np.float64).reshape(-1, 5) for tree in content["trees"])
        return Trees(float(content["start"]), trees)
    if "shape" in content:
        return _stage_fit(content)
    coefficients = _finite(content["coefficients"])
    if coefficients.shape != (len(names),):
        raise ValueError("the coefficients do not fit the features")
    return Fit(
        kind=str(content["kind"]),
        scales=tuple(content["training_scales"]),
        penalty=float(content["lambda"]),
        penalty_share=content["lambda_share"],
        intercept=float(content["intercept"]),
        coefficients=coefficients,
    )


def _stage_fit(content: Mapping[str, Any]) -> StageFit:
    shape = content["shape"]
    return StageFit(
        shape=Shape(
            float(shape["exponent"]),
            float(shape["penalty"]),
            tuple(shape["creating"]),
            float(shape["meeting"]),
            tuple(shape["shared"]),
            tuple(shape["whole"]),
            float(shape["crowding"]),
        ),
        start=float(content["start"]),
        straggling=float(content["straggling"]),
        costs=_finite(content["costs"]),
        bounds=_finite(content["bounds"]),
        floors=_finite(content["floors"]),
        tied=_frozen(content["tied"]),
    )


def _finite(values: Sequence[float]) -> FloatArray:
    numbers = np.array(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a coefficient is not finite")
    return numbers
