"""The JSON of `ioprism compare`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.compare import Comparison, Kept
from ioprism.model.trace import Trace
from ioprism.rules.registry import finding_dict


def body(found: Comparison, before: Trace, after: Trace) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    return {
        "before": _source(before),
        "after": _source(after),
        "metrics": [
            {
                "name": metric.name,
                "before": metric.before,
                "after": metric.after,
                "ratio": metric.ratio,
                "better": metric.better,
            }
            for metric in found.metrics
        ],
        "findings": {
            "gone": [finding_dict(finding) for finding in found.gone],
            "new": [finding_dict(finding) for finding in found.new],
            "kept": [_kept(pair) for pair in found.kept],
        },
    }


def _source(trace: Trace) -> dict[str, Any]:
    return {
        "paths": [str(path) for path in trace.paths],
        "format": trace.format,
        "warnings": list(trace.completeness.warnings),
    }


def _kept(pair: Kept) -> dict[str, Any]:
    return {
        **finding_dict(pair.after),
        "seconds_before": pair.before.seconds_at_stake,
        "level_before": pair.before.severity.value,
        "seconds_saved": pair.seconds_saved,
    }
