"""The answers of the commands for assistants, over the Model Context Protocol.

A client may ask about traces in the folders given at the start, and nothing else; nothing is
written. Every tool answers with the JSON of the command of its name, a page at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from glob import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ioprism import api
from ioprism.diagnosis.insights import insights_body
from ioprism.engine.base import LocalEngine
from ioprism.errors import IoprismError, MissingPackageError, UsageError
from ioprism.formats.tables.reader import described_table, is_mapping
from ioprism.model.trace import Trace
from ioprism.reports import to_json
from ioprism.text import printable
from ioprism.version import __version__

if TYPE_CHECKING:
    from mcp.server import MCPServer


MOST_CHARACTERS = 40_000
LONGEST_TEXT = 2_000
PAGE = 20
FEWEST = 4  # items of a page: pairs and other short lists stay whole


@dataclass(slots=True)
class _Cutter:
    offset: int
    limit: int
    totals: dict[str, int] = field(default_factory=dict)

    def cut(self, value: Any, path: str) -> Any:  # noqa: ANN401 - JSON is any nesting
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}…"
        if isinstance(value, Mapping):
            return {key: self.cut(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return self._items(value, path)
        return value

    def _items(self, items: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        first = 0
        if len(items) > self.limit:
            self.totals[path] = len(items)
            first = self.offset
        shown = items[first : first + self.limit]
        return [self.cut(item, f"{path}[{first + place}]") for place, item in enumerate(shown)]


def page(body: Mapping[str, Any], *, offset: int = 0, limit: int = PAGE) -> str:
    """Return one page of an answer as JSON; pages that are too long get fewer items."""
    limit = max(limit, FEWEST)
    while True:
        cutter = _Cutter(offset, limit)
        shown = cutter.cut(body, "$")
        later = any(total > offset + limit for total in cutter.totals.values())
        position = {
            "offset": offset,
            "limit": limit,
            "cut": cutter.totals,
            "next_offset": offset + limit if later else None,
        }
        whole = to_json.plain_document({**shown, "page": position})
        if len(whole) <= MOST_CHARACTERS or limit == FEWEST:
            return whole
        limit = max(FEWEST, limit // 2)


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders whose content may be read; links that lead out of them are not followed."""

    roots: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Folders:
        """Resolve folders once, so that a link changed later opens nothing new.

        Raises:
            UsageError: one of them is not a folder.
        """
        roots = tuple(path.resolve() for path in paths)
        for root in roots:
            if not root.is_dir():
                raise UsageError(
                    f"{printable(str(root))} is not a folder.\n"
                    "Hint: give the folders whose traces may be read."
                )
        return cls(roots)

    def allowed_path(self, name: str) -> Path:
        """Return the path that a client names; relative names start at each folder.

        Raises:
            UsageError: it is outside, leads outside, or does not exist.
        """
        if "\0" in name:
            raise UsageError(f"{printable(name)} is not a path.\nHint: name a file or a folder.")
        meant = ((root / name).resolve() for root in self.roots)
        allowed = next((path for path in meant if self._holds(path) and path.exists()), None)
        if allowed is None:
            where = ", ".join(map(str, self.roots))
            raise UsageError(
                f"{printable(name)} is not in the folders that are served.\n"
                f"Hint: name a file or a folder in {printable(where)}."
            )
        self._check_leads(allowed)
        return allowed

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)

    def _check_leads(self, source: Path) -> None:
        """Refuse what leads outside: links and descriptions of a folder, or beside a file."""
        beside = source.parent.glob(f"{escape(source.stem)}*")  # indexes, and folders of an archive
        tops = [source] if source.is_dir() else [source, *beside]
        for path in chain(tops, *(top.rglob("*") for top in tops)):
            target = path
            if path.suffix == ".toml" and path.is_file() and is_mapping(path):
                target = described_table(path)
            if (path.is_symlink() or target != path) and not self._holds(target.resolve()):
                raise UsageError(
                    f"{printable(str(path))} points outside the folders that are served.\n"
                    "Hint: serve the folder it points to as well."
                )


INSTRUCTIONS = (
    "Explains the I/O of HPC jobs from their traces. Start with diagnose: it names what "
    "stalls a job and what a fix saves. Times are seconds, sizes bytes. Long lists come in pages: "
    "ask again with offset = page.next_offset."
)
Body = Mapping[str, Any]


class Answers:
    """One method per tool; the docstrings are what an assistant reads."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def characterise(self, paths: list[str], offset: int = 0, limit: int = PAGE) -> str:
        """How much I/O a job did, by whom, through which interface, with which request sizes."""
        trace = self._read(paths)
        return _page(trace, api.characterise(trace).to_dict(), offset, limit)

    def diagnose(self, paths: list[str], offset: int = 0, limit: int = PAGE) -> str:
        """What stalls a job, which cause costs most, what a fix would save, and how."""
        trace = self._read(paths)
        return _page(trace, api.diagnose(trace).to_dict(), offset, limit)

    def insights(self, paths: list[str], offset: int = 0, limit: int = PAGE) -> str:
        """What is wrong with a job's I/O, on which evidence, and what to do about it."""
        trace = self._read(paths)
        return _page(trace, insights_body(api.insights(trace), trace.job), offset, limit)

    def bottlenecks(
        self,
        paths: list[str],
        views: tuple[str, ...] = (),
        offset: int = 0,
        limit: int = PAGE,
    ) -> str:
        """Which processes, files, times, hosts or directories cost most, and why."""
        trace = self._read(paths)
        return _page(trace, api.bottlenecks(trace, views=views).to_dict(), offset, limit)

    def inspect(self, paths: list[str], identifier: str, offset: int = 0, limit: int = PAGE) -> str:
        """The records and calls behind one finding (its code) or one bottleneck (its id)."""
        trace = self._read(paths)
        return _page(trace, api.inspect(trace, identifier).to_dict(), offset, limit)

    def phases(self, paths: list[str], offset: int = 0, limit: int = PAGE) -> str:
        """When a job does I/O, with the fastest and slowest rank of each phase."""
        trace = self._read(paths)
        return _page(trace, api.phases(trace).to_dict(), offset, limit)

    def period(
        self,
        paths: list[str],
        direction: Literal["read", "write", "both"] = "both",
        offset: int = 0,
        limit: int = PAGE,
    ) -> str:
        """Whether a job's I/O repeats, how often, how certain that is, and when it is due next."""
        from ioprism.periodicity.of_job import PeriodSettings, job_periodicity

        trace, settings = self._read(paths), PeriodSettings(direction=direction)
        answer = job_periodicity(trace, LocalEngine(), settings)
        return _page(trace, answer.to_dict(settings.by), offset, limit)

    def compare(self, before: str, after: str, offset: int = 0, limit: int = PAGE) -> str:
        """What a change did: numbers side by side, findings gone, new and kept."""
        old, new = self._read([before]), self._read([after])
        body = to_json.between(old, new) | api.compare(old, new).to_dict()
        return _page(new, body, offset, limit)

    def _read(self, paths: list[str]) -> Trace:
        return api.read(*map(self._folders.allowed_path, paths))


TOOLS = ("characterise", "diagnose", "insights", "bottlenecks", "inspect", "phases", "period",
         "compare")  # fmt: skip


def _page(trace: Trace, body: Body, offset: int, limit: int) -> str:
    return page({"source": to_json.source(trace), **body}, offset=max(0, offset), limit=limit)


def server(folders: Iterable[Path]) -> MCPServer[Any]:
    """Make the server.

    Raises:
        MissingPackageError: the SDK is not installed.
        UsageError: one of the folders is none.
    """
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise MissingPackageError(
            needed_by="`ioprism mcp`", package="mcp", install="'ioprism[mcp]'"
        ) from error
    answers = Answers(Folders.of(folders))
    made: MCPServer[Any] = MCPServer(
        "ioprism", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for name in TOOLS:
        made.add_tool(_explain_errors(getattr(answers, name)), name=name, annotations=reads,
                      structured_output=False)  # fmt: skip
    return made


def _explain_errors(tool: Callable[..., str]) -> Callable[..., str]:
    """Say what can be expected to go wrong as the commands do."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def answer(*args: Any, **kwargs: Any) -> str:  # noqa: ANN401 - as the tool takes them
        try:
            return tool(*args, **kwargs)
        except (IoprismError, OSError) as error:
            raise ToolError(str(error)) from error

    return answer
