"""What `ioprism servers watch` shows: a table in the terminal, JSON lines, a page, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ioprism.local_http import HTML, JSON, BackgroundServer, LocalHandler, RefusedError
from ioprism.reports import to_json
from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_terminal import name
from ioprism.servers.watch import RATES, LoadRound, LoadRow
from ioprism.text import metric_label, metric_lines
from ioprism.units import column_unit, format_bytes, format_counted, format_number, format_rate

SHOWN = 10  # rows of each table in the terminal
METRICS = "text/plain; version=0.0.4; charset=utf-8"
KINDS = {"jobs": "job", "users": "user", "targets": "target"}
EXPLAINED = {
    "read": ("read_bytes_per_second", "Bytes read per second now"),
    "write": ("written_bytes_per_second", "Bytes written per second now"),
    "operations": ("requests_per_second", "Read and write requests per second now"),
    "opens": ("opens_per_second", "Files opened per second now"),
}


def round_values(result: LoadRound) -> dict[str, Any]:
    """Return a round as plain values."""
    return {
        "time": result.time,
        "round": result.number,
        "seconds": result.seconds,
        **{name: result.rates[name] for name in RATES},
        "moved": dict(result.moved),
        "unattributed": result.unattributed,
        **{kind: [asdict(row) for row in getattr(result, kind)] for kind in KINDS},
        "counts": dict(result.counts),
        "notes": list(result.notes),
    }


def headline(result: LoadRound) -> str:
    """Say in one line who loads the file system."""
    counts = result.counts
    moving = (
        f"{format_rate(result.rates['read'])} read, {format_rate(result.rates['write'])} written"
    )
    jobs, targets = (format_counted(counts[key], key[:-1]) for key in ("jobs", "targets"))
    who = f"by {jobs} on {targets}"
    clock = datetime.fromtimestamp(result.time).astimezone().strftime("%H:%M:%S")
    silent = counts["sources"] - counts["answered"]
    missing = f"; {silent} of {counts['sources']} sources do not answer" if silent else ""
    if result.number == 1:
        answered = format_counted(counts["answered"], "source")
        return f"{clock}  first answers of {answered}; rates follow{missing}"
    first = result.jobs[0] if result.jobs else None
    most = f"; most by {first.name} ({first.share:.0%})" if first and first.share > 0 else ""
    return f"{clock}  {moving} {who}{most}{missing}"


def load_view(result: LoadRound) -> RenderableType:
    """Return the tables of jobs, users and targets."""
    tables = [
        _table(title, getattr(result, kind)[:SHOWN]) for kind, title in KINDS.items()
        if getattr(result, kind)
    ]  # fmt: skip
    moved = " and ".join(
        f"{format_bytes(result.moved[key])} {word}"
        for key, word in (("read", "read"), ("write", "written"))
    )
    footer = f"since the start: {moved}; of no job: {format_rate(result.unattributed)}"
    notes = [Text(f"note: {note}", style="yellow") for note in result.notes]
    return Group(Text(headline(result), style="bold"), *tables, Text(footer, style="dim"), *notes)


def _table(title: str, rows: Sequence[LoadRow]) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    unit, size = column_unit(rate for row in rows for rate in (row.read, row.write))
    who = (title, "user") if title == "job" else (title,)
    for column in who:
        grid.add_column(column)
    for column in (f"read ({unit}/s)", f"written ({unit}/s)", "requests/s", "opens/s", "share"):
        grid.add_column(column, justify="right")
    for row in rows:
        names = map(name, (row.name, row.user)[: len(who)])
        rates = (row.read / size, row.write / size, row.operations, row.opens)
        grid.add_row(*names, *map(format_number, rates), f"{row.share:.0%}")
    return grid


def exposition(result: LoadRound | None) -> str:
    """Return the last round in Prometheus' text format: at most top + 1 series of each kind."""
    return "" if result is None else "\n".join([*_metrics(result), ""])


def _metrics(result: LoadRound) -> Iterator[str]:
    def gauge(name: str, explained: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
        return metric_lines(f"ioprism_servers_{name}", "gauge", explained, values)

    for key, (metric, explained) in EXPLAINED.items():
        whole = [("", result.rates[key])]
        yield from gauge(metric, f"{explained}, by the whole file system.", whole)
        for kind, label in KINDS.items():
            rows = getattr(result, kind)
            values = [
                (f'{{{label}="{metric_label(row.name)}"}}', getattr(row, key)) for row in rows
            ]
            text = f"{explained}, by {label}; the smaller ones are `other`."
            yield from gauge(f"{label}_{metric}", text, values)
    for key, metric in (("read", "read_bytes"), ("write", "written_bytes")):
        name, moved = f"ioprism_servers_{metric}_total", [("", result.moved[key])]
        yield from metric_lines(name, "counter", "Bytes since the watch began.", moved)
    for key in ("jobs", "targets", "sources", "answered"):
        yield from gauge(key, f"Number of {key} in the last round.", [("", result.counts[key])])


class LoadServer(BackgroundServer):
    """Serves the last round: `/` a page, `/load` JSON, `/metrics` for Prometheus."""

    def __init__(self, host: str, port: int, *, token: str | None = None) -> None:
        self.latest: LoadRound | None = None
        super().__init__(host, port, LoadHandler, token=token)


class LoadHandler(LocalHandler):
    """Answers one request."""

    server: LoadServer
    same_origin_only = False

    def answer(self, path: str, query: dict[str, str]) -> None:  # noqa: ARG002 - the base's
        """Answer a request for one of the three paths."""
        latest = self.server.latest
        if path == "/":
            self.send_content(HTML, live_page().encode())
        elif path == "/load":
            body = {} if latest is None else round_values(latest)
            self.send_content(JSON, to_json.line(body).encode())
        elif path == "/metrics":
            self.send_content(METRICS, exposition(latest).encode())
        else:
            raise RefusedError(404, "there are /, /load and /metrics")


def live_page() -> str:
    """Return the page; it asks its server for everything else."""
    return shell_page("servers-live", title="File system: who loads it now?", data={}, connect=True)
