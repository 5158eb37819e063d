"""The JSON of `ioprism servers`, and the sentences that terminal, JSON and page share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.model.result import pick
from ioprism.reports import to_json
from ioprism.servers.fleet import SMALL_REQUEST, DirectionTotals, Fleet, Mover, Profile, Trend
from ioprism.servers.interference import Application, Disturbance
from ioprism.servers.job_metrics import FLAGS, MEASURES, JobMetrics, metric_column
from ioprism.servers.limits import DOMINANT, SIGNIFICANCE
from ioprism.servers.load import PARTS, MachineLoad
from ioprism.servers.raw_files import IngestedFile
from ioprism.servers.series import MetricSettings
from ioprism.servers.steps import MachineReport
from ioprism.servers.validation import BenchmarkResult
from ioprism.units import format_bytes, format_count, format_counted

REASONS = {
    "small_requests": f"requests smaller than {format_bytes(SMALL_REQUEST)} on average",
    "one_server_at_a_time": "uses only one of its servers at a time",
    "disturbs_others": "slows others down on the same servers",
}
KNOWN_AS = {
    "exclusive": "without others on the same servers",
    "measured": "counted by the servers themselves",
    "split": "on shared servers: bytes are split {split}, intensities are those of the servers",
    "marked": "on shared servers: those bytes are not attributed",
    "unknown": "without a server that has counters",
}


def dominance(fleet: Fleet) -> str:
    """Say whether the machine mostly reads or writes."""
    share = fleet.write_share
    if share is None:
        return "Nothing was read or written."
    if 1 - DOMINANT < share < DOMINANT:
        return f"Reads and writes are balanced: {share:.0%} of the bytes are written."
    direction, part = ("Write", share) if share >= DOMINANT else ("Read", 1 - share)
    verb = "written" if direction == "Write" else "read"
    return f"{direction}-dominated: {part:.0%} of the bytes are {verb}."


def whose(totals: DirectionTotals) -> str:
    """Say how much of the bytes belongs to whom; the three numbers add up."""
    return (
        f"{format_bytes(totals.attributed)} attributed, {format_bytes(totals.shared)} shared, "
        f"{format_bytes(totals.unattributed)} unattributed"
    )


def small_requests(totals: DirectionTotals) -> str:
    """Say how many requests are small."""
    if totals.small_share is None:
        return "operations are not counted"
    limit = format_bytes(SMALL_REQUEST)
    return f"{totals.small_share:.0%} of operations (in steps with a mean below {limit})"


def attribution(counts: Mapping[str, int], split: str) -> list[str]:
    """Say how the jobs' bytes are known, and how shared ones were split."""
    return [
        f"{format_counted(count, 'job')} {KNOWN_AS[name].format(split=split)}"
        for name, count in counts.items()
        if count
    ]


def change(monthly: Trend) -> str:
    """Say how the last month compares with the one before."""
    if monthly.compared is None:
        return "Fewer than two months with a week of counters: no trend."
    month = next(month for month in monthly.months if month.month == monthly.compared[1])
    words = [
        f"{direction} {value:+.0%}"
        for direction, value in month.change.items()
        if value is not None
    ]
    return (
        f"Bytes per day, {monthly.compared[1]} against {monthly.compared[0]}: {', '.join(words)}."
    )


def who(application: Application) -> str:
    """Name an application."""
    return f"{application.name or 'unnamed'} ({application.user or 'unknown'})"


def disturbance(pair: Disturbance) -> str:
    """Say how fast one application is beside another."""
    task = "" if pair.measure == "run_time" else " to move the same data"
    how = f"takes {pair.slowdown:.2f} times as long{task}"
    sure = (
        f"p = {pair.adjusted:.2g}" if pair.certain else f"may be chance (p = {pair.adjusted:.2g})"
    )
    return f"{who(pair.application)} {how} beside {who(pair.neighbour)}; {sure}"


def interference(pairs: tuple[Disturbance, ...]) -> str:
    """Say what was looked at, and with which test."""
    if not pairs:
        return "No two applications met on the same servers often enough to compare."
    certain = sum(pair.certain for pair in pairs)
    many = f"{format_counted(len(pairs), 'pair')} of applications"
    test = f"rank-sum test, Holm's correction, level {SIGNIFICANCE:g}"
    return f"{many} compared, {format_count(certain)} slower than chance explains ({test})."


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
            **pick(outcome, "records", "known", "warnings"),
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
        **pick(totals, "bytes", *PARTS, "measured", "operations"),
        "outside_job_list": totals.outside,
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
    return {**pick(mover, "name", "jobs"), **mover.bytes, **pick(mover, "shared", "seconds")}


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
            {**pick(month, "month", "days"), **month.bytes, "change": month.change}
            for month in monthly.months
        ],
        "compared": monthly.compared,
        "accounts": [asdict(change) for change in monthly.accounts],
    }


def _disturbance(pair: Disturbance) -> dict[str, Any]:
    who = ("user", "name", "jobs")
    return {
        "application": pick(pair.application, *who),
        "neighbour": pick(pair.neighbour, *who),
        **pick(pair, "measure", "slowdown"),
        "observations": pick(pair, "beside", "quiet"),
        "hours_beside": pair.hours,
        "probability": pair.probability,
        "adjusted_probability": pair.adjusted,
        "certain": pair.certain,
    }


def benchmark(checked: BenchmarkResult) -> str:
    """Return what a benchmark moved, and what the counters show of it."""
    body = {
        "passed": checked.passed,
        "compared": bool(checked.findings),
        "record": str(checked.record),
        **pick(checked, "host", "servers", "phases"),
        "findings": [
            {"found": one.shown, "ratio": one.ratio, "passed": one.passed}
            for one in checked.findings
        ],
    }
    return _document([checked.record], [], body)


def _whole(value: float | None) -> float | None:
    """Show a whole number as one."""
    return int(value) if value is not None and value == int(value) else value
