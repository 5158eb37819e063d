"""What is behind a finding or bottleneck, and lists of formats, rules and thresholds, printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

import polars as pl
from rich.console import Console
from rich.text import Text

from ioprism.bottleneck_search.find import Inspection
from ioprism.bottleneck_search.result import Bottleneck
from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.rule import Rule
from ioprism.formats.registry import FACTS, Reader, Unavailable
from ioprism.inspection import FindingInspection
from ioprism.model.result import label, quantity
from ioprism.model.verdict import Finding
from ioprism.reports.to_terminal import facts, heading, name, row, table
from ioprism.reports.to_terminal.bottlenecks import record_name
from ioprism.reports.to_terminal.diagnose import STYLES, detail
from ioprism.settings import Thresholds
from ioprism.text import printable
from ioprism.units import format_seconds


def show_inspection(inspection: Inspection | FindingInspection, console: Console) -> None:
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
    for number, one in enumerate(finding.details):
        yield "" if number else "worst", detail(one)
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
        named = name(None if shown is None else str(shown))
        yield row("text seconds count bytes", named, time, round(calls), size)


def _call_rows(calls: pl.DataFrame) -> Iterator[tuple[str | Text, ...]]:
    for call in calls.iter_rows(named=True):
        yield row(
            "text seconds text bytes text", name(call["function"] or call["operation"]),
            call["seconds"], f"{call['start']:.3f} s", call["bytes"],
            Text.assemble(name(call["process"]), "  ", name(call["file"])),
        )  # fmt: skip


def show_formats(known: Sequence[Reader | Unavailable], console: Console) -> None:
    """Print each format with what it can tell, then what the words mean."""
    for reader in known:
        if isinstance(reader, Unavailable):
            heading(console, reader.name)
            facts(console, [("not usable", f"the package {reader.missing} is not installed")])
        else:
            heading(console, f"{reader.name}: {reader.title}")
            recorded = [fact for fact in FACTS if fact in reader.tells]
            missing = [fact for fact in FACTS if fact not in reader.tells]
            facts(
                console,
                [("recorded", ", ".join(recorded)), ("not recorded", ", ".join(missing) or "-")],
            )
    heading(console, "What these terms mean")
    facts(console, FACTS.items())


def show_rules(rules: Iterable[Rule], console: Console) -> None:
    """Print every rule with its level and what other tools call it."""
    heading(console, "Rules of `ioprism insights`")
    rows = [
        (
            rule.code,
            Text(rule.level.value, style=STYLES[rule.level]),
            Text(wording.question(rule.advice, rule.direction)),
            ", ".join(alias.partition(":")[2] for alias in rule.aliases),
        )
        for rule in rules
    ]
    table(console, ("code", "level", "asks", "Drishti"), rows)


def show_thresholds(console: Console) -> None:
    """Print every threshold with its default."""
    heading(console, "Thresholds (change them with `ioprism insights --thresholds FILE.toml`)")
    rows = [
        (limit.name, f"{limit.default:.12g} {limit.metadata['unit']}", limit.metadata["meaning"])
        for limit in fields(Thresholds)
    ]
    table(console, ("name", "default", "meaning"), rows)
