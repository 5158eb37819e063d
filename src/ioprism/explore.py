"""The report over a trace of any size: a page from this machine to its user only.

The server listens on 127.0.0.1 alone. Every address starts with a secret that only the user
who started it knows; requests by another name, from another page or for anything else are
refused before anything is computed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from ioprism.engine.base import Engine
from ioprism.errors import IoprismError, OutputError, UsageError
from ioprism.local_http import HTML, JSON, LOOPBACK, LocalHandler, LocalServer, RefusedError
from ioprism.model.trace import Trace
from ioprism.reports.to_html.picture import about, file_names, job_page, owners, stripes, tracks
from ioprism.text import printable
from ioprism.units import format_count, format_seconds
from ioprism.views.tiles import LEVELS, Tiles, pack, tiles_of


def preview(trace: Trace, tiles: Tiles) -> dict[str, Any]:
    """Return what the page shows first; owners of calls, findings and tables come later."""
    job = trace.job
    facts = [
        ["program", printable(job.executable) if job.executable else "unknown"],
        ["ran for", format_seconds(job.runtime)],
        ["ranks", format_count(tiles.ranks)],
        ["calls", format_count(tiles.count)],
    ]
    return {
        **tracks(trace, ranks=tiles.ranks, start=tiles.start, end=tiles.end),
        "warnings": [printable(text) for text in trace.completeness.warnings],
        "verdict": {
            "line": "Analysing the calls…",
            "first": "The picture is ready; the findings follow.",
        },
        "facts": facts,
        "files": file_names(trace, None),
        "stripes": stripes(trace, None),
        "diagnosis": None,
        "hosts": {"names": [], "of": []},
        "threads": {},
        "sizes": {"read": [], "write": []},
        "findings": [],
        "phases": {},
        "rhythm": None,
        "tables": [],
        "timeline": about(tiles.whole()),
        "explore": True,
    }


MOST_COLUMNS = 4000
FIRST_LOOK = 5.0  # seconds that the story waits for a browser; without one it begins anyway

Query = Mapping[str, str]
Answer = tuple[str, bytes]  # content type and content


class Exploration:
    """What the page asks for: itself, tiles, and the story when it is ready."""

    def __init__(self, trace: Trace, tiles: Tiles, *, engine: Engine) -> None:
        self._trace, self._tiles, self._engine = trace, tiles, engine
        self._page = job_page(preview(trace, tiles), connect=True).encode("utf-8")
        self._chapters: list[bytes] = []  # owners of calls, then the whole story
        self._looked = Event()  # the first picture was asked for and answered
        self.answers: Mapping[str, Callable[[Query], Answer]] = {
            "": self.page,
            "tile": self.tile,
            "story": self.story,
        }

    def prepare(self) -> None:
        """Make the finer levels and the story, while the user already looks at the page."""
        self._looked.wait(FIRST_LOOK)  # all cores are for the first picture until then
        # Loading the analyses takes as long as loading all that the first picture needs.
        from ioprism.api import analyse
        from ioprism.reports.to_html.report import data

        self._tell(owners(self._trace))
        for columns in LEVELS:
            self._tiles.level(columns)
        try:
            story = data(analyse(self._trace, engine=self._engine).document, explore=True)
        except IoprismError as error:
            story = {"verdict": {"line": "The calls cannot be judged.", "first": str(error)}}
        self._tell({**story, "complete": True})

    def _tell(self, content: Mapping[str, Any]) -> None:
        self._chapters.append(json.dumps(content, allow_nan=False).encode("utf-8"))

    def page(self, query: Query) -> Answer:  # noqa: ARG002 - as all answers
        """Return the page."""
        return HTML, self._page

    def story(self, query: Query) -> Answer:
        """Return the chapter after those that the page knows, once it is there."""
        known = _number(query, "known")
        return JSON, self._chapters[int(known)] if 0 <= known < len(self._chapters) else b"null"

    def tile(self, query: Query) -> Answer:
        """Return the marks of a window as bytes: the length of a header, the header, planes."""
        start, end = (_number(query, name) for name in ("start", "end"))
        if not start < end:
            raise RefusedError(400, "the window is empty")
        columns = min(MOST_COLUMNS, max(100, int(_number(query, "columns"))))
        shown = self._tiles.tile(start, end, columns=columns, ranks=_ranks(query.get("ranks", "")))
        packed = pack(shown)
        facts = {**packed.header(), "width": shown.width, "rank_step": shown.rank_step}
        header = json.dumps(facts).encode("ascii")
        content = struct.pack("<I", len(header)) + header + packed.planes
        self._looked.set()
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


class ExploreHandler(LocalHandler):
    """Answers what the page asks for."""

    server: ExploreServer

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Send the page, a tile or the story."""
        answer = self.server.exploration.answers.get(path[1:])
        if answer is None:
            raise RefusedError(404, "there is nothing here")
        self.send_content(*answer(query))


class ExploreServer(LocalServer):
    """A server for one trace and one user."""

    allow_reuse_address = False

    def __init__(self, exploration: Exploration, *, port: int) -> None:
        self.exploration = exploration
        super().__init__((LOOPBACK, port), ExploreHandler)

    @property
    def address(self) -> str:
        """Where the page is; it contains the token."""
        return f"{self.url}/"


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
