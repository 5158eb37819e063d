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
from ioprism.servers.fleet import Contact, Fleet, Mover, Profile
from ioprism.servers.job_metrics import FLAGS, JobMetrics, metric_column
from ioprism.servers.raw_files import IngestedFile
from ioprism.servers.steps import MachineReport
from ioprism.servers.validation import BenchmarkResult, Validation
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

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


LEAST = ("flags", "max read", "max write", "P r/w", "ρ r/w", "I r/w")
LEGEND = (
    "I: share of the time with I/O; ρ: burstiness (0: I/O never pauses); P: parallel intensity "
    "(0: one server at a time, 1: all at once)"
)


def show_jobs(metrics: JobMetrics, console: Console) -> None:
    """Print the jobs that moved most."""
    heading(console, f"Jobs ({format_count(metrics.table.height)})")
    lowest = metrics.settings.thresholds[0]
    ordered = metrics.table.sort(
        metrics.table["read_bytes"].fill_null(0) + metrics.table["write_bytes"].fill_null(0),
        descending=True,
    )
    columns = (
        "job",
        "read",
        "written",
        "max read",
        "max write",
        "I r/w",
        "ρ r/w",
        "P r/w",
        "flags",
    )
    rows = [_job_row(row, lowest) for row in ordered.head(SHOWN).iter_rows(named=True)]
    table(console, columns, rows, least=LEAST)
    prose(console, LEGEND, style="dim", indent=2)
    rest = metrics.table.height - SHOWN
    if rest > 0:
        console.print(f"\n  … and {format_count(rest)} more: --json or --export shows all.")
    console.print()
    for said in documents.attribution(metrics.attributions, metrics.split):
        prose(console, said, indent=2)


def _job_row(row: Mapping[str, Any], threshold: int) -> tuple[str | Text, ...]:
    pairs = [
        "/".join(_share(row[metric_column(d, measure, threshold)]) for d in DIRECTIONS)
        for measure in MEASURE_NAMES
    ]
    return (
        name(row["job"]),
        *(format_bytes(row[f"{d}_bytes"]) for d in DIRECTIONS),
        *(format_rate(row[f"{d}_max_bandwidth"]) for d in DIRECTIONS),
        *pairs,
        " ".join(flag for flag in FLAGS if row[flag]),
    )


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
    table(console, ("", *(f"c = {format_bytes(c)}" for c in metrics.settings.thresholds)),
          _eighty_rows(fleet, metrics.settings.thresholds))  # fmt: skip
    for title, movers in (("Users", fleet.users), ("Accounts", fleet.accounts)):
        shared = f" (shared bytes split {fleet.split})" if fleet.flags["shared"] else ""
        heading(console, f"{title} that move most{shared}")
        table(console, ("", "jobs", "read", "written", "run time"), [_mover(m) for m in movers[:8]])
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
    console.print(f"  {documents.interference(report.interference)}")
    for pair in report.interference[:SLOWED]:
        console.print(name(f"  {documents.disturbance(pair)}"))
    if report.contacts:
        heading(console, "Whom to contact")
        columns = ("user", "why", "jobs", "job-hours", "hours at stake")
        table(console, columns, [_contact(one) for one in report.contacts[:8]])


def _contact(person: Contact) -> tuple[str | Text, ...]:
    hours = (f"{person.job_hours:,.1f}", f"{person.hours_at_stake:,.1f}")
    return (name(person.user), documents.contact(person), format_count(person.jobs), *hours)


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
        ("from", f"{_moment(fleet.start_us)} to {_moment(fleet.end_us)}"),
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


def _eighty_rows(fleet: Fleet, thresholds: Sequence[int]) -> list[tuple[str, ...]]:
    cells = {
        (row.measure, row.threshold): " / ".join(_share(row.values[d]) for d in DIRECTIONS)
        for row in fleet.eighty
    }
    return [
        (title, *(cells[measure, threshold] for threshold in thresholds))
        for measure, title in MEASURE_NAMES.items()
    ]


def _mover(mover: Mover) -> tuple[str | Text, ...]:
    amounts = (format_bytes(mover.bytes[direction]) for direction in DIRECTIONS)
    return (name(mover.name), format_count(mover.jobs), *amounts, format_seconds(mover.seconds))


def _moment(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")


def show_validation(checked: Validation, console: Console) -> None:
    """Print how measured and true values compare."""
    heading(console, f"{format_count(checked.jobs)} simulated jobs: measured against true")
    rows = [
        (
            check.name,
            f"{check.p1:.4f}",
            f"{check.median:.4f}",
            f"{check.p99:.4f}",
            f"{check.low:g} to {check.high:g}",
            "within" if check.passed else "OUTSIDE",
        )
        for check in checked.checks
    ]
    table(console, ("", "1 %", "median", "99 %", "expected median", ""), rows)


def show_benchmark(checked: BenchmarkResult, console: Console) -> None:
    """Print what a benchmark moved, what counters show of it, and what to do next."""
    heading(console, f"Benchmark on {checked.host}")
    shown = {one.phase: one for one in checked.findings}
    rows = [
        (
            phase.direction,
            _moment(round(phase.start * SECOND)),
            format_seconds(phase.end - phase.start),
            format_bytes(phase.bytes),
            *((format_bytes(shown[phase].shown), f"{shown[phase].ratio:.3f}",
               "within" if shown[phase].passed else "OUTSIDE") if shown else ()),
        )
        for phase in checked.phases
    ]  # fmt: skip
    compared = ("in the counters", "ratio", "") if shown else ()
    table(console, ("", "began", "took", "moved", *compared), rows)
    if not shown:
        command = f"ioprism servers validate --record {checked.record} --store STORE"
        console.print(
            f"  noted in {checked.record}; once counters of this time are ingested: {command}"
        )
