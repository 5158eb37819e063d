"""What `ioprism servers watch` shows: a table in the terminal, JSON lines, a page, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from ioprism.text import metric_label
from ioprism.units import format_bytes, format_count, format_counted, format_rate

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
    user = ["user"] if title == "job" else []
    titles = (title, *user, "read", "written", "requests/s", "opens/s", "share")
    for number, column in enumerate(titles):
        grid.add_column(column, justify="left" if number == 0 or column == "user" else "right")
    for row in rows:
        who = [name(row.name), *([name(row.user)] if user else [])]
        rates = (format_rate(row.read), format_rate(row.write), format_count(row.operations))
        grid.add_row(*who, *rates, format_count(row.opens), f"{row.share:.0%}")
    return grid


def exposition(result: LoadRound | None) -> str:
    """Return the last round in Prometheus' text format: at most top + 1 series of each kind."""
    return "" if result is None else "\n".join([*_metric_lines(result), ""])


def _metric_lines(result: LoadRound) -> Iterator[str]:
    for key, (metric, explained) in EXPLAINED.items():
        yield from _head(
            f"ioprism_servers_{metric}", f"{explained}, by the whole file system.", "gauge"
        )
        yield f"ioprism_servers_{metric} {result.rates[key]:.10g}"
        for kind, label in KINDS.items():
            full = f"ioprism_servers_{label}_{metric}"
            yield from _head(
                full, f"{explained}, by {label}; the smaller ones are `other`.", "gauge"
            )
            for row in getattr(result, kind):
                yield f'{full}{{{label}="{metric_label(row.name)}"}} {getattr(row, key):.10g}'
    for key, metric in (("read", "read_bytes"), ("write", "written_bytes")):
        yield from _head(
            f"ioprism_servers_{metric}_total", "Bytes since the watch began.", "counter"
        )
        yield f"ioprism_servers_{metric}_total {result.moved[key]}"
    for key in ("jobs", "targets", "sources", "answered"):
        yield from _head(f"ioprism_servers_{key}", f"Number of {key} in the last round.", "gauge")
        yield f"ioprism_servers_{key} {result.counts[key]}"


def _head(metric: str, explained: str, kind: str) -> Iterator[str]:
    yield f"# HELP {metric} {explained}"
    yield f"# TYPE {metric} {kind}"


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
