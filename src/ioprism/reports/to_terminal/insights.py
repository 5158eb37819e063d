"""What `ioprism insights` shows a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.diagnosis.rules.registry import Insights
from ioprism.model.quantities import label, quantity
from ioprism.model.trace import Job
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Severity
from ioprism.reports.to_terminal import heading, name, table
from ioprism.reports.to_terminal.causes import headline, show_causes
from ioprism.reports.to_terminal.diagnose import job_line
from ioprism.reports.to_terminal.history import show_history
from ioprism.units import format_count, format_counted, format_seconds

DETAILS = 3  # worst files or ranks of each finding; all with --all


def show(
    insights: Insights, job: Job, console: Console, *, everything: bool, paths: Sequence[Path] = ()
) -> None:
    """Print the verdict, the causes with their findings, then everything else."""
    console.print(Text(job_line(job, paths), "dim"))
    console.print(Text(insights.verdict.line, "bold"))

    def details(finding: Finding) -> None:
        _show_details(finding, console, everything=everything, advice=everything)

    left = show_causes(insights.verdict, insights.findings, console, details=details)
    show_history(insights.verdict.history, console)
    serious = [f for f in left if f.severity in SERIOUS]
    others = [f for f in left if f.severity not in SERIOUS]
    explained = len(left) < len(insights.findings)
    _show_serious(serious, console, explained=explained, everything=everything)
    if others:
        heading(console, "Also worth knowing")
        for finding in others:
            console.print(Padding(headline(finding), (0, 0, 0, 2)))
            if everything:
                details(finding)
    _show_unchecked(insights.not_checked, console, everything=everything)


def _show_serious(
    serious: Sequence[Finding], console: Console, *, explained: bool, everything: bool
) -> None:
    if not serious and explained:
        return
    title = "Other findings" if explained else "Findings"
    heading(console, title if serious else "No findings")
    for finding in serious:
        console.print()
        console.print(Padding(headline(finding), (0, 0, 0, 2)))
        _show_details(finding, console, everything=everything, advice=True)


def _show_details(finding: Finding, console: Console, *, everything: bool, advice: bool) -> None:
    rows = finding.details if everything else finding.details[:DETAILS]
    for row in rows:
        console.print(Padding(detail(row), (0, 0, 0, 10)))
    left = len(finding.details) - len(rows)
    if left:
        console.print(Padding(Text(f"… and {left} more (--all shows them)", "dim"), (0, 0, 0, 10)))
    for one in finding.recommendations if advice else ():
        console.print(Padding(Text.assemble(("→ ", "bold"), one.text), (0, 0, 0, 7)))
        if one.snippet and everything:
            console.print(Padding(Text(one.snippet, style="dim"), (0, 0, 0, 11)))


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
    heading(console, format_counted(len(listed), "job"))
    codes = sorted(tally, key=lambda code: [-tally[code].get(level, 0) for level in Severity])
    columns = ("code", *(level.value for level in Severity))
    rows = [
        (code, *(format_count(n) if (n := tally[code].get(level, 0)) else "" for level in Severity))
        for code in codes
    ]
    table(console, columns, rows)
    heading(console, "Job by job")
    columns = ("log", "ranks", "ran for", "I/O stall", "main cause", "saves", "high")
    table(console, columns, _job_rows(listed, everything))


def _job_rows(
    jobs: Sequence[tuple[Sequence[Path], Job, Insights]], everything: bool
) -> Iterable[Sequence[str | Text]]:
    """Jobs with a cause or a grave finding; all of them where everything is asked for."""
    for paths, job, insights in jobs:
        high = [f.code for f in insights.findings if f.severity is Severity.HIGH]
        verdict = insights.verdict
        causes = verdict.causes
        if not (high or causes or everything):
            continue
        yield (
            name(paths[0].name if paths else None),
            format_count(job.ranks),
            format_seconds(job.runtime),
            format_seconds(verdict.io_stall.seconds),
            Text(causes[0].code if causes else ""),
            format_seconds(causes[0].saving.seconds) if causes else "",
            Text(" ".join(high)),
        )
