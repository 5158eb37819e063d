"""The report over a trace of any size: a page from this machine to its user only.

The server listens on 127.0.0.1 alone. Every address starts with a secret that only the user
who started it knows; requests by another name, from another page or for anything else are
refused before anything is computed.
"""

from __future__ import annotations

import json
import math
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ioprism.api import analyse
from ioprism.connections import GuardedServer
from ioprism.engine.base import Engine
from ioprism.errors import IoprismError, OutputError, UsageError
from ioprism.model.layers import HEIGHT, LAYERS, TITLES
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import Trace
from ioprism.reports.to_html import report as html_form
from ioprism.reports.to_html.report import about, file_names, stripes
from ioprism.text import printable
from ioprism.units import format_count, format_seconds
from ioprism.views.picture.packed import pack
from ioprism.views.picture.tiles import LEVELS, Tiles, tiles_of

NO_PARTS: dict[str, object] = {"title": "", "note": "", "rows": []}


def preview(trace: Trace, tiles: Tiles) -> dict[str, Any]:
    """Return what the page shows first; findings, phases and tables come later."""
    shown = tiles.whole()
    job = trace.job
    facts = [
        ["program", printable(job.executable) if job.executable else "unknown"],
        ["ran for", format_seconds(job.runtime)],
        ["ranks", format_count(tiles.ranks)],
        ["calls", format_count(tiles.count)],
    ]
    return {
        "source": [printable(path.name) for path in trace.paths],
        "warnings": [printable(text) for text in trace.completeness.warnings],
        "verdict": {
            "line": "Analysing the calls…",
            "first": "The picture is ready; the findings follow.",
        },
        "facts": facts,
        "ranks": tiles.ranks,
        "layers": list(LAYERS),
        "titles": TITLES,
        "heights": HEIGHT,
        "operations": list(OPERATIONS),
        "files": file_names(trace, None),
        "stripes": stripes(trace, None),
        "diagnosis": None,
        "parts": {"targets": NO_PARTS, "hosts": NO_PARTS},
        "findings": [],
        "phases": {},
        "rhythm": None,
        "tables": [],
        "timeline": about(shown),
        "time": [min(0.0, tiles.start), max(tiles.end, job.runtime or 0.0)],
        "explore": True,
    }


HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
MOST_COLUMNS = 4000
LONGEST_ADDRESS = 4096
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Query = Mapping[str, str]
Answer = tuple[str, bytes]  # content type and content


class RefusedError(Exception):
    """A request that gets no answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Exploration:
    """What the page asks for: itself, tiles, and the story when it is ready."""

    def __init__(self, trace: Trace, tiles: Tiles, *, engine: Engine) -> None:
        self._trace, self._tiles, self._engine = trace, tiles, engine
        self._page = html_form.framed(preview(trace, tiles), connect=True).encode("utf-8")
        self._story: bytes | None = None
        self.answers: Mapping[str, Callable[[Query], Answer]] = {
            "": self.page,
            "tile": self.tile,
            "story": self.story,
        }

    def prepare(self) -> None:
        """Make the finer levels and the story, while the user already looks at the page."""
        for columns in LEVELS:
            self._tiles.level(columns)
        try:
            document = analyse(self._trace, engine=self._engine).document
            content = html_form.data(document, explore=True)
        except IoprismError as error:
            content = preview(self._trace, self._tiles)
            content["verdict"] = {"line": "The calls cannot be judged.", "first": str(error)}
        self._story = json.dumps(content, allow_nan=False).encode("utf-8")

    def page(self, query: Query) -> Answer:  # noqa: ARG002 - as all answers
        """Return the page."""
        return "text/html; charset=utf-8", self._page

    def story(self, query: Query) -> Answer:  # noqa: ARG002 - as all answers
        """Return findings, phases and tables once they are there."""
        return "application/json", self._story or b"null"

    def tile(self, query: Query) -> Answer:
        """Return the marks of a window as bytes: the length of a header, the header, planes."""
        start, end = (_number(query, name) for name in ("start", "end"))
        if not start < end:
            raise RefusedError(400, "the window is empty")
        columns = min(MOST_COLUMNS, max(100, int(_number(query, "columns"))))
        shown = self._tiles.tile(start, end, columns=columns, ranks=_ranks(query.get("ranks", "")))
        packed = pack(shown)
        header = json.dumps({**packed.header(), "width": shown.width}).encode("ascii")
        content = struct.pack("<I", len(header)) + header + packed.planes
        return "application/octet-stream", content


def _number(query: Query, name: str) -> float:
    try:
        value = float(query[name])
    except (KeyError, ValueError) as error:
        raise RefusedError(400, f"{name} is not a number") from error
    if not math.isfinite(value):
        raise RefusedError(400, f"{name} is not a number")
    return value


def _ranks(text: str) -> tuple[int, int] | None:
    """The first and last rank of a choice such as `0-3,8`; None for all."""
    numbers = [int(part) for part in text.replace("-", ",").split(",") if part.strip().isdigit()]
    return (min(numbers), max(numbers)) if numbers else None


class Handler(BaseHTTPRequestHandler):
    """Answers requests that know the secret and come from the page itself."""

    server: ExploreServer
    server_version, sys_version = "ioprism", ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer, or refuse."""
        status = 200
        try:
            kind, content = self._answer_request()
        except RefusedError as refusal:
            status, kind = refusal.status, "text/plain; charset=utf-8"
            self.close_connection = True
            content = refusal.reason.encode("utf-8")
        except ValueError:  # an address that is none, a number that is none
            status, kind, content = 400, "text/plain; charset=utf-8", b"malformed request"
        self._send(status, kind, content)

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page has been closed or moved on

    def _answer_request(self) -> Answer:
        self._check_sender()
        parts = urlsplit(self.path)
        pieces = parts.path.split("/")
        if len(self.path) > LONGEST_ADDRESS or len(pieces) != 3:
            raise RefusedError(404, "there is nothing here")
        if not secrets.compare_digest(pieces[1].encode(), self.server.token.encode()):
            raise RefusedError(403, "wrong token")
        self.server.trust(self.connection)
        answer = self.server.exploration.answers.get(pieces[2])
        if answer is None:
            raise RefusedError(404, "there is nothing here")
        return answer({key: values[0] for key, values in parse_qs(parts.query).items()})

    def _check_sender(self) -> None:
        """Refuse other names (DNS rebinding) and other pages (cross-site requests)."""
        allowed = [f"{name}:{self.server.server_port}" for name in NAMES]
        if self.headers.get_all("Host", []) not in [[name] for name in allowed]:
            raise RefusedError(403, "wrong host")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{name}" for name in allowed]:
            raise RefusedError(403, "wrong origin")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise RefusedError(403, "wrong origin")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base's
        """Say nothing: addresses hold the secret."""


class ExploreServer(GuardedServer):
    """A server for one trace and one user."""

    allow_reuse_address = False

    def __init__(self, exploration: Exploration, *, port: int) -> None:
        self.exploration = exploration
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        """Where the page is; it holds the secret."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


@contextmanager
def exploring(
    trace: Trace, *, engine: Engine, port: int = 0, prepare: bool = True
) -> Iterator[ExploreServer]:
    """Read a trace and yield a server that is ready to serve it.

    Raises:
        UsageError: there is no such port.
        OutputError: the port is taken.
    """
    if not 0 <= port < 65536:
        raise UsageError(f"{port} is not a port.\nHint: 0 chooses a free one.")
    with tiles_of(trace) as tiles:
        exploration = Exploration(trace, tiles, engine=engine)
        try:
            server = ExploreServer(exploration, port=port)
        except OSError as error:
            raise OutputError(
                f"port {port} cannot be used: {error.strerror}.\nHint: --port 0 finds a free one."
            ) from error
        with server:
            if prepare:
                Thread(target=exploration.prepare, daemon=True).start()
            yield server
