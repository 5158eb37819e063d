"""What `ioprism watch` shows a person: a table that moves, or a line a piece of news."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ioprism.model.signal import Signal
from ioprism.periodicity.online.tracker import Change, Prediction
from ioprism.reports.to_terminal import name
from ioprism.reports.to_terminal.plot import bars, columns
from ioprism.text import printable
from ioprism.units import format_bytes, format_counted, format_seconds

WIDTH, ROWS = 72, 6
MOST_JOBS = 20


def news(job: str, prediction: Prediction) -> str | None:
    """Return one line if there is something to announce."""
    if prediction.final:
        return f"{prediction.time:12.3f} s  {printable(job)}: {final_text(prediction)}"
    if prediction.change is None:
        return None
    return f"{prediction.time:12.3f} s  {printable(job)}: {change_text(prediction.change)}"


def final_text(prediction: Prediction) -> str:
    """Say what the whole job showed."""
    subject = {"both": "I/O repeats"}.get(prediction.direction, f"{prediction.direction}s repeat")
    period = prediction.period
    if period is None:
        return "over; no period"
    doubt = "possibly " if period.certainty == "maybe" else ""
    sure = f"confidence {period.confidence:.0%}"
    return f"over; {doubt}{subject} every {format_seconds(period.seconds)} ({sure})"


def change_text(change: Change) -> str:
    """Say what changed."""
    if change.after is None:
        return f"the period of {format_seconds(change.before)} ended at {change.time:.4g} s"
    if change.before is None:
        return f"a period of {format_seconds(change.after)} since {change.time:.4g} s"
    return (
        f"the period changed from {format_seconds(change.before)} "
        f"to {format_seconds(change.after)} at {change.time:.4g} s"
    )


def view(
    jobs: Sequence[tuple[str, Prediction]], *, signal: Signal | None, dropped: int, received: int
) -> RenderableType:
    """Return the live view: the jobs heard of last, and the signal of the latest."""
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title in ("job", "time", "period", "false alarm", "next phase", "bytes", "sure"):
        grid.add_column(title, justify="left" if title == "job" else "right")
    for job, prediction in jobs[:MOST_JOBS]:
        grid.add_row(name(job), *_cells(prediction))
    more = len(jobs) - MOST_JOBS
    footer = f"{format_counted(received, 'message')}, {format_counted(dropped, 'record')} dropped"
    footer += f", {more:,} more jobs" if more > 0 else ""
    picture = [] if signal is None else [Text(row, style="cyan") for row in _picture(signal)]
    return Group(*picture, grid, Text(footer, style="dim"))


def _picture(signal: Signal) -> list[str]:
    return bars(columns(signal, width=WIDTH), rows=ROWS)


def _cells(prediction: Prediction) -> list[str]:
    period, phase = prediction.period, prediction.next_phase
    return [
        f"{prediction.time:.1f} s",
        "none" if period is None else format_seconds(period.seconds),
        "" if period is None else f"{period.false_alarm_probability:.0e}",
        "" if phase is None else f"{phase.start:.1f} s",
        "" if phase is None else format_bytes(phase.bytes),
        "" if phase is None else f"{phase.confidence:.0%}",
    ]
