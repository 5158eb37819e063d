"""Get whole lines out of `.pfw` and `.pfw.gz` files, and decode them one by one.

Plain text is cut behind the next line end. Compressed files can only be cut between gzip
members, which DFTracer 2.2 writes every 16 MiB of text: their headers are searched for. A
header may also turn up by chance inside a member, so the ranges are confirmed by reading them.
A single member can be cut if there is an index of it.

A value of another type than expected counts as missing, because applications may use the same
keys for their arguments. A line that is not a JSON object is damaged.
"""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from ioprism.formats.calls import UNKNOWN, Integers
from ioprism.formats.dftracer.checkpoints import (
    REACH,
    Checkpoint,
    TextStretch,
    index_of,
    inflated_from,
)
from ioprism.formats.reading import places_to_cut
from ioprism.formats.text import GZIP, UNREADABLE, is_gzip, squeeze

WINDOW = 2**18  # compressed bytes per read
CHUNK = 2**20  # inflated bytes per step
PIECE = 2**20  # bytes of text in a piece
LARGE_PIECE = 4 * 2**20
LONGEST_LINE = 14 * 2**20  # bytes; real lines have a few hundred


@dataclass(slots=True)
class Trouble:
    """What went wrong while a file was read."""

    cut: bool = False  # the compressed data end early or are damaged
    endless: bool = False  # a line is longer than any real one


Chunk = bytes | int  # text, or where in the file a gzip member has ended behind it


def chunks(
    path: Path,
    trouble: Trouble,
    *,
    start: int = 0,
    stop: int | None = None,
    stretch: TextStretch | None = None,
) -> Iterator[Chunk]:
    """Yield the text between two positions of the file, and where gzip members end.

    A stretch says which part of a single member's text it is instead.
    """
    with path.open("rb") as file:
        if stretch is not None:
            yield from _between(file, stretch, trouble)
            return
        file.seek(start)
        compressed = file.read(2) == GZIP
        file.seek(start)
        left = math.inf if stop is None else stop - start
        source = _windows(file, left)
        yield from _inflate_members(source, start, trouble) if compressed else source


def _between(file: BinaryIO, stretch: TextStretch, trouble: Trouble) -> Iterator[bytes]:
    """Yield the lines of a stretch: its neighbours find the same line ends."""
    begin = stretch.begin
    at = 0 if begin is None else begin.text
    inside, tail = begin is None, b""
    try:
        for text in _first_member(file) if begin is None else inflated_from(file, begin):
            tail = (tail + text[: max(0, stretch.end - at)])[-REACH:]
            if at + len(text) > stretch.end and not _continues(tail, stretch.next):
                trouble.cut = True  # of an index that leads astray
                return
            cut = 0 if inside else text.find(b"\n") + 1
            inside = inside or cut > 0
            end = (
                text.find(b"\n", max(cut, stretch.end - at)) + 1
                if at + len(text) > stretch.end
                else 0
            )
            if inside:
                yield text[cut : end or None]
            at += len(text)
            if end:
                return
    except UNREADABLE:
        trouble.cut = True
    trouble.cut |= at < stretch.end  # there are more members than the first


def _continues(text: bytes, point: Checkpoint | None) -> bool:
    """Whether a checkpoint says that it is behind this text; None is behind the end of all."""
    return point is not None and text.endswith(point.before)


def _first_member(file: BinaryIO) -> Iterator[bytes]:
    inflate = isal_zlib.decompressobj(wbits=31)
    while not inflate.eof and (data := file.read(WINDOW)):
        while data and not inflate.eof:
            yield inflate.decompress(data, CHUNK)
            data = inflate.unconsumed_tail


def _windows(file: BinaryIO, left: float) -> Iterator[bytes]:
    while left > 0 and (window := file.read(int(min(WINDOW, left)))):
        left -= len(window)
        yield window


def _inflate_members(source: Iterator[bytes], at: int, trouble: Trouble) -> Iterator[Chunk]:
    inflate = isal_zlib.decompressobj(wbits=31)
    started = False
    for window in source:
        data = window
        at += len(window)
        while data:
            try:
                text = inflate.decompress(data, CHUNK)
            except UNREADABLE:
                trouble.cut = True
                return
            started = True
            if text:
                yield text
            data = inflate.unconsumed_tail
            if inflate.eof:
                data = inflate.unused_data
                yield at - len(data)
                if not data.startswith(GZIP[: len(data)]) and data.strip(b"\0"):
                    trouble.cut = True
                    return
                data = data if data.startswith(GZIP[: len(data)]) else b""
                inflate, started = isal_zlib.decompressobj(wbits=31), False
    trouble.cut |= started and not inflate.eof


def pieces(
    source: Iterator[Chunk], trouble: Trouble, *, size: int = PIECE, padding: bytes = b""
) -> Iterator[bytes]:
    """Join chunks and cut them again behind line ends, with something behind each piece.

    The last line needs no end.
    """
    held: list[bytes] = []
    height = 0
    for chunk in source:
        if isinstance(chunk, int):
            continue
        height += len(chunk)
        cut = chunk.rfind(b"\n") + 1 if height >= size else 0
        if not cut:
            held.append(chunk)
            if height > LONGEST_LINE:
                trouble.endless = True
                break
            continue
        yield compact(b"".join((*held, memoryview(chunk)[:cut]))) + padding
        held, height = [chunk[cut:]], len(chunk) - cut
    rest = b"".join(held)
    if trouble.endless:
        rest = rest[: rest.rfind(b"\n") + 1]
    if rest:
        yield compact(rest) + padding


_SPACED = re.compile(rb'\{"[a-z]+": ')


def compact(text: bytes) -> bytes:
    """Return lines without the spaces that programs which rewrite a trace put between values."""
    text = squeeze(text)
    if b'": ' not in text or _SPACED.search(text) is None:  # the first alone is far quicker
        return text
    return b"\n".join(map(_without_spaces, text.split(b"\n")))


def _without_spaces(line: bytes) -> bytes:
    # Damaged and deeply nested lines are counted where they are decoded.
    with suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.format(line.rstrip(b"\r,"), indent=-1)
    return line


PLAIN = 32 * 2**20  # bytes of text that are worth a separate range
COMPRESSED = 4 * 2**20
PROBE = 2**16  # compressed bytes that tell a member from a chance likeness
HEADER = GZIP + b"\x08"
MAX_LIKENESSES = 1000  # in a row, each inflated; by chance there is one in 16 MiB


@dataclass(frozen=True, slots=True)
class Range:
    """Where to read in a file."""

    path: Path
    start: int
    stop: int
    last: bool = True  # whether the file ends here
    stretch: TextStretch | None = None  # where in the text of a single gzip member

    @property
    def first(self) -> bool:
        """Whether the file begins here."""
        return self.start == 0 and (self.stretch is None or self.stretch.begin is None)


def ranges(path: Path) -> list[Range]:
    """Cut a file into ranges of about equal size."""
    size = path.stat().st_size
    compressed = is_gzip(path)
    least = COMPRESSED if compressed else PLAIN
    if size < 2 * least:
        return [Range(path, 0, size)]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        find = _member_at if compressed else _line_at
        inner = places_to_cut(0, size, least=least, find=partial(find, text))
        cuts = [0, *inner, size]
    if compressed and len(cuts) == 2:
        return _stretches(path, size)
    return [Range(path, start, stop, last=stop == size) for start, stop in pairwise(cuts)]


def lacks_index(path: Path) -> bool:
    """Whether the file could be cut if there were an index of it."""
    parts = ranges(path)
    return len(parts) == 1 and parts[0].stop >= 2 * COMPRESSED and is_gzip(path)


def _stretches(path: Path, size: int) -> list[Range]:
    """Cut a single gzip member, if an index says where inflating can begin."""
    index = index_of(path)
    begins: list[Checkpoint | None] = [None]
    for point in index.points:
        at = begins[-1].text if begins[-1] is not None else 0
        if at + PLAIN <= point.text <= index.size - PLAIN:
            begins.append(point)
    if len(begins) == 1:
        return [Range(path, 0, size)]
    ends = [point.text for point in begins if point is not None]
    return [
        Range(path, 0, size, after is None, TextStretch(begin, end, after))
        for begin, end, after in zip(begins, [*ends, index.size], [*begins[1:], None], strict=True)
    ]


def _line_at(text: mmap.mmap, at: int) -> int | None:
    """Where the next line begins."""
    end = text.find(b"\n", at, at + LONGEST_LINE)
    return None if end < 0 or end + 1 >= len(text) else end + 1


def _member_at(text: mmap.mmap, at: int) -> int | None:
    """Where the next gzip member begins that holds lines as DFTracer writes them."""
    header = at - 1
    for _ in range(MAX_LIKENESSES):
        header = text.find(HEADER, header + 1)
        if header < 0:
            return None
        if _begins_a_line(text[header : header + PROBE]):
            return header
    return None


def _begins_a_line(member: bytes) -> bool:
    try:
        text = isal_zlib.decompressobj(wbits=31).decompress(member, PROBE)
    except UNREADABLE:
        return False
    return text.startswith((b'{"id":', b'{"name":')) and b"\n" in text


CALL, COUNTER, METADATA = (1, "X", "1"), (3, "C", "3"), (4, "M", "4")  # phases
REQUIRED = ("pid", "tid", "ts", "dur")
NUMBERS = ("ret", "count", "offset", "whence", "flags", "size")
# `surrogateescape` marks bytes that are not UTF-8; they are written as hexadecimal digits.
_HEXADECIMAL = {0xDC00 + byte: f"\\\\x{byte:02x}" for byte in range(128, 256)}


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """The arguments that matter: of calls, of sums and of DFTracer's lines about itself."""

    ret: Any = UNKNOWN
    count: Any = UNKNOWN
    offset: Any = UNKNOWN
    whence: Any = UNKNOWN
    flags: Any = UNKNOWN
    size: Any = UNKNOWN
    fhash: Any = None
    fname: Any = None  # old versions write names into every line
    hostname: Any = None
    dft_cnt: Any = None  # the aggregated mode
    ret_sum: Any = None
    dur_sum: Any = None
    dur: Any = None
    name: Any = None  # what a hash stands for
    value: Any = None
    hhash: Any = None
    exec_hash: Any = None
    cmd_hash: Any = None
    ppid: Any = None


NO_ARGUMENTS = Arguments()


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line."""

    id: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = UNKNOWN
    tid: Any = UNKNOWN
    ts: Any = UNKNOWN
    dur: Any = UNKNOWN
    ph: Any = None
    args: Arguments | list[Any] | str | int | float | None = NO_ARGUMENTS

    @property
    def arguments(self) -> Arguments:
        """Its arguments; all are missing where it has none."""
        return self.args if isinstance(self.args, Arguments) else NO_ARGUMENTS

    @property
    def category(self) -> str:
        """The library that a call belongs to."""
        return self.cat if isinstance(self.cat, str) else ""

    @property
    def is_sum(self) -> bool:
        """Whether it stands for several calls: the aggregated mode."""
        return self.ph in COUNTER and whole_number(self.arguments.dft_cnt) is not None


DAMAGED_LINE = Line()
_DECODER = msgspec.json.Decoder(Line)
# Python's `json` writes these for numbers that JSON does not have.
_NOT_FINITE = re.compile(rb"(?<=[:,\[ ])-?(?:NaN|Infinity)(?=[,}\] ])")


def decode_line(line: bytes) -> Line:
    """Return what a line says; `DAMAGED_LINE` if it is not a JSON object."""
    if not line.isascii():
        line = line.decode("utf-8", "surrogateescape").translate(_HEXADECIMAL).encode()
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):
        if _NOT_FINITE.search(line):
            return decode_line(_NOT_FINITE.sub(b"null", line))
        return DAMAGED_LINE


@dataclass(frozen=True)
class DecodedLines:
    """Some lines, and which of them are calls."""

    lines: Sequence[Line]

    @cached_property
    def required_numbers(self) -> dict[str, Integers]:
        """The numbers that a call needs."""
        return {key: whole_numbers(map(attrgetter(key), self.lines)) for key in REQUIRED}

    @cached_property
    def is_call(self) -> npt.NDArray[np.bool_]:
        """Which lines are calls that have all that a call needs."""
        named = [line.ph in CALL and isinstance(line.name, str) for line in self.lines]
        calls = np.array(named, np.bool_)
        for column in self.required_numbers.values():
            calls &= column != UNKNOWN
        return calls

    @cached_property
    def calls(self) -> list[Line]:
        """The calls."""
        return list(compress(self.lines, self.is_call))

    @cached_property
    def others(self) -> list[Line]:
        """Lines that are not calls."""
        return list(compress(self.lines, ~self.is_call))

    @property
    def damaged_count(self) -> int:
        """How many lines are not calls, and not of another known kind."""
        return sum(line.ph not in COUNTER + METADATA for line in self.others)


def decode_text(text: bytes) -> DecodedLines:
    """Return what the lines of a text say."""
    lines = text.rstrip().split(b"\n")
    last = len(lines) - 1
    objects = (bare_object(one, first=n == 0, last=n == last) for n, one in enumerate(lines))
    return DecodedLines([decode_line(one) for one in objects if one])


def bare_object(line: bytes, *, first: bool, last: bool) -> bytes:
    """Return a line without what makes all lines one JSON array; empty if nothing is left."""
    bare = line.strip(b", \r\n")
    if first:
        bare = bare.removeprefix(b"[")
    return b"" if last and bare == b"]" else bare


def whole_number(value: object) -> int | None:
    """Return a number that is written bare or as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**63 else None


def whole_numbers(values: Iterable[Any]) -> Integers:
    """Return a column of numbers, `UNKNOWN` where a value is not one."""
    column = list(values)
    if set(map(type, column)) <= {int, str}:
        with suppress(ValueError, OverflowError):  # then some are not numbers, or too large
            return np.array(list(map(int, column)), np.int64)
    numbers = map(whole_number, column)
    return np.array([UNKNOWN if one is None else one for one in numbers], np.int64)


def hash_of(value: object) -> str | None:
    """Return a hash as text: versions write hexadecimal digits in quotes, or a bare number."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return str(value) or None
