"""What a site's other jobs, and the program's earlier runs, say about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.reports.to_terminal import heading, table
from ioprism.reports.to_terminal.plot import bars
from ioprism.units import format_amount, format_counted, format_rate

if TYPE_CHECKING:  # a small log is shown without it
    from ioprism.model.history import History, MetricHistory

CHART_WIDTH = 24  # runs that a line of characters shows: the latest, this one last


def show_history(history: History | None, console: Console) -> None:
    """Print sentences, what others reached, and one small chart per unusual number."""
    if history is None:
        return
    heading(console, "Against the history of the site")
    for line in history.lines or (_nothing_unusual(history),):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    rows = [
        (one.operation, one.file_system, format_rate(one.rate), format_rate(one.median),
         format_rate(one.upper), f"{one.jobs:,}")
        for one in history.reached
    ]  # fmt: skip
    if rows:
        titles = ("", "file system", "this run", "median job", "best tenth", "other jobs")
        table(console, titles, rows)
    unusual = [metric for metric in history.metrics if metric.unusual]
    if unusual:
        columns = ("", "this run", "usually", "earlier runs, this one last")
        table(console, columns, [_metric(metric) for metric in unusual])


def _nothing_unusual(history: History) -> str:
    if not history.runs:
        return "The site has no earlier run of this program at similar scale."
    runs = format_counted(history.runs, "earlier run")
    return f"Nothing unusual beside {runs} of this program at similar scale."


def _metric(metric: MetricHistory) -> tuple[str, str, str, str]:
    values = [value for _, value in metric.earlier[-CHART_WIDTH:]]
    (chart,) = bars(np.array([*values, metric.value]), rows=1)
    this, usual = (format_amount(value, metric.unit) for value in (metric.value, metric.median))
    return metric.name, this, usual, chart
