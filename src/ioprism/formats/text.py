"""Read plain and compressed text in lines or blocks, and the times that tools write into it."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl
from isal import isal_zlib

from ioprism.errors import UsageError
from ioprism.model.counters import EARLIEST, LATEST, SECOND
from ioprism.model.trace import Warn

GZIP = b"\x1f\x8b"
LONGEST_LINE = 2**20
WINDOW = 2**18  # bytes per read
# What inflating damaged data raises.
UNREADABLE = (EOFError, zlib.error, cast("type[Exception]", isal_zlib.error))


class Inflating(io.RawIOBase):
    """The text of a gzip file, as far as it can be inflated."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.damaged = False
        self._file = path.open("rb")
        self._inflate = isal_zlib.decompressobj(wbits=31)
        self._rest = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def close(self) -> None:
        """Close the compressed file, too."""
        self._file.close()
        super().close()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with text; 0 at the end, or where the damage begins."""
        while not self.damaged:
            data = self._rest or self._file.read(WINDOW)
            if not data:
                self.damaged = not self._inflate.eof
                return 0
            if self._inflate.eof:
                if not data.startswith(GZIP[: len(data)]):
                    return 0  # padding behind the last member
                self._inflate = isal_zlib.decompressobj(wbits=31)
            try:
                text = self._inflate.decompress(data, len(buffer))
            except UNREADABLE:
                self.damaged = True
                return 0
            self._rest = self._inflate.unused_data or self._inflate.unconsumed_tail
            if text:
                buffer[: len(text)] = text
                return len(text)
        return 0


def is_gzip(path: Path) -> bool:
    """Whether the file begins like gzip."""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def open_text(path: Path) -> BinaryIO:
    """Open a file for reading bytes, inflating it if it is compressed."""
    if is_gzip(path):
        return cast("BinaryIO", io.BufferedReader(Inflating(path), WINDOW))
    return path.open("rb")


def is_damaged(file: BinaryIO) -> bool:
    """Whether inflating a file stopped before its end."""
    raw = getattr(file, "raw", None)
    return isinstance(raw, Inflating) and raw.damaged


def head(path: Path, size: int) -> str:
    """Return the first bytes as text; empty if they cannot be read."""
    try:
        with open_text(path) as file:
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


TORN_END = "the last line has no line end: the file may be truncated"


def ends_torn(path: Path) -> bool:
    """Whether the last line of a plain file has no end; what is compressed says so by itself."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        if not size:
            return False
        file.seek(size - 1)
        return file.read(1) not in b"\r\n" and not is_gzip(path)


def lines(path: Path, warn: Warn) -> Iterator[str]:
    """Yield the lines that are not empty; overlong ones are cut, a damaged end is reported."""
    for _, line in placed_lines(path, warn):
        yield line
    if ends_torn(path):
        warn(f"{path.name}: {TORN_END}")


def placed_lines(
    path: Path, warn: Warn, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield the lines that begin in a range of the text and are not empty, with their places."""
    with open_text(path) as file:
        if begin:
            file.seek(begin)
        at = begin
        while (end is None or at < end) and (line := file.readline(LONGEST_LINE)):
            if line != b"\n":
                yield at, _decode(line)
                at += len(line)
                continue
            ahead = file.peek()  # type: ignore[attr-defined]
            at += 1 + len(file.read(len(ahead) - len(ahead.lstrip(b"\n"))))
        if is_damaged(file):
            warn(f"{path.name}: the compressed data are cut short or damaged")


def _decode(line: bytes) -> str:
    r"""Write bytes that are not UTF-8 as ``\x90``; Python's own way takes seven times as long."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("utf-8", "surrogateescape").translate(_ESCAPES)


_ESCAPES = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}

_EMPTY_LINES = re.compile(rb"\n\n\n+")  # with a count instead, searching takes 20 times as long


def squeeze(text: bytes) -> bytes:
    """Keep one of many empty lines: a small packed file may hold millions of them."""
    return _EMPTY_LINES.sub(b"\n\n", text)


# Bytes per step; as rows of 12 columns, empty lines take 250 times as many (measured).
BLOCK = 4 * 2**20
LONGEST_TABLE_LINE = 16 * 2**20
MOST_COLUMNS = 10_000  # of a table; chosen, as nothing real comes near
QUOTE = b'"'

Parse = Callable[[bytes], pl.DataFrame]


def blocks_of(
    path: Path, wanted: Collection[str], *, lines_are_json: bool, warn: Warn
) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of a table that it has, as text, block by block.

    Only they are taken apart: short rows of a table with many columns would fill the memory.

    Raises:
        ValueError: a line is longer than can be meant, or has too many columns.
    """
    parse = (_json_parser if lines_are_json else _csv_parser)(path, wanted)
    yield parse(b"")  # a table without rows has columns, too
    for block in _blocks(path, warn, skip_head=not lines_are_json):
        yield parse(block)


def _csv_parser(path: Path, wanted: Collection[str]) -> Parse:
    with open_text(path) as file:
        first = _line(file, path)
    if first.count(b",") >= MOST_COLUMNS:
        raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
    head = pl.read_csv(first, infer_schema=False)
    names = head.columns
    chosen = [place for place, name in enumerate(names) if name in wanted]

    def parse(block: bytes) -> pl.DataFrame:
        if not block.strip() or not chosen:
            return head.clear().select(names[place] for place in chosen)
        return pl.read_csv(
            block,
            columns=chosen,
            has_header=False,
            schema=dict.fromkeys(names, pl.String()),
            missing_columns="insert",
            truncate_ragged_lines=True,
            ignore_errors=True,
        )

    return parse


def _json_parser(path: Path, wanted: Collection[str]) -> Parse:
    schema = pl.Schema(dict.fromkeys(wanted, pl.String()))

    def parse(block: bytes) -> pl.DataFrame:
        if not block.strip():
            return schema.to_frame()
        return pl.read_ndjson(io.BytesIO(block), schema=schema, ignore_errors=True)

    with open_text(path) as file:
        first = file.read(BLOCK)
    rows = parse(first[: first.rfind(b"\n") + 1] or first)
    present = [column.name for column in rows if column.null_count() < rows.height]
    schema = pl.Schema(dict.fromkeys(present, pl.String()))
    return parse


def _blocks(path: Path, warn: Warn, *, skip_head: bool) -> Iterator[bytes]:
    with open_text(path) as file:
        if skip_head:
            _line(file, path)
        while block := file.read(BLOCK):
            held = [block, _line(file, path)]
            quotes, size = sum(piece.count(QUOTE) for piece in held), 0
            # A quoted line break; one quote too many must not bring the whole file into memory.
            while quotes % 2 and size < LONGEST_TABLE_LINE and (more := _line(file, path)):
                held.append(more)
                quotes, size = quotes + more.count(QUOTE), size + len(more)
            yield squeeze(b"".join(held))
        if is_damaged(file):
            warn(f"{path.name}: the compressed data are cut short or damaged; rows are missing")


def _line(file: BinaryIO, path: Path) -> bytes:
    line = file.readline(LONGEST_TABLE_LINE)
    if len(line) == LONGEST_TABLE_LINE:
        raise ValueError(
            f"a line of its {path.stat().st_size:,} compressed bytes unpacks to more than "
            f"{LONGEST_TABLE_LINE:,} bytes"
        )
    return line


SECONDS = re.compile(r"-?\d{1,12}(?:\.\d+)?")


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name.

    Raises:
        UsageError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"no time zone is called {name!r}.\nHint: write for example Europe/Berlin or UTC."
        ) from error


def epoch_us(text: str, zone: ZoneInfo) -> int | None:
    """Return microseconds since 1970, or None if the text is not a time.

    Local times that the end of summer time makes twice mean the first of the two.
    """
    text = text.strip()
    if SECONDS.fullmatch(text):
        moment_us = round(float(text) * SECOND) if "." in text else int(text) * SECOND
    else:
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
            moment_us = round(aware.timestamp() * SECOND)
        except (ValueError, OverflowError, OSError):
            return None
    return moment_us if EARLIEST <= moment_us <= LATEST else None
