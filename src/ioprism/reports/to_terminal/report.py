"""What `ioprism report` tells a person at a terminal: the same story as the page, in 80 columns."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.model.quantities import label, quantity
from ioprism.model.signal import FloatArray
from ioprism.model.verdict import SERIOUS, Finding
from ioprism.report_steps import Document
from ioprism.reports.to_terminal import facts, heading, name
from ioprism.reports.to_terminal.causes import headline, show_causes
from ioprism.reports.to_terminal.history import show_history
from ioprism.reports.to_terminal.plot import bars
from ioprism.reports.wording import first_advice, job_facts
from ioprism.units import format_bytes, format_counted, format_seconds
from ioprism.views.picture.timeline import Timeline

WIDTH, ROWS = 72, 4
MOST_FINDINGS = 8
EVIDENCE = 4  # numbers of each finding


def plain_console() -> Console:
    """Return a terminal where names cannot style anything."""
    return Console(highlight=False, emoji=False, markup=False)


def show(document: Document, console: Console) -> None:
    """Print the verdict, the findings, when it happened, and where it went."""
    heading(console, document.verdict.line)
    advice = first_advice(document.verdict)
    if advice and not document.verdict.causes:
        console.print(Text.assemble(("Do first: ", "bold"), advice))
    heading(console, "Job")
    facts(console, [(key, name(text)) for key, text in job_facts(document)])
    _findings(document, console)
    show_history(document.verdict.history, console)
    _pictures(document.timeline, console)
    _files(document, console)


def _findings(document: Document, console: Console) -> None:
    if not document.findings:
        return
    left = show_causes(document.verdict, document.findings, console)
    explained = len(document.findings) - len(left)
    serious = [finding for finding in left if finding.severity in SERIOUS]
    if serious:
        heading(console, "Other findings" if explained else "Findings")
    elif not document.verdict.causes:
        heading(console, "Nothing costs noticeable time")
    for finding in serious[:MOST_FINDINGS]:
        _finding(finding, console)
    others = len(left) - min(len(serious), MOST_FINDINGS)
    if others:
        console.print()
        console.print(Text(f"  {format_counted(others, 'finding')} more on the page", "dim"))


def _finding(finding: Finding, console: Console) -> None:
    console.print()
    console.print(Padding(headline(finding), (0, 0, 0, 2)))
    values = ((key, value) for key, value in finding.evidence.items() if key != "estimated")
    numbers = list(values)[:EVIDENCE]
    line = ", ".join(f"{label(key)} {quantity(key, value)}" for key, value in numbers)
    if line:
        console.print(Padding(Text(line, style="dim", overflow="fold"), (0, 0, 0, 7)))
    for advice in finding.recommendations[:2]:
        console.print(Padding(Text(f"→ {advice.text}"), (0, 0, 0, 7)))


def _pictures(shown: Timeline, console: Console) -> None:
    if shown.source == "counters":  # spans of files do not tell when bytes moved
        return
    for direction, verb in (("read", "read"), ("write", "written")):
        heights = _bytes_moved(shown, direction)
        if not heights.any():
            continue
        heading(console, f"Bytes {verb} over time")
        for row in bars(heights, rows=ROWS):
            console.print(Text(f"  {row}", style="cyan" if direction == "read" else "yellow"))
        left, right = (f"{moment:.4g} s" for moment in (shown.start, shown.end))
        console.print(Text(f"  {left}{right:>{WIDTH - len(left)}}", style="dim"))


def _bytes_moved(shown: Timeline, direction: str) -> FloatArray:
    """Bytes in each column of the picture, at the layers that talk to the system."""
    marks = shown.marks.filter(operation=direction)
    deep = marks.filter(marks["layer"].cast(str).is_in(["posix", "stdio", "daos"]))
    chosen = deep if deep.height else marks
    span = shown.end - shown.start
    if not chosen.height or span <= 0:
        return np.zeros(WIDTH)
    column = ((chosen["start"].to_numpy() - shown.start) / span * WIDTH).astype(int)
    moved = chosen["bytes"].fill_null(0).to_numpy().astype(np.float64)
    sums: FloatArray = np.bincount(np.clip(column, 0, WIDTH - 1), moved, WIDTH).astype(np.float64)
    return sums


def _files(document: Document, console: Console) -> None:
    rows = document.by_file.head(5)
    if not rows.height:
        return
    heading(console, "Where the time goes")
    for row in rows.iter_rows(named=True):
        moved = row["bytes_read"] + row["bytes_written"]
        line = Text.assemble(
            (f"{format_seconds(row['seconds']):>12}  {format_bytes(moved):>9}  ", "dim"),
            name(row["path"]),
            (f"  {row['layer']}", "dim"),
            overflow="fold",
        )
        console.print(Padding(line, (0, 0, 0, 2)))
