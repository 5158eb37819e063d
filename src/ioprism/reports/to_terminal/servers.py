"""What `ioprism servers` shows a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from ioprism.analyses.job_metrics.fleet import Fleet, Mover
from ioprism.analyses.job_metrics.result import FLAGS, JobMetrics, column
from ioprism.analyses.job_metrics.validate import Validation
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.pipeline.ingest import Outcome
from ioprism.reports.to_terminal import facts, heading, name, table
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

SHOWN = 20
MEASURE_NAMES = {
    "intensity": "I/O intensity",
    "burstiness": "burstiness",
    "parallel_intensity": "parallel intensity",
}
FLAG_MEANINGS = {
    "shared": "shared a server with another job: its numbers hold both",
    "gap": "samples are missing during the job",
    "reset": "counters were reset during the job",
    "missing": "some of its servers have no counters at all",
}


def show_ingested(outcomes: Sequence[Outcome], console: Console) -> None:
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
            console.print(Text.assemble(("  ", ""), name(f"{outcome.path.name}: {warning}")))


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
    table(console, columns, rows)
    rest = metrics.table.height - SHOWN
    if rest > 0:
        console.print(f"\n  … and {format_count(rest)} more: --json or --export shows all.")


def _job_row(row: Mapping[str, Any], threshold: int) -> tuple[str | Text, ...]:
    pairs = [
        "/".join(_share(row[column(d, measure, threshold)]) for d in DIRECTIONS)
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


def show_machine(found: Fleet, metrics: JobMetrics, console: Console) -> None:
    """Print the machine in one screen."""
    heading(console, "Machine")
    facts(console, _machine_facts(found, metrics))
    heading(console, "80 % of jobs stay at or below (read / write)")
    table(console, ("", *(f"c = {format_bytes(c)}" for c in metrics.settings.thresholds)),
          _eighty_rows(found, metrics.settings.thresholds))  # fmt: skip
    for title, movers in (("Users", found.users), ("Accounts", found.accounts)):
        heading(console, f"{title} that move most")
        table(console, ("", "jobs", "read", "written", "run time"), [_mover(m) for m in movers[:8]])
    flagged = [(flag, count) for flag, count in found.flags.items() if count]
    if flagged:
        heading(console, f"Flagged jobs ({format_count(found.flagged.height)})")
        facts(console, [(f"{format_count(n)} {flag}", FLAG_MEANINGS[flag]) for flag, n in flagged])


def _machine_facts(found: Fleet, metrics: JobMetrics) -> list[tuple[str, str]]:
    rows = [
        ("from", f"{_moment(found.start_us)} to {_moment(found.end_us)}"),
        ("jobs", format_count(found.jobs)),
        ("sampled every", format_seconds(metrics.settings.interval_us / SECOND)),
    ]
    for direction, totals in found.totals.items():
        share = (
            "" if totals.top_share is None else f", {totals.top_share:.1%} by the top 20 % of jobs"
        )
        rows.append((f"{direction} volume", f"{format_bytes(totals.bytes)}{share}"))
        highest, eighty = totals.highest["max_bandwidth"], totals.eighty["max_bandwidth"]
        peak = f"{format_rate(highest)} by one job; 80 % of jobs up to {format_rate(eighty)}"
        rows.append((f"{direction} peak", peak))
    return rows


def _eighty_rows(found: Fleet, thresholds: Sequence[int]) -> list[tuple[str, ...]]:
    cells = {
        (row.measure, row.threshold): " / ".join(_share(row.values[d]) for d in DIRECTIONS)
        for row in found.eighty
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


def show_validation(found: Validation, console: Console) -> None:
    """Print how measured and true values compare."""
    heading(console, f"{format_count(found.jobs)} simulated jobs: measured against true")
    rows = [
        (
            check.name,
            f"{check.p1:.4f}",
            f"{check.median:.4f}",
            f"{check.p99:.4f}",
            f"{check.low:g} to {check.high:g}",
            "within" if check.passed else "OUTSIDE",
        )
        for check in found.checks
    ]
    table(console, ("", "1 %", "median", "99 %", "expected median", ""), rows)
