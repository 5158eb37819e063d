"""Results for a person at a terminal: readable in 80 columns, safe whatever names say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from ioprism.model.arrays import FloatArray, Signal
from ioprism.model.result import in_words
from ioprism.model.trace import Job
from ioprism.text import harmless, printable, shorten
from ioprism.units import format_counted, format_moment, format_seconds

# Stands for a space within a quantity while a text is wrapped; printable names do not hold it.
GLUE = "\ue000"
IN_QUANTITY = re.compile(
    r"(?<=\d) (?=(?:%|(?:[KMGTPE]i)?B(?:/s)?|[KMG]?Hz|[nµm]?s|min|h)(?![\w-]))"
    r"|(?<=\d min) (?=\d\d s)|(?<=\d h) (?=\d\d min)"
)
GAP = 2  # between the columns of a table, and before the first
NARROWEST = 16  # a column of names: below, other columns are left out
LONGEST_NAME = 48  # of a log, in the line about the job
MOST_NAMES = 2
LONG_PATH = re.compile(r"/[^\s,;]{48,}")  # in a sentence, which then shows its last part only
NUMBER = re.compile(r"[-+<~]?\.?\d")
NO_NUMBER = ("", "–", "unknown", "none", "not judged")
PICTURE = 72  # columns of a picture at most


def name(text: str | None, *, style: str = "") -> Text:
    """Return a name from a trace as text that can neither style nor steer the terminal."""
    return Text("unknown" if text is None else printable(text), style=style, overflow="fold")


def brief(sentence: str) -> str:
    """Return a sentence with the last part of each long path only."""
    return LONG_PATH.sub(_last_part, printable(sentence))


def _last_part(path: re.Match[str]) -> str:
    return f"…/{shorten(path[0].rstrip('/').rpartition('/')[2], LONGEST_NAME)}"


def prose(console: Console, text: str | Text, *, style: str = "", indent: int = 0) -> None:
    """Print a text over as many lines as it needs, with quantities in one piece."""
    whole = text if isinstance(text, Text) else Text(text, style=style)
    for line in _wrap(console, whole, max(1, console.width - indent)):
        console.print(Text.assemble(" " * indent, line), soft_wrap=True)


def _wrap(console: Console, text: Text, width: int) -> Iterator[Text]:
    if text.cell_len <= width and "\n" not in text.plain:
        yield text.copy()
        return
    glued = text.copy()
    glued.plain = IN_QUANTITY.sub(GLUE, text.plain)
    for line in glued.wrap(console, width, overflow="fold"):
        line.plain = line.plain.replace(GLUE, " ")
        line.rstrip()
        yield line


def code(console: Console, text: str, *, style: str = "cyan", indent: int) -> None:
    """Print lines to be copied: never folded here."""
    for line in text.splitlines():
        console.print(Text(f"{'':{indent}}{printable(line)}", style=style), soft_wrap=True)


def heading(console: Console, title: str) -> None:
    """Print a section's title."""
    console.print()
    prose(console, printable(title), style="bold")


def show_job(
    console: Console,
    job: Job,
    paths: Iterable[Path] = (),
    *,
    hosts: int | None = None,
    label: str = "",
) -> None:
    """Print which log it is, and which job."""
    listed = job_facts(job, paths, hosts=hosts)
    facts = label + " · ".join(fact.replace(" ", GLUE) for fact in listed)
    for line in Text(facts, style="dim").wrap(console, console.width, overflow="fold"):
        line.plain = line.plain.replace(GLUE, " ")
        line.rstrip()
        console.print(line, soft_wrap=True)


def job_facts(job: Job, paths: Iterable[Path] = (), *, hosts: int | None = None) -> list[str]:
    """Return the log, the program, ranks and nodes, when it started, and how long it ran."""
    names = [shorten(path.name, LONGEST_NAME) for path in paths]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    words = (job.executable or "").split()
    nodes = f" on {format_counted(hosts, 'node')}" if hosts else ""
    facts = (
        ", ".join(names[:MOST_NAMES]) + more,
        printable(words[0].rpartition("/")[2]) if words else "",
        f"{format_counted(job.ranks, 'rank')}{nodes}" if job.ranks else "",
        "" if job.start_time is None else format_moment(job.start_time),
        format_seconds(job.runtime) if job.runtime else "",
    )
    return [fact for fact in facts if fact and fact != "unknown"]


def facts(console: Console, rows: Iterable[tuple[str, str | Text]]) -> None:
    """Print pairs of a label and a value."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0)
    for label, value in listed:
        lines = _wrap(console, _cell(value), max(1, console.width - width - 4))
        for number, line in enumerate(lines):
            before = "" if number else label
            console.print(
                Text.assemble("  ", (before.ljust(width), "dim"), "  ", line), soft_wrap=True
            )


def table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    least: Sequence[str] = (),
) -> None:
    """Print a table: names to the left and folded, numbers to the right and in one piece.

    Args:
        console: where to print.
        columns: their titles.
        rows: their cells; a `Text` is a name even if it is a number.
        least: the columns that a narrow terminal leaves out, the first of them first; by default
            the last ones.
    """
    body = [[_cell(cell) for cell in row] for row in rows]
    named = [
        not number or not _is_number(cells)
        for number, cells in enumerate(zip(*body, strict=True) if body else [()] * len(columns))
    ]
    natural = [
        max([len(title), *(row[number].cell_len for row in body)])
        for number, title in enumerate(columns)
    ]
    smallest = [
        min(width, NARROWEST)
        if named[number]
        else max([*map(len, columns[number].split()), *(row[number].cell_len for row in body), 0])
        for number, width in enumerate(natural)
    ]
    shown = list(range(len(columns)))
    expendable = [columns.index(title) for title in least] or shown[:1:-1]
    left_out = []
    for number in expendable:
        if sum(smallest[column] + GAP for column in shown) <= console.width:
            break
        shown.remove(number)
        left_out.append(columns[number])
    widths = _shares(console.width, shown, natural, smallest)
    titles = [Text(title, style="dim") for title in columns]
    for line, row in enumerate([titles, *body]):
        cells = [list(_wrap(console, row[number], widths[number])) for number in shown]
        height = max(map(len, cells))
        if not line and not any(columns):
            continue
        for number, lines in zip(shown, cells, strict=True):
            missing = [Text()] * (height - len(lines))
            lines[:] = missing + lines if not line else lines + missing
            for one in lines:
                one.pad_left(max(0, widths[number] - one.cell_len) * (not named[number]))
        for parts in zip(*cells, strict=True):
            _print_row(console, parts, [widths[number] for number in shown])
    if left_out:
        prose(console, f"({', '.join(left_out)}: in a wider terminal)", style="dim", indent=GAP)


def row(kinds: str, *values: object) -> tuple[str | Text, ...]:
    """Return the cells of a row: numbers in the units of their kinds; None is left empty."""
    return tuple(
        value if isinstance(value, Text) else "" if value is None else in_words(kind, value)  # type: ignore[arg-type]
        for kind, value in zip(kinds.split(), values, strict=True)
    )


def _shares(
    width: int, shown: Sequence[int], natural: Sequence[int], smallest: Sequence[int]
) -> dict[int, int]:
    """Return the width of each column: what is too much is taken from the widest names."""
    widths = {number: natural[number] for number in shown}
    while sum(widths.values()) + GAP * len(widths) > width:
        shrinkable = [number for number in shown if widths[number] > smallest[number]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda number: widths[number] - smallest[number])] -= 1
    return widths


def _print_row(console: Console, parts: Sequence[Text], widths: Sequence[int]) -> None:
    line = Text()
    for part, width in zip(parts, widths, strict=True):
        line.append(" " * GAP)
        line.append_text(part)
        line.append(" " * (width - part.cell_len))
    line.rstrip()
    console.print(line, soft_wrap=True)


def _cell(value: str | Text) -> Text:
    return value if isinstance(value, Text) else Text(harmless(value))


def _is_number(cells: Sequence[Text]) -> bool:
    """Whether most cells that say something begin with a number; names from traces never do."""
    known = [cell.plain for cell in cells if cell.overflow != "fold"]
    told = [text for text in known if text.strip() not in NO_NUMBER]
    return 2 * sum(NUMBER.match(text) is not None for text in told) >= max(len(told), 1)


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


def picture_width(console: Console) -> int:
    """Return how many columns a picture has."""
    return max(8, min(PICTURE, console.width - GAP))


def time_axis(start: float, end: float, width: int) -> Text:
    """Return the line below a picture: when it begins and ends."""
    left, right = (format_seconds(moment) for moment in (start, end))
    return Text(f"{'':{GAP}}{left}{right:>{width - len(left)}}", style="dim")


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
