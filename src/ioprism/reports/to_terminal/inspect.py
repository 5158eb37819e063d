"""What `ioprism inspect` shows a person."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from rich.console import Console
from rich.text import Text

from ioprism.bottleneck_search.inspection import Inspection
from ioprism.bottleneck_search.result import Bottleneck
from ioprism.inspection import FindingInspection
from ioprism.model.quantities import label, quantity
from ioprism.model.verdict import Finding
from ioprism.reports.to_terminal import facts, heading, name, table
from ioprism.reports.to_terminal.bottlenecks import record_name
from ioprism.reports.to_terminal.insights import detail
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_seconds


def show(inspection: Inspection | FindingInspection, console: Console) -> None:
    """Print the bottleneck or finding, its parts from other perspectives, and its longest calls."""
    if isinstance(inspection, Inspection):
        heading(console, f"{inspection.bottleneck.id}: {' → '.join(inspection.bottleneck.view)}")
        facts(console, _bottleneck_facts(inspection.bottleneck))
    else:
        heading(console, f"{inspection.finding.code}: {printable(inspection.finding.title)}")
        facts(console, _finding_facts(inspection.finding))
    for perspective, parts in inspection.parts.items():
        if parts.height > 1 or perspective == "function":
            heading(console, f"By {perspective}")
            table(console, ("", "time", "calls", "bytes"), _part_rows(perspective, parts))
    if inspection.calls.height:
        heading(console, "Longest calls")
        table(console, ("call", "took", "at", "bytes", ""), _call_rows(inspection.calls))


def _finding_facts(finding: Finding) -> Iterator[tuple[str, str | Text]]:
    yield "level", finding.severity.value
    if finding.interface is not None:
        yield "interface", finding.interface
    if finding.seconds_at_stake is not None:
        yield "at stake", format_seconds(finding.seconds_at_stake)
    for evidence, value in finding.evidence.items():
        yield label(evidence), quantity(evidence, value)
    for number, (limit_of, value) in enumerate(finding.threshold.items()):
        yield "" if number else "limits", f"{label(limit_of)} {quantity(limit_of, value)}"
    for number, row in enumerate(finding.details):
        yield "" if number else "worst", detail(row)
    for number, advice in enumerate(finding.recommendations):
        yield "" if number else "advice", advice.text


def _bottleneck_facts(bottleneck: Bottleneck) -> Iterator[tuple[str, str | Text]]:
    yield "record", Text(record_name(bottleneck.record), overflow="fold")
    yield "severity", f"{bottleneck.severity:.1f}° ({bottleneck.label})"
    yield "time", f"{format_seconds(bottleneck.time)}, {bottleneck.job_share:.1%} of the I/O time"
    time, calls = bottleneck.time_share, bottleneck.operations_share
    yield "share of view", f"{time:.2%} of the time, {calls:.2%} of the calls"
    for number, reason in enumerate(bottleneck.reasons):
        yield "" if number else "because", Text(printable(reason.message))
    if not bottleneck.reasons:
        yield "because", "no reason found"


def _part_rows(perspective: str, parts: pl.DataFrame) -> Iterator[tuple[str | Text, ...]]:
    for part, time, calls, size in parts.iter_rows():
        shown = f"from {part:g} s" if perspective == "time" and part is not None else part
        yield (
            name(None if shown is None else str(shown)),
            format_seconds(time),
            format_count(calls),
            format_bytes(size),
        )


def _call_rows(calls: pl.DataFrame) -> Iterator[tuple[str | Text, ...]]:
    for call in calls.iter_rows(named=True):
        yield (
            name(call["function"] or call["operation"]),
            format_seconds(call["seconds"]),
            f"{call['start']:.3f} s",
            "" if call["bytes"] is None else format_bytes(call["bytes"]),
            Text.assemble(name(call["process"]), "  ", name(call["file"])),
        )
