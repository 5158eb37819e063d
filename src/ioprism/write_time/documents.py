"""The JSON of `ioprism write-time`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ioprism.write_time.boosting import Trees
from ioprism.write_time.campaign.sampler import Progress
from ioprism.write_time.choice import Blend, Predictor
from ioprism.write_time.fitting import Fit
from ioprism.write_time.measured_phases import Comparison
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.stage_loads import LOADS
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.steps import Planned

# What the contract promises of every model, where a kind has none of it.
NO_COEFFICIENTS: dict[str, Any] = {
    "training_scales": [],
    "lambda": None,
    "intercept": None,
    "features": [],
}


def model(trained: WriteTimeModel) -> dict[str, Any]:
    """Return the chosen model, the others beside it, and what they were trained on."""
    facts = trained.facts
    return {
        "model": {"system": trained.system.name, **_fit(trained.fit, trained)},
        "beside": [_fit(fit, trained) for fit in trained.beside],
        "interval": {
            "level": trained.calibration.level,
            "measured_ahead": trained.calibration.measured_ahead,
            "steps": [
                {"doublings": s.doublings, "low": s.low, "high": s.high, "samples": s.samples}
                for s in trained.calibration.steps
            ],
            "noisy": asdict(trained.calibration.noisy),
        },
        "choice": {
            name: score.forward_error
            for name, score in trained.scores.items()
            if score.forward_error is not None
        },
        "training": {
            "samples": facts.samples,
            "runs": facts.runs,
            "scales": [{"nodes": nodes, "samples": samples} for nodes, samples in facts.scales],
            "max_nodes": facts.max_nodes,
            "validation": {"rule": facts.validation, "samples": facts.held_out},
            "left_out": {"unconverged": facts.unconverged, "too_short": facts.too_short},
            "feature_set": facts.variant,
            "constant_features": list(facts.constant_features),
            "copied_features": [list(pair) for pair in facts.copied_features],
            "collinear": [[pair.first, pair.second] for pair in trained.together],
        },
    }


def _fit(fit: Predictor, trained: WriteTimeModel) -> dict[str, Any]:
    score = trained.scores[fit.kind]
    body: dict[str, Any] = {
        "kind": fit.kind,
        "validation": {
            "within_20": score.within_20,
            "within_30": score.within_30,
            "mean_error": score.mean_error,
        },
    }
    if isinstance(fit, Trees):
        return body | {"trees": len(fit.trees), **NO_COEFFICIENTS}
    if isinstance(fit, Blend):
        return body | {"members": [member.kind for member in fit.members], **NO_COEFFICIENTS}
    if isinstance(fit, StageFit):
        return body | _stage_fit(fit, trained)
    if not isinstance(fit, Fit):
        raise TypeError(f"{fit.kind} has no JSON")
    return body | {
        "training_scales": list(fit.scales),
        "lambda": fit.penalty,
        "lambda_share": fit.penalty_share,
        "intercept": fit.intercept,
        "features": [
            {"name": f.name, "coefficient": float(value), "stage": f.stage, "unit": f.unit}
            for f, value in zip(trained.features, fit.coefficients, strict=True)
            if value
        ],
    }


def _stage_fit(fit: StageFit, trained: WriteTimeModel) -> dict[str, Any]:
    loads = LOADS[trained.system.filesystem]
    return {
        "training_scales": [nodes for nodes, _ in trained.facts.scales],
        "lambda": fit.shape.penalty,
        "intercept": fit.start,
        "exponent": fit.shape.exponent,
        "straggling": fit.straggling,
        "features": [
            {"name": load.name, "coefficient": float(value), "stage": load.stage, "unit": ""}
            for load, value in zip(loads, fit.costs, strict=True)
            if value
        ],
    }


def comparisons(compared: Sequence[Comparison]) -> dict[str, Any]:
    """Return measured and predicted times of a trace's write phases."""
    return {
        "phases": [
            {
                "start": c.phase.start,
                "end": c.phase.end,
                "measured": c.measured,
                "ratio": c.ratio,
                **c.estimate.to_dict(),
            }
            for c in compared
        ]
    }


def plan(planned: Planned) -> dict[str, Any]:
    """Return what a plan takes."""
    cost = planned.cost
    return {
        "plan": {
            "patterns": cost.patterns,
            "added": planned.added,
            "largest_run_bytes": cost.largest_run_bytes,
            "bytes": {"fewest": cost.fewest_bytes, "most": cost.most_bytes},
            "seconds": {"fewest": cost.fewest_seconds, "most": cost.most_seconds},
            "node_hours": cost.node_hours,
            "too_short": {"patterns": cost.too_short, "seconds": cost.shortest},
            "assumed_rate_per_node": planned.rate,
            "rate_is": planned.rate_known_from,
        }
    }


def progress(done: Progress) -> dict[str, Any]:
    """Return what a sampling session did."""
    return {
        "sampling": {
            "runs": done.runs,
            "converged": done.converged,
            "unconverged": done.unconverged,
            "waiting": done.waiting,
            "discarded": done.discarded,
            "failed": done.failed,
            "left_aside": sum(done.given_up.values()),
        }
    }
