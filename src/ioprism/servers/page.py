"""The page of `ioprism servers report`: data as JSON, drawn by one small script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.reports.to_html.page import shell_page
from ioprism.servers import documents
from ioprism.servers.documents import CHOICES
from ioprism.servers.fleet import Fleet, Mover, Trend
from ioprism.servers.interference import Disturbance
from ioprism.servers.job_metrics import FLAGS, MEASURES, metric_column
from ioprism.servers.load import PARTS, MachineLoad
from ioprism.servers.steps import MachineReport
from ioprism.storage.atomic import atomic_write_text

MOST_JOBS = 250_000  # about 40 MB of page; of more, those that moved most are kept
AMOUNTS = ("bytes", "shared_bytes", "operations", "max_bandwidth", "max_operation_rate")
MOST_PAIRS = 30
DIGITS = 4
NAMES = ("user", "account", "partition", "name")


def write_page(
    machine: MachineReport,
    path: str | Path,
    *,
    peak_read: float | None = None,
    peak_write: float | None = None,
    force: bool = False,
) -> None:
    """Write the self-contained page of a machine.

    Args:
        machine: every number.
        path: where to write it.
        peak_read: peak read bandwidth of the file system in bytes per second, where known.
        peak_write: the same for writing.
        force: replace an existing file.
    """
    data = _data(machine, {"read": peak_read, "write": peak_write})
    text = shell_page("servers", title="File-system load of a machine", data=data)
    atomic_write_text(Path(path), text, replace=force)


def _data(report: MachineReport, peaks: Mapping[str, float | None]) -> dict[str, Any]:
    metrics = report.metrics
    table, notes = _limit_jobs(metrics.table, list(report.warnings))
    settings = metrics.settings
    return {
        "interval": settings.interval_us / SECOND,
        "thresholds": list(settings.thresholds),
        "settings": {name: getattr(settings, name) for name in CHOICES},
        "peaks": dict(peaks),
        "warnings": notes,
        "jobs": _jobs(table, settings.thresholds),
        "load": _load(report.load),
        "machine": _machine(report.fleet),
        "profile": {
            "timezone": report.profile.timezone,
            **{
                direction: [[_digits(rate) for rate in day] for day in table.tolist()]
                for direction, table in zip(DIRECTIONS, report.profile.rates, strict=True)
            },
        },
        "trend": _trend(report.trend),
        "interference": _interference(report.interference),
        "contacts": [
            [contact.user or "unknown", documents.REASONS[contact.reason], contact.jobs,
             _digits(contact.job_hours), _digits(contact.hours_at_stake)]
            for contact in report.contacts
        ],
    }  # fmt: skip


def _machine(fleet: Fleet) -> dict[str, Any]:
    def movers(rows: Sequence[Mover]) -> list[list[Any]]:
        return [
            [row.name or "unknown", row.jobs, *(_digits(row.bytes[d]) for d in DIRECTIONS),
             _digits(sum(row.shared.values()))]
            for row in rows
        ]  # fmt: skip

    return {
        "dominance": documents.dominance(fleet),
        "attribution": documents.attribution(fleet.attributions, fleet.split),
        "listed": fleet.listed,
        "users": movers(fleet.users),
        "accounts": movers(fleet.accounts),
        **{
            direction: {
                "bytes": totals.bytes,
                **{part: getattr(totals, part) for part in PARTS},
                "outside": totals.outside,
                "small": documents.small_requests(totals),
                "sizes": [
                    [size.low, size.high, _digits(size.operations), _digits(size.bytes)]
                    for size in totals.sizes
                ],
            }
            for direction, totals in fleet.totals.items()
        },
    }


def _trend(trend: Trend) -> dict[str, Any]:
    return {
        "sentence": documents.change(trend),
        "compared": trend.compared,
        "months": [
            [month.month, _digits(month.days), *(_digits(month.bytes[d]) for d in DIRECTIONS),
             *(month.change[d] for d in DIRECTIONS)]
            for month in trend.months
        ],
        "accounts": [
            [row.name or "unknown", _digits(row.before), _digits(row.after)]
            for row in trend.accounts
        ],
    }  # fmt: skip


def _interference(pairs: tuple[Disturbance, ...]) -> dict[str, Any]:
    rows = [
        [documents.who(pair.application), documents.who(pair.neighbour),
         pair.measure.replace("_", " "), _digits(pair.slowdown), pair.beside, pair.quiet,
         _digits(pair.hours), f"{pair.adjusted:.2g}", "yes" if pair.certain else "may be chance"]
        for pair in pairs[:MOST_PAIRS]
    ]  # fmt: skip
    return {"sentence": documents.interference(pairs), "pairs": rows}


def _digits(value: float) -> float | None:
    return None if math.isnan(value) else _short(float(f"{value:.{DIGITS}g}"))


def _limit_jobs(table: pl.DataFrame, notes: list[str]) -> tuple[pl.DataFrame, list[str]]:
    if table.height <= MOST_JOBS:
        return table, notes
    moved = pl.sum_horizontal(pl.col(f"{d}_bytes").fill_null(0) for d in DIRECTIONS)
    notes.append(f"this page shows the {MOST_JOBS} of {table.height} jobs that moved most")
    return table.top_k(MOST_JOBS, by=moved).sort("start_us"), notes


def _jobs(table: pl.DataFrame, thresholds: Sequence[int]) -> dict[str, Any]:
    """Return columns: names as a list of words and numbers into it."""
    columns: dict[str, Any] = {
        "id": table["job"].to_list(),
        "start": (table["start_us"] // SECOND).to_list(),
        "end": (table["end_us"] // SECOND).to_list(),
        "servers": table["servers"].to_list(),
        "coverage": _round_all(table["coverage"]),
        "flags": [
            sum(bit << place for place, bit in enumerate(bits))
            for bits in table.select(pl.col(FLAGS).cast(pl.Int64)).iter_rows()
        ],
        "flag_names": list(FLAGS),
        "attribution": _words(table["attribution"]),
        "opens": _round_all(table["opens"]),
        "closes": _round_all(table["closes"]),
    }
    for name in NAMES:
        columns[name] = _words(table[name])
    for direction in DIRECTIONS:
        columns[direction] = {name: _round_all(table[f"{direction}_{name}"]) for name in AMOUNTS}
        for measure in MEASURES:
            columns[direction][measure] = [
                _round_all(table[metric_column(direction, measure, threshold)])
                for threshold in thresholds
            ]
    return columns


def _words(names: pl.Series) -> dict[str, Any]:
    filled = names.fill_null("")
    words = filled.unique().sort()
    ranks = {word: number for number, word in enumerate(words)}
    return {"words": words.to_list(), "of": [ranks[word] for word in filled]}


def _round_all(values: pl.Series) -> list[float | None]:
    """Four digits are more than a chart or the sampling resolves."""
    return [_short(value) for value in values.cast(pl.Float64).round_sig_figs(DIGITS).to_list()]


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _load(load: MachineLoad) -> dict[str, Any]:
    return {
        "servers": list(load.servers),
        "unattributed": [
            [_digits(value) for value in row] for row in load.parts[PARTS.index("unattributed")]
        ],
        "edges": [int(edge) / SECOND for edge in load.edges_us],
        **{
            direction: [
                [_short(float(f"{value:.3g}")) for value in row] for row in load.bytes[number]
            ]
            for number, direction in enumerate(DIRECTIONS)
        },
    }
