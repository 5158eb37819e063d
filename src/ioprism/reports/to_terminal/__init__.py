"""Results for a person at a terminal: readable in 80 columns, safe whatever names say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.text import harmless, printable


def name(text: str | None, *, style: str = "") -> Text:
    """Return a name from a trace as text that can neither style nor steer the terminal."""
    return Text("unknown" if text is None else printable(text), style=style, overflow="fold")


def heading(console: Console, title: str) -> None:
    """Print a section's title."""
    console.print()
    console.print(Text(printable(title), style="bold"))


def facts(console: Console, rows: Iterable[tuple[str, str | Text]]) -> None:
    """Print pairs of a label and a value."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0)
    for label, value in listed:
        text = value if isinstance(value, Text) else Text(harmless(value))
        lines = text.wrap(console, max(1, console.width - width - 4), overflow="fold")
        for number, line in enumerate(lines):
            before = "" if number else label
            console.print(Text.assemble("  ", (before.ljust(width), "dim"), "  ", line))


def table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print a table whose first column is a name and whose others are numbers."""
    from rich.table import Table  # a sixth of what a short answer costs

    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for number, title in enumerate(columns):
        grid.add_column(
            Text(title), justify="right" if number and title else "left", overflow="fold"
        )
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(harmless(cell)) for cell in row))
    console.print(Padding(grid, (0, 0, 0, 2)))


def warnings(console: Console, messages: Iterable[str]) -> None:
    """Print what is missing from the answer."""
    for message in messages:
        console.print(Text.assemble(("warning: ", "yellow"), printable(message)))
