"""The page of `ioprism servers report`: data as JSON, drawn by one small script beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ioprism.analyses.job_metrics.load import ServerLoad
from ioprism.analyses.job_metrics.result import FLAGS, MEASURES, JobMetrics, column
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.reports.to_html.page import asset
from ioprism.reports.to_html.page import page as frame

MOST_JOBS = 250_000  # about 40 MB of page; of more, those that moved most are kept
AMOUNTS = ("bytes", "operations", "max_bandwidth", "max_operation_rate")
DIGITS = 4
NAMES = ("user", "account", "partition", "name")


def page(
    metrics: JobMetrics,
    load: ServerLoad,
    *,
    peaks: Mapping[str, float | None],
    warnings: Sequence[str] = (),
) -> str:
    """Return the page.

    Args:
        metrics: every job.
        load: every server over time.
        peaks: the file system's peak bandwidth by direction, where it is known.
        warnings: what is missing from the answer.
    """
    return frame(
        title="File-system load of a machine",
        body=asset("servers.html"),
        styles=("servers.css",),
        scripts=("charts.js", "servers.js"),
        data=_data(metrics, load, peaks, warnings),
    )


def _data(
    metrics: JobMetrics,
    load: ServerLoad,
    peaks: Mapping[str, float | None],
    warnings: Sequence[str],
) -> dict[str, Any]:
    table, notes = _limited(metrics.table, list(warnings))
    settings = metrics.settings
    return {
        "interval": settings.interval_us / SECOND,
        "thresholds": list(settings.thresholds),
        "settings": {"grid": settings.grid, "window": settings.window, "reset": settings.reset,
                     "min_runtime": settings.min_runtime},
        "peaks": dict(peaks),
        "warnings": notes,
        "jobs": _jobs(table, settings.thresholds),
        "load": _load(load),
    }  # fmt: skip


def _limited(table: pl.DataFrame, notes: list[str]) -> tuple[pl.DataFrame, list[str]]:
    if table.height <= MOST_JOBS:
        return table, notes
    moved = pl.sum_horizontal(pl.col(f"{d}_bytes").fill_null(0) for d in DIRECTIONS)
    notes.append(f"of {table.height} jobs the {MOST_JOBS} that moved most are on this page")
    return table.top_k(MOST_JOBS, by=moved).sort("start_us"), notes


def _jobs(table: pl.DataFrame, thresholds: Sequence[int]) -> dict[str, Any]:
    """Return columns: names as a list of words and numbers into it."""
    columns: dict[str, Any] = {
        "id": table["job"].to_list(),
        "start": (table["start_us"] // SECOND).to_list(),
        "end": (table["end_us"] // SECOND).to_list(),
        "servers": table["servers"].to_list(),
        "coverage": _rounded(table["coverage"]),
        "flags": [
            sum(bit << place for place, bit in enumerate(bits))
            for bits in table.select(pl.col(FLAGS).cast(pl.Int64)).iter_rows()
        ],
        "flag_names": list(FLAGS),
        "opens": _rounded(table["opens"]),
        "closes": _rounded(table["closes"]),
    }
    for name in NAMES:
        columns[name] = _words(table[name])
    for direction in DIRECTIONS:
        columns[direction] = {name: _rounded(table[f"{direction}_{name}"]) for name in AMOUNTS}
        for measure in MEASURES:
            columns[direction][measure] = [
                _rounded(table[column(direction, measure, threshold)]) for threshold in thresholds
            ]
    return columns


def _words(names: pl.Series) -> dict[str, Any]:
    filled = names.fill_null("")
    words = filled.unique().sort()
    ranks = {word: number for number, word in enumerate(words)}
    return {"words": words.to_list(), "of": [ranks[word] for word in filled]}


def _rounded(values: pl.Series) -> list[float | None]:
    """Four digits are more than the eye or the sampling can tell apart."""
    return [_short(value) for value in values.cast(pl.Float64).round_sig_figs(DIGITS).to_list()]


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _load(load: ServerLoad) -> dict[str, Any]:
    return {
        "servers": list(load.servers),
        "edges": [int(edge) / SECOND for edge in load.edges_us],
        **{
            direction: [
                [_short(float(f"{value:.3g}")) for value in row] for row in load.bytes[number]
            ]
            for number, direction in enumerate(DIRECTIONS)
        },
    }
