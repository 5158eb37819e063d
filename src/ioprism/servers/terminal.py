"""What `ioprism servers` shows a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.reports.to_terminal import facts, heading, name, prose, table
from ioprism.servers import documents
from ioprism.servers.documents import REASONS
from ioprism.servers.fleet import Fleet, Mover, Profile
from ioprism.servers.interference import MIN_SLOWDOWN
from ioprism.servers.job_metrics import FLAGS, JobMetrics, metric_column
from ioprism.servers.raw_files import IngestedFile
from ioprism.servers.steps import MachineReport
from ioprism.servers.validation import BenchmarkResult
from ioprism.units import (
    HOUR,
    column_unit,
    format_bytes,
    format_count,
    format_number,
    format_rate,
    format_seconds,
)

SHOWN = 20
SLOWED = 5
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MEASURE_NAMES = {
    "intensity": "I/O intensity",
    "burstiness": "burstiness",
    "parallel_intensity": "parallel intensity",
}
FLAG_MEANINGS = {
    "shared": "another job used a server meanwhile: its activity may be the other's",
    "gap": "counters are missing for more than a twentieth of the job",
    "reset": "counters were reset during the job",
    "missing": "some of its servers have no counters at all",
}


def show_ingested(outcomes: Sequence[IngestedFile], console: Console) -> None:
    """Print what became of each raw file."""
    new = [outcome for outcome in outcomes if not outcome.known and outcome.format]
    facts(
        console,
        [
            ("files read", format_count(len(new))),
            ("files known", format_count(sum(outcome.known for outcome in outcomes))),
            ("records", format_count(sum(outcome.records for outcome in new))),
        ],
    )
    for outcome in outcomes:
        for warning in outcome.warnings:
            console.print(Text.assemble(("  ", ""), name(f"{outcome.path}: {warning}")))


LEGEND = (
    "r/w: read/written. intensity: share of the time with I/O; burstiness: 0 if I/O never pauses, "
    "near 1 for short bursts, 1 without I/O; parallel: 0 for one server at a time, 1 for all"
)


def show_jobs(metrics: JobMetrics, console: Console) -> None:
    """Print the jobs that moved most."""
    heading(console, f"Jobs ({format_count(metrics.table.height)})")
    lowest = metrics.settings.thresholds[0]
    ordered = metrics.table.sort(
        metrics.table["read_bytes"].fill_null(0) + metrics.table["write_bytes"].fill_null(0),
        descending=True,
    )
    shown = ordered.head(SHOWN).rows(named=True)
    unit, moved = _in_one_unit(shown, "read_bytes", "write_bytes")
    rate_unit, rates = _in_one_unit(shown, "read_max_bandwidth", "write_max_bandwidth")
    peaks = tuple(f"max {direction} ({rate_unit}/s)" for direction in DIRECTIONS)
    pairs = tuple(f"{title} r/w" for title in ("intensity", "burstiness", "parallel"))
    columns = ("job", "user", f"read ({unit})", f"written ({unit})", *peaks, *pairs, "flags")
    rows = [_job_row(*cells, lowest) for cells in zip(shown, moved, rates, strict=True)]
    table(console, columns, rows, least=(*peaks, "user", *reversed(pairs), "flags"))
    prose(console, LEGEND, style="dim", indent=2)
    for flag in (flag for flag in FLAGS if any(row[flag] for row in shown)):
        prose(console, f"{flag}: {FLAG_MEANINGS[flag]}", style="dim", indent=2)
    rest = metrics.table.height - SHOWN
    if rest > 0:
        console.print(f"\n  … and {format_count(rest)} more: --json or --export shows all.")
    console.print()
    for said in documents.attribution(metrics.attributions, metrics.split):
        prose(console, said, indent=2)


def _in_one_unit(rows: Sequence[Mapping[str, Any]], *keys: str) -> tuple[str, list[list[str]]]:
    """Return one unit for some columns of sizes, and their cells of each row."""
    unit, size = column_unit(row[key] for row in rows for key in keys)
    values = [[row[key] for key in keys] for row in rows]
    return unit, [
        ["unknown" if value is None else format_number(value / size) for value in row]
        for row in values
    ]


def _job_row(
    row: Mapping[str, Any], moved: Sequence[str], rates: Sequence[str], threshold: int
) -> tuple[str | Text, ...]:
    pairs = [
        "/".join(_share(row[metric_column(d, measure, threshold)]) for d in DIRECTIONS)
        for measure in MEASURE_NAMES
    ]
    flags = " ".join(flag for flag in FLAGS if row[flag])
    return (name(row["job"]), name(row["user"]), *moved, *rates, *pairs, flags)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def show_machine(report: MachineReport, console: Console) -> None:
    """Print the machine."""
    fleet, metrics = report.fleet, report.metrics
    heading(console, "Machine")
    console.print(f"  {documents.dominance(fleet)}")
    facts(console, _machine_facts(fleet, metrics))
    facts(console, [("", said) for said in documents.attribution(fleet.attributions, fleet.split)])
    heading(console, "80 % of jobs stay at or below (read / write)")
    thresholds = metrics.settings.thresholds
    cells = {
        (row.measure, row.threshold): " / ".join(_share(row.values[d]) for d in DIRECTIONS)
        for row in fleet.eighty
    }
    rows = [
        (title, *(cells[measure, threshold] for threshold in thresholds))
        for measure, title in MEASURE_NAMES.items()
    ]
    table(console, ("", *(f"above {format_bytes(c)}" for c in thresholds)), rows)
    step = format_seconds(metrics.settings.interval_us / SECOND)
    prose(console, f"above: what a server must move in {step} to count as active",
          style="dim", indent=2)  # fmt: skip
    for title, movers in (("Users", fleet.users), ("Accounts", fleet.accounts)):
        shared = f" (shared bytes split {fleet.split})" if fleet.flags["shared"] else ""
        heading(console, f"{title} that move most{shared}")
        _show_movers(movers[:8], console)
    _show_questions(report, console)
    flagged = [(flag, count) for flag, count in fleet.flags.items() if count]
    if flagged:
        heading(console, f"Flagged jobs ({format_count(fleet.flagged.height)})")
        facts(console, [(f"{format_count(n)} {flag}", FLAG_MEANINGS[flag]) for flag, n in flagged])


def _show_questions(report: MachineReport, console: Console) -> None:
    """Print what administrators ask."""
    heading(console, "When it is busy")
    facts(
        console,
        [(f"{d}, busiest hour", _busiest(report.profile, n)) for n, d in enumerate(DIRECTIONS)],
    )
    console.print(f"  {documents.change(report.trend)}")
    heading(console, "Interference")
    prose(console, documents.interference(report.interference), indent=2)
    slowed = [pair for pair in report.interference if pair.slowdown > MIN_SLOWDOWN]
    for pair in slowed[:SLOWED]:
        prose(console, name(documents.disturbance(pair)), indent=2)
    if report.contacts:
        heading(console, "Whom to contact")
        columns = ("user", "why", "jobs", "run time (h)", "affected (h)")
        rows = [
            (
                name(person.user),
                REASONS[person.reason],
                format_count(person.jobs),
                format_number(person.job_hours),
                format_number(person.hours_at_stake),
            )
            for person in report.contacts[:8]
        ]
        table(console, columns, rows)


def _busiest(profile: Profile, number: int) -> str:
    rates = np.nan_to_num(profile.rates[number])
    if not rates.any():
        return "nothing moved"
    day, hour = divmod(int(np.argmax(rates)), 24)
    ratio = rates.max() / np.nanmean(profile.rates[number])
    rate = format_rate(float(rates.max()))
    return f"{DAYS[day]} {hour:02d}:00 {profile.timezone}, {rate}, {ratio:.1f} times the mean"


def _machine_facts(fleet: Fleet, metrics: JobMetrics) -> list[tuple[str, str]]:
    rows = [
        ("counters", f"{_moment(fleet.start_us)} to {_moment(fleet.end_us)}"),
        ("jobs", format_count(fleet.jobs)),
        ("sampled every", format_seconds(metrics.settings.interval_us / SECOND)),
    ]
    for direction, totals in fleet.totals.items():
        share = (
            "" if totals.top_share is None else f", {totals.top_share:.1%} by the top 20 % of jobs"
        )
        rows.append((f"{direction} volume", f"{format_bytes(totals.bytes)}{share}"))
        rows.append(("", documents.whose(totals)))
        rows.append((f"small {direction}s", documents.small_requests(totals)))
        highest, eighty = totals.highest["max_bandwidth"], totals.eighty["max_bandwidth"]
        peak = f"{format_rate(highest)} by one job; 80 % of jobs up to {format_rate(eighty)}"
        rows.append((f"{direction} peak", peak))
    return rows


def _show_movers(movers: Sequence[Mover], console: Console) -> None:
    unit, moved = _in_one_unit([mover.bytes for mover in movers], *DIRECTIONS)
    rows: list[tuple[str | Text, ...]] = [
        (name(mover.name), format_count(mover.jobs), *amounts, format_number(mover.seconds / HOUR))
        for mover, amounts in zip(movers, moved, strict=True)
    ]
    table(console, ("", "jobs", f"read ({unit})", f"written ({unit})", "run time (h)"), rows)


def _moment(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")


def show_benchmark(result: BenchmarkResult, console: Console) -> None:
    """Print what a benchmark moved, what counters show of it, and what to do next."""
    heading(console, f"Benchmark on {result.host}")
    shown: list[tuple[str, ...]] = [
        (format_bytes(one.shown), f"{one.ratio:.3f}", "within" if one.passed else "OUTSIDE")
        for one in result.findings
    ] or [()] * len(result.phases)
    rows = [
        (
            phase.direction,
            _moment(round(phase.start * SECOND)),
            format_seconds(phase.end - phase.start),
            format_bytes(phase.bytes),
            *cells,
        )
        for phase, cells in zip(result.phases, shown, strict=True)
    ]
    compared = ("in the counters", "ratio", "") if result.findings else ()
    table(console, ("", "began", "took", "moved", *compared), rows)
    if not result.findings:
        command = f"ioprism servers validate --record {result.record} --store STORE"
        console.print(
            f"  noted in {result.record}; once counters of this time are ingested: {command}"
        )
