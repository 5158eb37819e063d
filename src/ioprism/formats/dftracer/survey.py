"""The first pass over a DFTracer file: its names, processes, time range, and where to cut it.

Names are told by hashes that may be used before they are defined, even in another process's
file, so that all files are surveyed before any call is read. Only metadata lines are parsed
in this pass; versions that have none, and write names into every line, are read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ioprism.formats.dftracer.columns import Columns, parse
from ioprism.formats.dftracer.digits import MARGIN
from ioprism.formats.dftracer.lines import Member, Trouble, chunks, pieces
from ioprism.formats.dftracer.objects import (
    EVENT,
    arguments_of,
    hash_of,
    phase_of,
    read_object,
    whole_number,
)

OWN = b'"cat":"dftracer"'  # DFTracer's lines about itself
COUNTED = b'"dft_cnt":'  # sums of the aggregated mode
_CALL = re.compile(rb'"ph":(?:1|"X")[,}]')
_PAIR = re.compile(rb'"pid":"?(\d{1,18})"?,"tid":"?(\d{1,18})"?,')
SEGMENT = 16 * 2**20  # inflated bytes that are worth a task of their own
HEAD = 65536  # bytes of a piece that mostly show whether it holds calls
MOST_PAIRS = 16  # threads counted by searching; more are read from the columns
FIRST_VERSION_WITH_UNITS = "time_metric"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a file that begins and ends with a line."""

    start: int  # bytes in the file
    stop: int
    size: int  # bytes of text


@dataclass(slots=True)
class Survey:
    """What one file says about itself."""

    path: Path
    segments: list[Segment] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)  # hash -> path
    hosts: dict[int, str] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)  # written out in old versions
    processes: dict[tuple[int, int], None] = field(default_factory=dict)  # pid, tid
    host_of: dict[int, int | str] = field(default_factory=dict)  # pid -> hash or name
    program_of: dict[int, int] = field(default_factory=dict)  # pid -> hash of its name
    command_of: dict[int, int] = field(default_factory=dict)
    first: int | None = None  # in the file's own unit
    last: int | None = None
    nanoseconds: bool = False
    has_counters: bool = False
    has_calls: bool = False
    ended: bool = False
    collisions: int = 0
    trouble: Trouble = field(default_factory=Trouble)

    @property
    def per_second(self) -> int:
        """The file's clock ticks in a second."""
        return 1_000_000_000 if self.nanoseconds else 1_000_000

    def span(self, first: int, last: int) -> None:
        """Widen the time range."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


def survey(path: Path) -> Survey:
    """Look through one file."""
    found = Survey(path)
    piece = b""
    for piece in pieces(_cut(found), found.trouble):
        _look(piece, found)
    if not found.ended and piece:
        _take_columns(parse(piece), found)
    return found


def _cut(found: Survey) -> Iterator[bytes | Member]:
    """Pass the text on, and note where it can be cut: behind a member that ends with a line."""
    start = size = 0
    whole = True  # whether the text so far ends with a line
    try:
        for chunk in chunks(found.path, found.trouble):
            if not isinstance(chunk, Member):
                whole = chunk.endswith(b"\n")
                size += len(chunk)
                yield chunk
            elif whole and size >= SEGMENT:
                found.segments.append(Segment(start, chunk.end, size))
                start, size = chunk.end, 0
    finally:  # also where reading stops early
        if size:
            found.segments.append(Segment(start, found.path.stat().st_size, size))


def _look(piece: bytes, found: Survey) -> None:
    own_calls = 0
    for line in _own_lines(piece):
        read = read_object(line)
        if read is not None:
            _take_line(read, found)
            own_calls += phase_of(read) == EVENT
    found.has_calls = found.has_calls or _has_calls(piece, own_calls)
    # Sums beside calls are counted when the calls are read.
    found.has_counters = found.has_counters or (not found.has_calls and COUNTED in piece)
    if found.host_of and found.first is not None and _known_pairs(piece, found):
        return
    _take_columns(parse(piece), found)


def _has_calls(piece: bytes, own: int) -> bool:
    """Whether there are calls beside those by which DFTracer marks start and end."""
    return len(_CALL.findall(piece, 0, HEAD)) > own or sum(1 for _ in _CALL.finditer(piece)) > own


def _own_lines(piece: bytes) -> Iterator[bytes]:
    at = piece.find(OWN)
    while at >= 0:
        begin, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
        end = len(piece) if end < 0 else end
        yield piece[begin:end].strip()
        at = piece.find(OWN, end)


def _known_pairs(piece: bytes, found: Survey) -> bool:
    """Whether all processes and threads of the piece could be found by searching."""
    total = _line_count(piece)
    counted = 0
    seen: set[bytes] = set()
    at = 0
    while counted < total and len(seen) < MOST_PAIRS:
        match = _PAIR.search(piece, at)
        if match is None:
            return False
        if match[0] not in seen:
            seen.add(match[0])
            counted += piece.count(match[0])
            found.processes[int(match[1]), int(match[2])] = None
        at = match.end()
        if len(seen) == 1 and counted < total:
            return False
    return counted == total


def _line_count(piece: bytes) -> int:
    """How many lines hold an object: each of them names one process."""
    ends = piece.count(b"\n") - 2 * len(MARGIN)
    margin = len(MARGIN)
    head, tail = piece[margin : margin + 2], piece[-margin - 2 : -margin]
    unended = not tail.endswith(b"\n")
    brackets = head == b"[\n", tail in (b"\n]", b"]\n")
    return ends + unended - sum(brackets)


def _take_line(read: Mapping[str, Any], found: Survey) -> None:
    arguments = arguments_of(read)
    name, pid = read.get("name"), whole_number(read.get("pid"))
    value, text = arguments.get("value"), arguments.get("name")
    if name == "CM" and text == FIRST_VERSION_WITH_UNITS:
        found.nanoseconds = value == "NS"
    tables = {"FH": found.files, "HH": found.hosts, "SH": found.strings}
    if name in tables and isinstance(text, str) and (key := hash_of(value)) is not None:
        known = tables[name].setdefault(key, text)
        found.collisions += known != text
    if pid is None:
        return
    host = hash_of(arguments.get("hhash"))
    if host is not None:
        found.host_of.setdefault(pid, host)
    if name == "start":
        _take_start(arguments, pid, found)
    ts = whole_number(read.get("ts"))
    if ts is not None and ts >= 0:
        found.span(ts, ts)
        found.ended |= name == "end"


def _take_start(arguments: Mapping[str, Any], pid: int, found: Survey) -> None:
    for key, table in (("exec_hash", found.program_of), ("cmd_hash", found.command_of)):
        value = hash_of(arguments.get(key))
        if value is not None:
            table.setdefault(pid, value)


def _take_columns(columns: Columns, found: Survey) -> None:
    for read in columns.others:
        pid, tid = whole_number(read.get("pid")), whole_number(read.get("tid"))
        if pid is not None and tid is not None and read.get("cat") != "dftracer":
            found.processes[pid, tid] = None
    if not len(columns):
        return
    found.span(int(columns.ts.min()), int((columns.ts + columns.dur).max()))
    pairs = dict.fromkeys(zip(columns.pid.tolist(), columns.tid.tolist(), strict=True))
    found.processes.update(pairs)
    found.paths.update(dict.fromkeys(columns.path.values))
    if columns.host.values:
        hosts = dict(zip(columns.pid.tolist(), columns.host.codes.tolist(), strict=True))
        for pid, code in hosts.items():
            if code >= 0:
                found.host_of.setdefault(pid, columns.host.values[code])
