"""What the tracks of a job are drawn from before any analysis has run: names, owners, frame.

`explore` shows its first picture with this alone, so nothing here loads an analysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ioprism.model.result import pick
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import HEIGHT, LAYERS, TITLES, Trace
from ioprism.reports.to_html.page import shell_page
from ioprism.text import printable
from ioprism.views.timeline import Timeline

MOST_NAMES = 50_000


def job_page(content: Mapping[str, Any], *, connect: bool = False) -> str:
    """Return the page that draws this content; `connect` lets it ask its own server."""
    return shell_page("workbench", title="The I/O of a job", data=content, connect=connect)


def tracks(trace: Trace, *, ranks: int, start: float, end: float) -> dict[str, Any]:
    """Return the facts that hold for all tracks of a job; its calls run from `start` to `end`."""
    return {
        "source": [printable(path.name) for path in trace.paths],
        "ranks": ranks,
        "layers": list(LAYERS),
        "titles": TITLES,
        "heights": HEIGHT,
        "operations": list(OPERATIONS),
        "time": [min(0.0, start), max(end, trace.job.runtime or 0.0)],
    }


def about(shown: Timeline) -> dict[str, Any]:
    """Return what a picture says of itself, without its marks."""
    named = pick(shown, "start", "end", "calls", "width", "source")
    return {**named, "count": shown.marks.height}


def _with_marks(trace: Trace, shown: Timeline | None) -> pl.DataFrame:
    """The files that have marks; all files where marks are not known yet."""
    if shown is None:
        return trace.files
    return trace.files.join(shown.marks.select("file").unique(), on="file", how="semi")


def file_names(trace: Trace, shown: Timeline | None) -> dict[str, str]:
    """Return the names of the files that have marks, by number."""
    named = _with_marks(trace, shown).select("file", "path")
    return {str(n): printable(path) for n, path in named.head(MOST_NAMES).iter_rows()}


def stripes(trace: Trace, shown: Timeline | None) -> dict[str, list[Any]]:
    """Return stripe size and storage targets of the files that have marks."""
    known = _with_marks(trace, shown).filter(
        (pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0)
    )
    rows = known.select("file", "stripe_size", "targets").head(MOST_NAMES).iter_rows()
    return {str(file): [size, list(targets)] for file, size, targets in rows}


def owners(trace: Trace) -> dict[str, Any]:
    """Return hosts and threads; of some formats, this reads all calls."""
    return {"hosts": _hosts(trace), "threads": _threads(trace)}


def _hosts(trace: Trace) -> dict[str, Any]:
    """Return the names of hosts, and for each rank which of them it runs on; -1: unknown."""
    known = trace.processes.filter(pl.col("host").is_not_null() & (pl.col("rank") >= 0))
    of_rank = known.group_by("rank").agg(pl.col("host").first()).sort("rank")
    names = of_rank["host"].unique(maintain_order=True).to_list()
    number = {name: place for place, name in enumerate(names)}
    last = of_rank["rank"].max() if of_rank.height else -1
    numbers = [-1] * (int(last) + 1 if isinstance(last, int) else 0)
    for rank, name in of_rank.iter_rows():
        numbers[rank] = number[name]
    return {"names": [printable(name) for name in names], "of": numbers}


def _threads(trace: Trace) -> dict[str, str]:
    """Return the names of processes where ranks have several, by number."""
    rows = trace.processes.select("process", "rank", "pid", "tid")
    if rows.height <= rows["rank"].n_unique():
        return {}
    numbered = rows.with_columns(number=pl.col("process").rank("ordinal").over("rank"))
    return {
        str(row["process"]): f"thread {row['number']} ({row['tid'] or row['pid']})"
        for row in numbered.head(MOST_NAMES).iter_rows(named=True)
    }
