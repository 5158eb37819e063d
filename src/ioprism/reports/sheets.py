"""The tables of a report, and the sentences and facts that come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from ioprism.bottleneck_search.result import Bottlenecks
from ioprism.characteristics.totals import Characteristics
from ioprism.model.result import Kind, in_words
from ioprism.phase_detection.find import Phase, Phases
from ioprism.report_steps import Document
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_moment, format_seconds

if TYPE_CHECKING:
    from ioprism.model.verdict import Verdict


def first_advice(verdict: Verdict) -> str | None:
    """What to do first: the first advice on the main cause, or what would decide."""
    for cause in verdict.causes:
        if cause.advice:
            return cause.advice[0].text
    return verdict.possible[0].decide.command if verdict.possible else None


def job_facts(document: Document) -> list[tuple[str, str]]:
    """What one wants to know of any job first."""
    characteristics = document.characteristics
    job, count = characteristics.job, characteristics.hosts
    read, write = (characteristics.by_operation[kind] for kind in ("read", "write"))
    hosts = f" on {format_count(count)} hosts" if count and count > 1 else ""
    rows = [
        ("program", printable(job.executable) if job.executable else "unknown"),
        ("ran for", format_seconds(job.runtime)),
        ("ranks", f"{format_count(job.ranks)}{hosts}"),
        ("files", format_count(characteristics.files)),
        ("read", format_bytes(read.bytes)),
        ("written", format_bytes(write.bytes)),
        ("cumulative I/O time", format_seconds(characteristics.io_time)),
    ]
    rows += [("started", format_moment(job.start_time))] if job.start_time else []
    known = job.job_id not in (None, "0")  # 0: no batch system gave one
    return [*rows, ("job number", printable(str(job.job_id)))] if known else rows


MOST_ROWS = 3000
MOST_PHASES = 500  # of a layer
SHOWN_ROWS = 30  # in a notebook
Rows = list[list[Any]]


Columns = tuple[tuple[str, Kind], ...]  # names and kinds


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table; a column's kind implies its unit."""

    title: str
    columns: Columns
    rows: Rows
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a page."""
        columns = [{"name": name, "kind": kind} for name, kind in self.columns]
        return {"title": self.title, "note": self.note, "columns": columns, "rows": self.rows}

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a table."""
        names = [name for name, _ in self.columns]
        return pl.DataFrame(self.rows, schema=names, orient="row", infer_schema_length=None)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name, _ in self.columns)
        kinds = [kind for _, kind in self.columns]
        rows = ([*map(in_words, kinds, row)] for row in self.rows[:SHOWN_ROWS])
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        lines = "".join(f"<tr>{row}</tr>" for row in cells)
        more = len(self.rows) - SHOWN_ROWS
        tail = f"<caption>and {more:,} more rows</caption>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>{tail}</table>"


AMOUNTS: Columns = (
    ("reads", "count"), ("writes", "count"), ("metadata calls", "count"), ("read", "bytes"),
    ("written", "bytes"), ("I/O time", "seconds"),
)  # fmt: skip


def sheets(document: Document) -> list[Sheet]:
    """Return every table that has rows."""
    candidates = [
        *_bottlenecks(document.bottlenecks),
        _amounts("Files", "file", document.by_file, "path"),
        _amounts("Ranks", "rank", document.by_rank, "rank"),
        _interfaces(document.characteristics),
        _parts("Storage targets", ("storage target", "rank"), document.by_target, "target"),
        _parts("Nodes", ("node", "text"), document.by_host, "host"),
        *_phases(document.phases),
    ]
    return [sheet for sheet in candidates if sheet.rows]


def _amounts(title: str, name: str, table: pl.DataFrame, column: str) -> Sheet:
    kept = table.head(MOST_ROWS)
    values = kept.select(
        pl.col(column), pl.col("layer").cast(pl.String), "reads", "writes", "metadata",
        "bytes_read", "bytes_written", "seconds",
    )  # fmt: skip
    left = table.height - kept.height
    note = f"The longest {MOST_ROWS:,} of {table.height:,}." if left else ""
    rows = [[_plain(cell) for cell in row] for row in values.iter_rows()]
    kind: Kind = "text" if column == "path" else "rank"
    return Sheet(title, ((name, kind), ("interface", "text"), *AMOUNTS), rows, note)


def _plain(cell: object) -> object:
    if isinstance(cell, str):
        return printable(cell)
    return round(cell, 9) if isinstance(cell, float) else cell


def _interfaces(characteristics: Characteristics) -> Sheet:
    rows = [
        [
            layer,
            *(amounts[kind].operations for kind in ("read", "write", "metadata")),
            amounts["read"].bytes,
            amounts["write"].bytes,
            sum(amount.time for amount in amounts.values()),
        ]
        for layer, amounts in characteristics.by_layer.items()
        if layer != "application"
    ]
    return Sheet("Interfaces", (("interface", "text"), *AMOUNTS), rows)


def _parts(title: str, column: tuple[str, Kind], table: pl.DataFrame, key: str) -> Sheet:
    names = (key, "operations", "bytes_read", "bytes_written", "seconds", "rate")
    columns: Columns = (
        column, ("calls", "count"), ("read", "bytes"), ("written", "bytes"),
        ("I/O time", "seconds"), ("rate", "rate"),
    )  # fmt: skip
    rows = [[_plain(cell) for cell in row] for row in table.select(names).iter_rows()]
    return Sheet(title, columns, rows)


def _bottlenecks(bottlenecks: Bottlenecks | None) -> Iterator[Sheet]:
    if bottlenecks is None:
        return
    columns: Columns = (
        ("view", "text"), ("record", "text"), ("severity", "text"), ("degrees", "number"),
        ("time", "seconds"), ("of I/O time", "share"), ("calls", "count"),
        ("of calls", "share"), ("moved", "bytes"), ("why", "text"),
    )  # fmt: skip
    rows = [
        [
            " × ".join(b.view),
            ", ".join(
                f"unknown {view}" if name is None else f"{view} {printable(str(name))}"
                for view, name in b.record.items()
            ),
            b.label,
            round(b.severity, 1),
            b.time,
            b.job_share,
            round(b.operations),
            b.operations_share,
            b.bytes,
            "; ".join(dict.fromkeys(printable(r.message) for r in b.reasons)) or "unexplained",
        ]
        for b in bottlenecks.bottlenecks
    ]
    note = (
        "Records whose share of the time is out of proportion to their share of the calls: "
        "90° is time without work, 45° is in proportion."
    )
    yield Sheet("Bottlenecks by perspective", columns, rows, note)


def _phases(segmented: Phases | None) -> Iterator[Sheet]:
    if segmented is None:
        return
    columns: Columns = (
        ("interface", "text"), ("phase", "text"), ("from", "time"), ("lasts", "seconds"),
        ("ranks", "count"), ("calls", "count"), ("moved", "bytes"), ("slowest rank", "number"),
        ("its I/O time", "seconds"), ("fastest rank", "number"), ("its I/O time ", "seconds"),
    )  # fmt: skip
    rows: Rows = [
        _phase_row(layer, number, phase)
        for layer, phases in segmented.layers.items()
        for number, phase in _longest(phases.phases)
    ]
    every = sum(len(phases.phases) for phases in segmented.layers.values())
    note = f"The longest of {every:,}." if len(rows) < every else ""
    yield Sheet("Phases", columns, rows, note)


def _longest(phases: Iterable[Phase]) -> list[tuple[int, Phase]]:
    """The longest phases, in order, each with its number among all."""
    numbered = list(enumerate(sorted(phases, key=lambda phase: phase.start), start=1))
    by_length = sorted(numbered, key=lambda one: one[1].start - one[1].end)
    return sorted(by_length[:MOST_PHASES], key=lambda one: one[0])


def _phase_row(layer: str, number: int, phase: Phase) -> list[Any]:
    return [
        layer,
        f"{phase.kind} {number}",  # as the phases' track names it
        phase.start,
        phase.end - phase.start,
        phase.ranks,
        phase.operations,
        phase.bytes,
        phase.slowest.rank,
        phase.slowest.time,
        phase.fastest.rank,
        phase.fastest.time,
    ]
