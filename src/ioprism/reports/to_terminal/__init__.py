"""Results for a person at a terminal: readable in 80 columns, safe whatever names say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.model.arrays import FloatArray, Signal
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


BLOCKS = " ▁▂▃▄▅▆▇█"


def columns(signal: Signal, *, width: int) -> FloatArray:
    """Return the highest value in each of `width` equal stretches of a signal."""
    edges = np.linspace(0, len(signal.values), width + 1)
    starts = np.minimum(edges[:-1].astype(int), len(signal.values) - 1)
    return np.maximum.reduceat(signal.values, starts)


def bars(heights: FloatArray, *, rows: int) -> list[str]:
    """Draw heights as columns of blocks, the top row first."""
    highest = float(heights.max()) if len(heights) else 0.0
    eighths = np.zeros(len(heights), int)
    if highest > 0:
        eighths = np.rint(np.maximum(heights, 0.0) / highest * rows * 8).astype(int)
        eighths = np.where((heights > 0) & (eighths == 0), 1, eighths)
    return [
        "".join(BLOCKS[min(8, max(0, e - 8 * row))] for e in eighths)
        for row in range(rows - 1, -1, -1)
    ]


ERROR_COLUMNS = 72
LEVELS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, -0.1, -0.2, -0.3, -0.4, -0.5)


def error_plot(errors: npt.NDArray[np.float64]) -> list[str]:
    """Return one line for each level of error; a dot where a sample lies, # for several."""
    columns = min(ERROR_COLUMNS, len(errors))
    counts = np.zeros((len(LEVELS), columns), dtype=np.int64)
    place = np.arange(len(errors)) * columns // len(errors)
    step = LEVELS[0] - LEVELS[1]
    level = np.clip(np.rint((LEVELS[0] - errors) / step), 0, len(LEVELS) - 1).astype(np.int64)
    np.add.at(counts, (level, place), 1)
    return [
        f"{height:+5.0%} {'┼' if height == 0 else '│'}{_error_row(row, axis=height == 0)}".rstrip()
        for height, row in zip(LEVELS, counts, strict=True)
    ]


def _error_row(counts: npt.NDArray[np.int64], *, axis: bool) -> str:
    empty = "─" if axis else " "
    return "".join(empty if not n else "·" if n == 1 else "•" if n < 4 else "#" for n in counts)
