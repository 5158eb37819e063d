"""The JSON of `ioprism servers`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.reports import to_json
from ioprism.servers.fleet import SMALL_REQUEST, DirectionTotals, Fleet, Mover, Profile, Trend
from ioprism.servers.interference import Application, Disturbance
from ioprism.servers.load import PARTS, MachineLoad
from ioprism.servers.measures import FLAGS, MEASURES, JobMetrics, metric_column
from ioprism.servers.raw_files import IngestedFile
from ioprism.servers.series import MetricSettings
from ioprism.servers.steps import MachineReport
from ioprism.servers.validation import BenchmarkResult, Validation
from ioprism.servers.wording import dominance

CHOICES = ("grid", "window", "reset", "shared", "min_runtime")
FACTS = ("user", "account", "partition", "name", "servers", "coverage", "attribution")
PLAIN = ("bytes", "shared_bytes", "operations", "max_bandwidth", "max_operation_rate",
         "max_server_bandwidth", "boundary_bytes")  # fmt: skip


def _document(paths: Iterable[Path], warnings: Iterable[str], body: Mapping[str, Any]) -> str:
    return to_json.document_of(body, paths=paths, format_name="server counters", warnings=warnings)


def ingest(paths: Iterable[Path], outcomes: Sequence[IngestedFile]) -> str:
    """Return what became of each raw file."""
    files = [
        {
            "path": str(outcome.path),
            "format": outcome.format or None,
            "records": outcome.records,
            "known": outcome.known,
            "warnings": list(outcome.warnings),
        }
        for outcome in outcomes
    ]
    warnings = [f"{outcome.path}: {said}" for outcome in outcomes for said in outcome.warnings]
    return _document(paths, warnings, {"files": files})


def jobs(store: Path, metrics: JobMetrics) -> str:
    """Return every job with all its metrics."""
    thresholds = metrics.settings.thresholds
    body = {
        "settings": settings(metrics.settings),
        "attribution": {"jobs": metrics.attributions, "shared_bytes": metrics.split},
        "jobs": [_job(row, thresholds) for row in metrics.table.iter_rows(named=True)],
    }
    return _document([store], metrics.warnings, body)


def settings(used: MetricSettings) -> dict[str, Any]:
    """Return the choices behind the numbers."""
    return {
        "interval": used.interval_us / SECOND,
        "thresholds": list(used.thresholds),
        **{name: getattr(used, name) for name in CHOICES},
    }


def _job(row: Mapping[str, Any], thresholds: Sequence[int]) -> dict[str, Any]:
    return {
        "job": row["job"],
        "start": _whole(row["start_us"] / SECOND),
        "end": _whole(row["end_us"] / SECOND),
        **{name: row[name] for name in FACTS},
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
            str(threshold): {name: row[metric_column(direction, name, threshold)] for name in names}
            for threshold in thresholds
        },
    }


def machine(store: Path, report: MachineReport) -> str:
    """Return the machine-wide numbers."""
    fleet = report.fleet
    body = {
        "settings": settings(report.metrics.settings),
        "machine": _machine(fleet),
        "eighty_percent": [
            {"measure": row.measure, "threshold": row.threshold, **row.values}
            for row in fleet.eighty
        ],
        "users": [_mover(mover) for mover in fleet.users],
        "accounts": [_mover(mover) for mover in fleet.accounts],
        "servers": _servers(report.load),
        "profile": _profile(report.profile),
        "trend": _trend(report.trend),
        "interference": [_disturbance(pair) for pair in report.interference],
        "contacts": [asdict(contact) for contact in report.contacts],
        "busiest": fleet.busiest["job"].to_list(),
        "flagged": fleet.flagged["job"].to_list(),
    }
    return _document([store], report.warnings, body)


def _machine(fleet: Fleet) -> dict[str, Any]:
    return {
        "jobs": fleet.jobs,
        "listed_jobs": fleet.listed,
        "start": fleet.start_us / SECOND,
        "end": fleet.end_us / SECOND,
        "flags": fleet.flags,
        "attribution": {"jobs": fleet.attributions, "shared_bytes": fleet.split},
        "dominance": {"write_share": fleet.write_share, "sentence": dominance(fleet)},
        **{direction: _totals(totals) for direction, totals in fleet.totals.items()},
    }


def _totals(totals: DirectionTotals) -> dict[str, Any]:
    return {
        "bytes": totals.bytes,
        **{part: getattr(totals, part) for part in PARTS},
        "measured": totals.measured,
        "outside_job_list": totals.outside,
        "operations": totals.operations,
        "small_requests": {
            "limit": SMALL_REQUEST,
            "share": totals.small_share,
            "by_mean_size": [asdict(size) for size in totals.sizes],
        },
        "top_20_share": totals.top_share,
        "highest": totals.highest,
        "eighty_percent": totals.eighty,
    }


def _mover(mover: Mover) -> dict[str, Any]:
    return {
        "name": mover.name,
        "jobs": mover.jobs,
        **mover.bytes,
        "shared": mover.shared,
        "seconds": mover.seconds,
    }


def _servers(load: MachineLoad) -> list[dict[str, Any]]:
    return [
        {
            "name": server,
            **{
                direction: {
                    "bytes": float(load.moved[place, number]),
                    **dict(zip(PARTS, load.parts[:, place, number].tolist(), strict=True)),
                }
                for place, direction in enumerate(DIRECTIONS)
            },
        }
        for number, server in enumerate(load.servers)
    ]


def _profile(profile: Profile) -> dict[str, Any]:
    """Return bytes per second: seven weekdays from Monday, 24 hours each."""
    return {
        "timezone": profile.timezone,
        **{
            direction: [
                [None if math.isnan(rate) else rate for rate in day] for day in table.tolist()
            ]
            for direction, table in zip(DIRECTIONS, profile.rates, strict=True)
        },
    }


def _trend(monthly: Trend) -> dict[str, Any]:
    return {
        "months": [
            {"month": month.month, "days": month.days, **month.bytes, "change": month.change}
            for month in monthly.months
        ],
        "compared": monthly.compared,
        "accounts": [asdict(change) for change in monthly.accounts],
    }


def _disturbance(pair: Disturbance) -> dict[str, Any]:
    def who(application: Application) -> dict[str, Any]:
        return {"user": application.user, "name": application.name, "jobs": application.jobs}

    return {
        "application": who(pair.application),
        "neighbour": who(pair.neighbour),
        "measure": pair.measure,
        "slowdown": pair.slowdown,
        "observations": {"beside": pair.beside, "quiet": pair.quiet},
        "hours_beside": pair.hours,
        "probability": pair.probability,
        "adjusted_probability": pair.adjusted,
        "certain": pair.certain,
    }


def validation(checked: Validation) -> str:
    """Return how measured and true values compare."""
    checks = [{**asdict(check), "passed": check.passed} for check in checked.checks]
    return _document([], [], {"passed": checked.passed, "jobs": checked.jobs, "checks": checks})


def benchmark(checked: BenchmarkResult) -> str:
    """Return what a benchmark moved, and what the counters show of it."""
    body = {
        "passed": checked.passed,
        "compared": bool(checked.findings),
        "host": checked.host,
        "record": str(checked.record),
        "servers": list(checked.servers),
        "phases": [asdict(phase) for phase in checked.phases],
        "findings": [
            {"found": one.shown, "ratio": one.ratio, "passed": one.passed}
            for one in checked.findings
        ],
    }
    return _document([checked.record], [], body)


def _whole(value: float | None) -> float | None:
    """Show a whole number as one."""
    return int(value) if value is not None and value == int(value) else value
