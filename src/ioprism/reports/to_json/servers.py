"""The JSON of `ioprism servers`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ioprism.analyses.job_metrics.fleet import Fleet, Mover
from ioprism.analyses.job_metrics.result import FLAGS, MEASURES, JobMetrics, column
from ioprism.analyses.job_metrics.settings import MetricSettings
from ioprism.analyses.job_metrics.validate import Validation
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.pipeline.ingest import Outcome
from ioprism.reports import to_json

PLAIN = ("bytes", "operations", "max_bandwidth", "max_operation_rate", "max_server_bandwidth",
         "boundary_bytes")  # fmt: skip


def document(paths: Iterable[Path], warnings: Iterable[str], body: Mapping[str, Any]) -> str:
    """Return one JSON document: the version, the source, and the result."""
    source = {
        "paths": [str(path) for path in paths],
        "format": "server counters",
        "warnings": list(warnings),
    }
    return to_json.plain_document({"source": source, **body})


def ingested(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what became of each raw file."""
    return {
        "files": [
            {
                "path": str(outcome.path),
                "format": outcome.format or None,
                "records": outcome.records,
                "known": outcome.known,
                "warnings": list(outcome.warnings),
            }
            for outcome in outcomes
        ]
    }


def jobs(metrics: JobMetrics) -> dict[str, Any]:
    """Return every job with all its metrics."""
    thresholds = metrics.settings.thresholds
    return {
        "settings": settings(metrics.settings),
        "jobs": [_job(row, thresholds) for row in metrics.table.iter_rows(named=True)],
    }


def settings(used: MetricSettings) -> dict[str, Any]:
    """Return the choices behind the numbers."""
    return {
        "interval": used.interval_us / SECOND,
        "thresholds": list(used.thresholds),
        "grid": used.grid,
        "window": used.window,
        "reset": used.reset,
        "min_runtime": used.min_runtime,
    }


def _job(row: Mapping[str, Any], thresholds: Sequence[int]) -> dict[str, Any]:
    return {
        "job": row["job"],
        "start": _whole(row["start_us"] / SECOND),
        "end": _whole(row["end_us"] / SECOND),
        "user": row["user"],
        "account": row["account"],
        "partition": row["partition"],
        "name": row["name"],
        "servers": row["servers"],
        "coverage": row["coverage"],
        "unknown_seconds": row["unknown"],
        "flags": [flag for flag in FLAGS if row[flag]],
        **{direction: _direction(row, direction, thresholds) for direction in DIRECTIONS},
        "opens": _whole(row["opens"]),
        "closes": _whole(row["closes"]),
    }


def _direction(row: Mapping[str, Any], direction: str, thresholds: Sequence[int]) -> dict[str, Any]:
    names = (*MEASURES, "has_io")
    return {
        **{name: _whole(row[f"{direction}_{name}"]) for name in PLAIN},
        "by_threshold": {
            str(threshold): {name: row[column(direction, name, threshold)] for name in names}
            for threshold in thresholds
        },
    }


def machine(found: Fleet, metrics: JobMetrics) -> dict[str, Any]:
    """Return the machine-wide numbers."""
    return {
        "settings": settings(metrics.settings),
        "machine": {
            "jobs": found.jobs,
            "start": found.start_us / SECOND,
            "end": found.end_us / SECOND,
            "flags": found.flags,
            **{
                direction: {
                    "bytes": totals.bytes,
                    "operations": totals.operations,
                    "top_20_share": totals.top_share,
                    "highest": totals.highest,
                    "eighty_percent": totals.eighty,
                }
                for direction, totals in found.totals.items()
            },
        },
        "eighty_percent": [
            {"measure": row.measure, "threshold": row.threshold, **row.values}
            for row in found.eighty
        ],
        "users": [_mover(mover) for mover in found.users],
        "accounts": [_mover(mover) for mover in found.accounts],
        "busiest": found.busiest["job"].to_list(),
        "flagged": found.flagged["job"].to_list(),
    }


def _mover(mover: Mover) -> dict[str, Any]:
    return {"name": mover.name, "jobs": mover.jobs, **mover.bytes, "seconds": mover.seconds}


def validation(found: Validation) -> dict[str, Any]:
    """Return how measured and true values compare."""
    return {
        "passed": found.passed,
        "jobs": found.jobs,
        "checks": [
            {
                "name": check.name,
                "low": check.low,
                "high": check.high,
                "p1": check.p1,
                "median": check.median,
                "p99": check.p99,
                "passed": check.passed,
            }
            for check in found.checks
        ],
    }


def _whole(value: float | None) -> float | None:
    """Show a whole number as one."""
    return int(value) if value is not None and value == int(value) else value
