"""Score-P's OTF2 traces, through the package `otf2` (an extra)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from ioprism.errors import BrokenTraceError, OverBudgetError, ReaderUnavailableError
from ioprism.formats.calls import Row, RowPartition, TraceSpan, plausible
from ioprism.formats.isolation import IsolationError, attempt
from ioprism.formats.reading import Budget
from ioprism.model.schema import OPERATIONS, PROCESSES, file_table
from ioprism.model.trace import LAYERS, Job, Trace, Warn
from ioprism.text import printable
from ioprism.units import format_counted

MAGIC = b"\x03BOTF2"
SECONDS = 8.0  # that opening may take, and
DEFINITIONS_PER_SECOND = 100_000  # bytes of definitions read in one more
# The library never returns from some damaged archives.
_OPEN = "import json, sys, otf2\nwith otf2.reader.open(json.load(sys.stdin)): pass"
_LAYERS = {"POSIX": "posix", "ISOC": "stdio", "MPI-IO": "mpiio", "HDF5": "hdf5",
           "netCDF": "netcdf", "PnetCDF": "pnetcdf"}  # fmt: skip
_MODES = {"READ": "read", "WRITE": "write", "FLUSH": "sync"}
_POINT_EVENTS = {
    "IoCreateHandle": "open",
    "IoDestroyHandle": "close",
    "IoSeek": "seek",
    "IoDeleteFile": "metadata",
    "IoChangeStatusFlags": "metadata",
}


class Otf2Reader:
    """Reads the I/O records of OTF2 archives."""

    name = "otf2"
    title = "Score-P OTF2 (traces.otf2; needs the package otf2)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "threads", "hosts", "files",
                       "collective", "layers"})  # fmt: skip

    def recognises(self, source: Path) -> bool:
        """Whether it is an OTF2 anchor file, or a folder with one. Never raises."""
        try:
            return _anchor(source) is not None
        except OSError:
            return False

    def read(self, source: Path) -> Trace:
        """Go through the events once to learn files and processes."""
        library = _library(source)
        anchor = _anchor(source) or source
        size = sum(path.stat().st_size for path in _files(anchor, source) if path.suffix == ".def")
        try:
            attempt(
                _OPEN,
                json.dumps(str(anchor)),
                seconds=SECONDS + size / DEFINITIONS_PER_SECOND,
                memory=Budget(anchor, beside=size).allowed,
            )
        except IsolationError as error:
            raise _broken(source, error) from error
        span, locations = TraceSpan(Budget(anchor, beside=size)), _Locations()
        try:
            with library.reader.open(str(anchor)) as opened:
                clock = opened.definitions.clock_properties
                began = getattr(clock, "realtime_timestamp", None)
                for row in _rows(opened, locations, {}):
                    span.see(row)
        except OverBudgetError:
            raise
        except Exception as error:
            raise _broken(source, error) from error
        if span.first is None or span.last is None:
            raise _broken(source, "it contains no I/O records")
        start = began / 1e9 if isinstance(began, int) and 0 < began < 2**63 else None
        runtime = span.last - span.first
        return Trace(
            format=self.name,
            paths=(source,),
            job=Job(
                ranks=len(set(locations.ranks.values())),
                start_time=start,
                end_time=None if start is None else start + runtime,
                runtime=runtime,
            ),
            partitions=(
                RowPartition(Otf2Archive(anchor), span.first, span.paths, locations.ranks),
            ),
            load_files=lambda: file_table(list(span.paths)),
            load_processes=locations.table,
        )


def _library(source: Path) -> ModuleType:
    try:
        import otf2
    except ImportError as error:
        raise ReaderUnavailableError(
            source, reader="otf2", missing="otf2", install="'ioprism[otf2]'"
        ) from error
    return otf2  # type: ignore[no-any-return]


def _anchor(source: Path) -> Path | None:
    candidates = sorted(source.glob("*.otf2")) if source.is_dir() else [source]
    for path in candidates:
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(MAGIC)) == MAGIC:
                    return path
    return None


@dataclass(slots=True)
class _Locations:
    """The locations (threads) met so far, as rows of the process table."""

    rows: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)  # ranks
    ranks: dict[int, int] = field(default_factory=dict)  # by row
    facts: list[dict[str, Any]] = field(default_factory=list)

    def number(self, location: Any) -> int:  # noqa: ANN401 - the library's own object
        """The row of a location."""
        key = repr(location)
        if key not in self.rows:
            row = self.rows[key] = len(self.rows)
            group = location.group
            rank = self.groups.setdefault(repr(group), len(self.groups))
            self.ranks[row] = rank
            parent = getattr(group, "system_tree_parent", None)
            host = getattr(parent, "name", None)
            self.facts.append({"process": row, "rank": rank, "host": host and str(host)})
        return self.rows[key]

    def table(self) -> pl.DataFrame:
        """The process table."""
        return PROCESSES.conform(pl.DataFrame(self.facts, schema_overrides={"host": pl.String}))


@dataclass(frozen=True, slots=True)
class Otf2Archive:
    """The I/O records of one archive."""

    anchor: Path

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls."""
        library = _library(self.anchor)
        threads: dict[int, _Thread] = {}
        try:
            with library.reader.open(str(self.anchor)) as opened:
                yield from _rows(opened, _Locations(), threads)
        except Exception as error:  # noqa: BLE001 - the library raises exceptions of any kind
            warn(f"{self.anchor.name}: the archive is damaged ({error}); events are missing")
        unfinished = sum(len(one.operations) + len(one.waiting) for one in threads.values())
        if unfinished:
            calls = format_counted(unfinished, "unfinished call")
            warn(f"{self.anchor.name}: {calls} left out")


@dataclass(slots=True)
class _Thread:
    """What one location is in the middle of."""

    regions: list[tuple[str, int]] = field(default_factory=list)  # name, time of entry
    waiting: list[tuple[int, str, Any]] = field(default_factory=list)  # depth, operation, handle
    operations: dict[tuple[str, int], tuple[int, Any]] = field(default_factory=dict)


def _rows(
    opened: Any,  # noqa: ANN401
    locations: _Locations,
    threads: dict[int, _Thread],
) -> Iterator[Row]:
    tick = 1.0 / float(opened.timer_resolution)
    pointers: dict[str, int | None] = {}
    for location, event in opened.events:
        row = locations.number(location)
        thread = threads.setdefault(row, _Thread())
        yield from _EventStep(row, thread, pointers, tick).take(event)


@dataclass(frozen=True, slots=True)
class _EventStep:
    row: int
    thread: _Thread
    pointers: dict[str, int | None]
    tick: float

    def take(self, event: Any) -> Iterator[Row]:  # noqa: ANN401
        kind = type(event).__name__
        thread = self.thread
        if kind == "Enter":
            thread.regions.append((str(event.region.name), event.time))
        elif kind == "Leave" and thread.regions:
            yield from self._leave_region(event.time)
            thread.regions.pop()
        elif kind == "IoOperationBegin":
            thread.operations[repr(event.handle), event.matching_id] = (event.time, event)
        elif kind == "IoOperationComplete":
            begun = thread.operations.pop((repr(event.handle), event.matching_id), None)
            if begun is not None:
                yield self._operation(begun[1], event)
        elif kind in _POINT_EVENTS:
            self._point(kind, event)
            if thread.regions:
                thread.waiting.append((len(thread.regions), _POINT_EVENTS[kind], event))
            else:
                yield self._call(event, _POINT_EVENTS[kind], event.time, event.time, None)

    def _leave_region(self, time: int) -> Iterator[Row]:
        """Metadata calls last as long as the function in which they happened."""
        depth = len(self.thread.regions)
        name, entered = self.thread.regions[-1]
        inside = [waiting for waiting in self.thread.waiting if waiting[0] == depth]
        self.thread.waiting = [w for w in self.thread.waiting if w[0] < depth]
        for _, operation, event in inside:
            yield self._call(event, operation, entered, time, name)

    def _point(self, kind: str, event: Any) -> None:  # noqa: ANN401
        if kind == "IoCreateHandle":
            appends = "APPEND" in str(event.status_flags)
            self.pointers[repr(event.handle)] = None if appends else 0
        elif kind == "IoSeek":
            self.pointers[repr(event.handle)] = plausible(event.offset_result)

    def _operation(self, begun: Any, ended: Any) -> Row:  # noqa: ANN401
        operation = _MODES.get(str(begun.mode).rpartition(".")[2], "other")
        moved = plausible(ended.bytes_result) if operation in ("read", "write") else None
        key = repr(begun.handle)
        offset = self.pointers.get(key)
        if offset is not None and operation in ("read", "write"):
            known = offset >= 0 and moved is not None and moved >= 0
            self.pointers[key] = offset + (moved or 0) if known else None
        regions = self.thread.regions
        row = self._call(
            begun, operation, begun.time, ended.time, regions[-1][0] if regions else None
        )
        flags = str(begun.operation_flags)
        return row._replace(
            bytes=moved,
            offset=offset if operation in ("read", "write") else None,
            collective="COLLECTIVE" in flags and "NON_COLLECTIVE" not in flags,
            nonblocking="NON_BLOCKING" in flags,
        )

    def _call(self, event: Any, operation: str, start: int, end: int, name: str | None) -> Row:  # noqa: ANN401
        handle = getattr(event, "handle", None)
        file = getattr(handle, "file", None) or getattr(event, "file", None)
        paradigm = getattr(handle, "io_paradigm", None) or getattr(event, "io_paradigm", None)
        layer = _LAYERS.get(str(getattr(paradigm, "identification", "")), "other")
        named = getattr(file, "name", None)
        path = str(named) if named else None
        codes = LAYERS.index(layer), OPERATIONS.index(operation)
        return Row(start * self.tick, end * self.tick, self.row, path, *codes, name)


def _files(anchor: Path, source: Path) -> Iterator[Path]:
    """Yield the files of an archive.

    Raises:
        BrokenTraceError: one of them is a pipe or a device, on which the library would wait.
    """
    for path in (anchor.with_suffix(".def"), *anchor.with_suffix("").rglob("*")):
        if path.is_file():
            yield path
        elif not path.is_dir():
            raise _broken(source, f"{printable(path.name)} is not a file")


def _broken(source: Path, why: object) -> BrokenTraceError:
    return BrokenTraceError(
        f"the OTF2 archive cannot be read ({why}).\n"
        "Hint: check with `otf2-print`; record with SCOREP_IO_POSIX=true.",
        source=source,
    )
