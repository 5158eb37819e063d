"""What `ioprism insights` shows a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.model.finding import Finding, Severity
from ioprism.model.quantities import label, quantity
from ioprism.model.trace import Job
from ioprism.reports.to_terminal import facts, heading, name, table
from ioprism.reports.wording import held_up
from ioprism.rules.registry import Insights, NotChecked
from ioprism.text import printable
from ioprism.units import format_count, format_counted, format_seconds

STYLES = {
    Severity.HIGH: "bold red",
    Severity.WARN: "yellow",
    Severity.INFO: "cyan",
    Severity.OK: "green",
}
SERIOUS = (Severity.HIGH, Severity.WARN)
DETAILS = 3  # worst files or ranks of each finding; all with --all


def show(insights: Insights, job: Job, console: Console, *, everything: bool) -> None:
    """Print what is wrong with what to do about it, then what else is worth knowing."""
    if (opening := held_up(insights.slowest, job.runtime)) is not None:
        console.print(Text(f"{opening}.", "bold"))
    heading(console, "Job")
    facts(console, _job_facts(job))
    serious = [f for f in insights.findings if f.severity in SERIOUS]
    others = [f for f in insights.findings if f.severity not in SERIOUS]
    heading(console, "Findings" if serious else "No findings")
    for finding in serious:
        _show_finding(finding, console, everything=everything)
    if others:
        heading(console, "Also worth knowing")
        for finding in others:
            if everything:
                _show_finding(finding, console, everything=True)
            else:
                console.print(Padding(_headline(finding), (0, 0, 0, 2)))
    _show_unchecked(insights.not_checked, console, everything=everything)


def _job_facts(job: Job) -> list[tuple[str, str | Text]]:
    return [
        ("program", name(job.executable)),
        ("ran for", format_seconds(job.runtime)),
        ("ranks", format_count(job.ranks)),
    ]


def _headline(finding: Finding) -> Text:
    stake = finding.seconds_at_stake
    about = "about " if finding.evidence.get("estimated") else ""
    costs = stake and finding.severity in SERIOUS
    time = f"  ({about}{format_seconds(stake)} at stake)" if costs else ""
    return Text.assemble(
        (finding.severity.value.upper().ljust(5), STYLES[finding.severity]),
        printable(finding.title),
        (time, "bold"),
        (f"  [{finding.code}]", "dim"),
    )


def _show_finding(finding: Finding, console: Console, *, everything: bool) -> None:
    console.print()
    console.print(Padding(_headline(finding), (0, 0, 0, 2)))
    rows = finding.details if everything else finding.details[:DETAILS]
    for row in rows:
        console.print(Padding(detail(row), (0, 0, 0, 9)))
    left = len(finding.details) - len(rows)
    if left:
        console.print(Padding(Text(f"… and {left} more (--all shows them)", "dim"), (0, 0, 0, 9)))
    for advice in finding.recommendations:
        console.print(Padding(Text.assemble(("→ ", "bold"), advice.text), (0, 0, 0, 7)))
        if advice.snippet and everything:
            console.print(Padding(Text(advice.snippet, style="dim"), (0, 0, 0, 11)))


def detail(row: Mapping[str, object]) -> Text:
    """Return what a finding says of one file, rank or phase."""
    parts = [
        f"{label(key)} {quantity(key, value)}" for key, value in row.items() if value is not None
    ]
    return Text(", ".join(parts), style="dim", overflow="fold")


def _show_unchecked(unchecked: Sequence[NotChecked], console: Console, *, everything: bool) -> None:
    if not unchecked:
        return
    by_need: dict[str, list[str]] = {}
    for one in unchecked:
        by_need.setdefault(one.needs, []).append(one.code)
    heading(console, f"Not checked: {format_counted(len(unchecked), 'rule')}")
    for needs, codes in by_need.items():
        shown = codes if everything else codes[:3]
        more = f" and {len(codes) - len(shown)} more" if len(codes) > len(shown) else ""
        console.print(Padding(Text(f"{', '.join(shown)}{more}: needs {needs}"), (0, 0, 0, 2)))


def show_jobs(
    jobs: Iterable[tuple[Sequence[Path], Job, Insights]], console: Console, *, everything: bool
) -> None:
    """Print a table of jobs and codes: which findings come up where, and how seriously."""
    listed = list(jobs)
    tally: dict[str, dict[Severity, int]] = {}
    for _, _, insights in listed:
        for finding in insights.findings:
            counts = tally.setdefault(finding.code, {})
            counts[finding.severity] = counts.get(finding.severity, 0) + 1
    heading(console, f"{format_counted(len(listed), 'job')}")
    codes = sorted(tally, key=lambda code: [-tally[code].get(level, 0) for level in Severity])
    columns = ("code", *(level.value for level in Severity))
    rows = [
        (code, *(format_count(n) if (n := tally[code].get(level, 0)) else "" for level in Severity))
        for code in codes
    ]
    table(console, columns, rows)
    heading(console, "Job by job")
    table(console, ("log", "ranks", "ran for", "high", "warn", ""), _job_rows(listed, everything))


def _job_rows(
    jobs: Sequence[tuple[Sequence[Path], Job, Insights]], everything: bool
) -> Iterable[Sequence[str | Text]]:
    for paths, job, insights in jobs:
        high = [f.code for f in insights.findings if f.severity is Severity.HIGH]
        warn = [f.code for f in insights.findings if f.severity is Severity.WARN]
        if not (high or everything):
            continue
        yield (
            name(paths[0].name if paths else None),
            format_count(job.ranks),
            format_seconds(job.runtime),
            str(len(high)),
            str(len(warn)),
            Text(" ".join(high)),
        )
