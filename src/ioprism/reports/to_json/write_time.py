"""The JSON of `ioprism write-time`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioprism.analyses.write_time.boosting import Trees
from ioprism.analyses.write_time.estimate import Estimate
from ioprism.analyses.write_time.evaluation import Evaluation, SampleSet
from ioprism.analyses.write_time.measured_phases import Comparison
from ioprism.analyses.write_time.model import Predictor, WriteTimeModel
from ioprism.analyses.write_time.sampling import Cost
from ioprism.analyses.write_time.tuning import CheckpointAdvice, Choice
from ioprism.model.samples import WritePattern, format_node_list
from ioprism.reports import to_json
from ioprism.version import __version__


def document(
    body: dict[str, Any], *, paths: Sequence[Path], format_name: str, warnings: Sequence[str] = ()
) -> str:
    """Return one JSON document: the version, the source, and the result."""
    source = {
        "paths": [str(path) for path in paths],
        "format": format_name,
        "warnings": list(warnings),
    }
    head = {"ioprism": __version__, "schema": to_json.SCHEMA, "source": source}
    return to_json.dump({**head, **body})


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
        return body | {"trees": len(fit.trees)}
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


def evaluation(found: Evaluation) -> dict[str, Any]:
    """Return the scores of every set of samples."""
    return {
        "model": {"kind": found.model.fit.kind, "validation": found.model.facts.validation},
        "level": found.model.calibration.level,
        "excluded": found.excluded,
        "sets": [_sample_set(sample_set) for sample_set in found.sets],
    }


def _sample_set(found: SampleSet) -> dict[str, Any]:
    return {
        "name": found.name,
        "samples": len(found.measured),
        "within_20": found.within(0.2),
        "within_30": found.within(0.3),
        "coverage": found.coverage,
        "beside": {
            kind: {"within_20": shares[0], "within_30": shares[1]}
            for kind, shares in found.beside.items()
        },
    }


def pattern(written: WritePattern) -> dict[str, Any]:
    """Return a configuration."""
    nodes = written.node_list
    return {
        "nodes": written.nodes,
        "cores_per_node": written.cores_per_node,
        "burst_bytes": written.burst_bytes,
        "stripe_count": written.stripe_count,
        "node_list": None if nodes is None else format_node_list(nodes),
    }


def estimate(found: Estimate) -> dict[str, Any]:
    """Return a predicted time with its interval and its parts."""
    return {
        "pattern": pattern(found.pattern),
        "seconds": found.seconds,
        "interval": {"low": found.low, "high": found.high, "level": found.level},
        "warnings": list(found.warnings),
        "dominant_stages": [
            {"feature": part.feature, "stage": part.stage, "seconds": part.seconds}
            for part in found.parts
        ],
    }


def comparisons(found: Sequence[Comparison]) -> dict[str, Any]:
    """Return measured and predicted times of a trace's write phases."""
    return {
        "phases": [
            {
                "start": c.phase.start,
                "end": c.phase.end,
                "measured": c.measured,
                "ratio": c.ratio,
                **estimate(c.estimate),
            }
            for c in found
        ]
    }


def tuning(now: Estimate, choices: Sequence[Choice], advice: CheckpointAdvice) -> dict[str, Any]:
    """Return the ranked configurations and the checkpoint advice."""
    return {
        "now": estimate(now),
        "choices": [
            {
                "speedup": choice.speedup,
                "clear": choice.clear,
                "data_moves": choice.data_moves,
                **estimate(choice.estimate),
            }
            for choice in choices
        ],
        "checkpoint": {
            "write_seconds": advice.write_seconds,
            "young_interval": advice.young,
            "daly_interval": advice.daly,
            "io_share": advice.io_share,
            "least_interval": advice.least_interval,
        },
    }


def cost(found: Cost, *, rate: float, rate_is: str, added: int) -> dict[str, Any]:
    """Return what a plan takes."""
    return {
        "plan": {
            "patterns": found.patterns,
            "added": added,
            "largest_run_bytes": found.largest_run_bytes,
            "bytes": {"fewest": found.fewest_bytes, "most": found.most_bytes},
            "seconds": {"fewest": found.fewest_seconds, "most": found.most_seconds},
            "node_hours": found.node_hours,
            "assumed_rate_per_node": rate,
            "rate_is": rate_is,
        }
    }
