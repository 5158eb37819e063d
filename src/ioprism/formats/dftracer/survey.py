"""The first look at DFTracer files: names, processes, time range, and where to cut them.

Names are given as hashes, which may be used before they are defined, even in another process's
file, so that all files are surveyed before any call is read. Only metadata lines are parsed
in this pass, the rest is searched; versions that have none, and write names into every line,
are parsed whole. A large file is surveyed range by range, and the parts are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ioprism.formats.calls import BYTES_OF_NAME
from ioprism.formats.dftracer.checkpoints import TextStretch
from ioprism.formats.dftracer.lines import (
    CALL,
    COUNTER,
    DAMAGED_LINE,
    Arguments,
    Chunk,
    DecodedLines,
    Line,
    Range,
    Trouble,
    chunks,
    decode_line,
    decode_text,
    hash_of,
    pieces,
    whole_number,
)
from ioprism.formats.reading import Budget

OWN = b'"cat":"dftracer"'  # DFTracer's lines about itself
COUNTED = b'"dft_cnt":'  # sums of the aggregated mode
WRITTEN_OUT = (b'"fname":"', b'"hostname":"')  # names in the lines themselves: old versions
_LINE_END = ord("\n")
_CALL = re.compile(rb'"ph":(?:1|"X")[,}]')
_PAIR = re.compile(rb'"pid":"?(\d{1,18})"?,"tid":"?(\d{1,18})"?,')
NUMBERED = b'{"id":'
_ID = re.compile(rb'\{"id":"?(\d{1,18})"?,')
SEGMENT = 16 * 2**20  # inflated bytes that are worth a separate task
HEAD = 65536  # bytes of a piece that mostly show whether it holds calls
ENDS = 8192  # bytes that show the numbers of the first and of the last lines of a piece
FIRST_VERSION_WITH_UNITS = "time_metric"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a file that begins and ends with a line."""

    start: int  # bytes in the file
    stop: int
    size: int  # bytes of text
    stretch: TextStretch | None = None  # where in the text of a single gzip member


@dataclass(slots=True)
class Numbering:
    """DFTracer numbers its lines, so that missing ones are noticed."""

    lines: int = 0
    lowest: int | None = None
    highest: int | None = None

    def take(self, piece: bytes, lines: int) -> None:
        """Count lines; the numbers at both ends of a piece are enough to know the range."""
        first, last = piece.find(NUMBERED), piece.rfind(NUMBERED)
        if first >= 0:
            self.lines += lines
            ids = _ID.findall(piece, first, first + ENDS) + _ID.findall(piece, max(0, last - ENDS))
            self.widen([int(number) for number in ids])

    def widen(self, ids: Sequence[int | None]) -> None:
        """Take more numbers into the range."""
        known = [one for one in (self.lowest, self.highest, *ids) if one is not None]
        self.lowest, self.highest = min(known, default=None), max(known, default=None)

    @property
    def missing(self) -> int:
        """How many lines are not there; a number that was given twice makes up for one."""
        if self.lowest is None or self.highest is None:
            return 0
        return max(0, self.highest - min(self.lowest, 1) + 1 - self.lines)


@dataclass(slots=True)
class Survey:
    """What one file, or a range of it, says about itself."""

    path: Path
    segments: list[Segment] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # hash -> path
    hosts: dict[str, str] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)  # written out in old versions
    processes: dict[tuple[int, int], None] = field(default_factory=dict)  # pid, tid
    host_of: dict[int, str] = field(default_factory=dict)  # pid -> hash of its host's name
    named_host_of: dict[int, str] = field(default_factory=dict)  # pid -> host, in old versions
    program_of: dict[int, str] = field(default_factory=dict)  # pid -> hash of its name
    command_of: dict[int, str] = field(default_factory=dict)
    parent_of: dict[int, int] = field(default_factory=dict)  # pid -> pid of what started it
    first: int | None = None  # in the file's own unit
    last: int | None = None
    nanoseconds: bool = False
    has_counters: bool = False
    has_calls: bool = False
    begun: bool = False  # DFTracer marks where a trace begins and ends
    ended: bool = False
    collisions: int = 0
    numbering: Numbering = field(default_factory=Numbering)
    trouble: Trouble = field(default_factory=Trouble)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.path)

    @property
    def per_second(self) -> int:
        """The file's clock ticks in a second."""
        return 1_000_000_000 if self.nanoseconds else 1_000_000

    @property
    def times(self) -> tuple[int, int] | None:
        """First and last time, in nanoseconds since 1970."""
        tick = 1_000_000_000 // self.per_second
        known = self.first is not None and self.last is not None
        return ((self.first or 0) * tick, (self.last or 0) * tick) if known else None

    @property
    def missing_lines(self) -> int:
        """Lines that were written and are not there, as far as their numbers tell."""
        alone = len({pid for pid, _ in self.processes}) == 1
        return self.numbering.missing if alone and not self.has_counters else 0

    def hold(self, *names: str) -> None:
        """Count names that are kept.

        Raises:
            OverBudgetError: together they are more than the file may take.
        """
        for name in names:
            self.budget.take(BYTES_OF_NAME + len(name), "the names of files, hosts and programs")

    def span(self, first: int, last: int) -> None:
        """Widen the time range."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


def survey(part: Range) -> Survey:
    """Look through a file, or a range of it."""
    notes = Survey(part.path)
    piece = b""
    for piece in pieces(_cut(notes, part), notes.trouble):
        _look(piece, notes, at_start=part.first)
    if part.last and not notes.ended and piece:
        _take_columns(decode_text(piece), notes)
    return notes


_TABLES = ("files", "hosts", "strings", "paths", "processes", "host_of", "named_host_of",
           "program_of", "command_of", "parent_of")  # fmt: skip
_FLAGS = ("nanoseconds", "has_counters", "has_calls", "begun", "ended")


def join_surveys(parts: Sequence[Survey]) -> Survey:
    """Join the surveys of all ranges of one file."""
    whole = parts[0]
    for part in parts[1:]:
        for name in ("files", "hosts", "strings"):
            known, more = getattr(whole, name), getattr(part, name)
            whole.collisions += sum(known.get(key, text) != text for key, text in more.items())
        for name in _TABLES:
            setattr(whole, name, getattr(part, name) | getattr(whole, name))  # first meaning wins
        for name in _FLAGS:
            setattr(whole, name, getattr(whole, name) or getattr(part, name))
        for time in (part.first, part.last):
            if time is not None:
                whole.span(time, time)
        whole.segments += part.segments
        whole.collisions += part.collisions
        whole.numbering.lines += part.numbering.lines
        whole.numbering.widen([part.numbering.lowest, part.numbering.highest])
        whole.trouble.cut |= part.trouble.cut
        whole.trouble.endless |= part.trouble.endless
    return whole


def _cut(notes: Survey, part: Range) -> Iterator[Chunk]:
    """Pass the text on, and note where it can be cut: behind a member that ends with a line."""
    start, size = part.start, 0
    whole = True  # whether the text so far ends with a line
    try:
        text = chunks(notes.path, notes.trouble, start=start, stop=part.stop, stretch=part.stretch)
        for chunk in text:
            if isinstance(chunk, bytes):
                whole = chunk.endswith(b"\n")
                size += len(chunk)
                yield chunk
            elif whole and size >= SEGMENT:
                notes.segments.append(Segment(start, chunk, size))
                start, size = chunk, 0
    finally:  # also where reading stops early
        if size:
            notes.segments.append(Segment(start, part.stop, size, part.stretch))


def _look(piece: bytes, notes: Survey, *, at_start: bool) -> None:
    lines = _line_count(piece)
    own_calls = unnumbered = 0
    for text in _own_lines(piece):
        line = decode_line(text)
        if line is not DAMAGED_LINE:
            _take_line(line, notes)
            own_calls += line.ph in CALL
            unnumbered += line.id is None
    # Whether there are calls beside those by which DFTracer marks start and end.
    notes.has_calls = (
        notes.has_calls
        or len(_CALL.findall(piece, 0, HEAD)) > own_calls
        or sum(1 for _ in _CALL.finditer(piece)) > own_calls
    )
    # Sums beside calls are counted when the calls are read.
    notes.has_counters = notes.has_counters or (not notes.has_calls and COUNTED in piece)
    notes.numbering.take(piece, lines - unnumbered)
    written_out = any(piece.find(name, 0, HEAD) >= 0 for name in WRITTEN_OUT)
    undated = at_start and notes.first is None
    if undated or written_out or not _known_pairs(piece, lines, notes):
        _take_columns(decode_text(piece), notes)


def _line_count(piece: bytes) -> int:
    """How many lines hold an object, as far as can be told without reading them."""
    head, tail = piece[:2], piece[-8:].rstrip(b"\r\n")
    unended = bool(tail) and not piece.endswith(b"\n")
    brackets = head in (b"[\n", b"[\r"), tail.endswith(b"]") and tail != b"]}"
    ends = np.count_nonzero(np.frombuffer(piece, np.uint8) == _LINE_END)  # quicker than `count`
    return int(ends) + unended - sum(brackets)


def _own_lines(piece: bytes) -> Iterator[bytes]:
    at = piece.find(OWN)
    while at >= 0:
        begin, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
        end = len(piece) if end < 0 else end
        yield piece[begin:end].strip(b", \r")
        at = piece.find(OWN, end)


def _known_pairs(piece: bytes, lines: int, notes: Survey) -> bool:
    """Whether all processes and threads of the piece could be notes by searching."""
    first = _PAIR.search(piece)
    if first is None:
        return False
    if piece.count(first[0]) >= lines:  # counting one is far quicker than finding all
        notes.processes[int(first[1]), int(first[2])] = None
        return True
    pairs = _PAIR.findall(piece)
    notes.processes.update(dict.fromkeys((int(pid), int(tid)) for pid, tid in set(pairs)))
    return len(pairs) >= lines


def _take_line(line: Line, notes: Survey) -> None:
    arguments = line.arguments
    name, pid = line.name, whole_number(line.pid)
    value, text = arguments.value, arguments.name
    if name == "CM" and text == FIRST_VERSION_WITH_UNITS:
        notes.nanoseconds = value == "NS"
    table = {"FH": notes.files, "HH": notes.hosts, "SH": notes.strings}.get(str(name))
    if table is not None and isinstance(text, str) and (key := hash_of(value)) is not None:
        if key not in table:
            notes.hold(key, text)
        notes.collisions += table.setdefault(key, text) != text
    if pid is None:
        return
    host = hash_of(arguments.hhash)
    if host is not None:
        notes.host_of.setdefault(pid, host)
    if name == "start":
        _take_start(arguments, pid, notes)
    ts = whole_number(line.ts)
    if ts is not None and ts >= 0:
        notes.span(ts, ts)
        notes.ended |= name == "end"


def _take_start(arguments: Arguments, pid: int, notes: Survey) -> None:
    notes.begun = True
    programs = (
        (arguments.exec_hash, notes.program_of),
        (arguments.cmd_hash, notes.command_of),
    )
    for value, table in programs:
        code = hash_of(value)
        if code is not None:
            table.setdefault(pid, code)
    parent = whole_number(arguments.ppid)
    if parent is not None:
        notes.parent_of.setdefault(pid, parent)


def _take_columns(decoded: DecodedLines, notes: Survey) -> None:
    """Take what every line says: names that are written out, processes, times."""
    for line in decoded.others:
        pid, tid = whole_number(line.pid), whole_number(line.tid)
        if line.ph in COUNTER and pid is not None and tid is not None and line.cat != "dftracer":
            notes.processes[pid, tid] = None
    if not decoded.calls:
        return
    columns = {key: column[decoded.is_call] for key, column in decoded.required_numbers.items()}
    notes.span(int(columns["ts"].min()), int((columns["ts"] + columns["dur"]).max()))
    pairs = list(zip(columns["pid"].tolist(), columns["tid"].tolist(), strict=True))
    notes.processes.update(dict.fromkeys(pairs))
    for (process, _), line in zip(pairs, decoded.calls, strict=True):
        path, host = line.arguments.fname, line.arguments.hostname
        if isinstance(path, str) and path not in notes.paths:
            notes.hold(path)
            notes.paths[path] = None
        if isinstance(host, str) and process not in notes.named_host_of:
            notes.hold(host)
            notes.named_host_of[process] = host
