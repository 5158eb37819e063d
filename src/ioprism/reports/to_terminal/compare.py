"""What `ioprism compare` shows a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.comparison.changes import CauseChange, Comparison, Kept, Metric
from ioprism.model.verdict import Finding
from ioprism.reports.comparing import details, metric_row, telling, verdict
from ioprism.reports.to_terminal import heading, table
from ioprism.reports.to_terminal.causes import STYLES
from ioprism.text import printable
from ioprism.units import format_seconds


def show(comparison: Comparison, console: Console) -> None:
    """Print the verdict, the numbers side by side, and what became of the findings."""
    heading(console, verdict(comparison))
    for warning in comparison.warnings:
        console.print(Text.assemble(("  Not comparable: ", "yellow"), printable(warning)))
    for line in details(comparison):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    _causes(console, comparison.causes)
    heading(console, "Numbers")
    table(console, ("", "before", "after", "change"), [_row(m) for m in telling(comparison)])
    _list(console, "Findings that are gone", comparison.gone)
    _list(console, "New findings", comparison.new)
    if comparison.kept:
        heading(console, "Findings that stay")
        for pair in comparison.kept:
            console.print(Padding(_stays(pair), (0, 0, 0, 2)))


def _causes(console: Console, causes: Sequence[CauseChange]) -> None:
    if not causes:
        return
    heading(console, "Causes and their potential saving")
    rows = [
        (
            printable(cause.title or cause.code),
            format_seconds(cause.before),
            Text(format_seconds(cause.after), style="green" if cause.removed else ""),
        )
        for cause in causes
    ]
    table(console, ("", "before", "after"), rows)


def _row(metric: Metric) -> tuple[str | Text, ...]:
    name, before, after, change = metric_row(metric)
    style = {True: "green", False: "red", None: ""}[metric.better]
    return name, before, after, Text(change, style=style)


def _list(console: Console, title: str, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    heading(console, title)
    for finding in findings:
        stake = finding.seconds_at_stake
        time = f"  {format_seconds(stake)} at stake" if stake else ""
        console.print(Padding(_line(finding, time), (0, 0, 0, 2)))


def _stays(pair: Kept) -> Text:
    before, after = pair.before.seconds_at_stake, pair.after.seconds_at_stake
    if before is None or after is None:
        return _line(pair.after, "")
    return _line(pair.after, f"  {format_seconds(before)} → {format_seconds(after)}")


def _line(finding: Finding, time: str) -> Text:
    return Text.assemble(
        (finding.severity.value.upper().ljust(5), STYLES[finding.severity]),
        printable(finding.title),
        (time, "bold"),
        overflow="fold",
    )
