"""Read text of any length in blocks of whole lines, plain or gzip, with bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import cast

from ioprism.errors import BrokenTraceError
from ioprism.formats.text import TORN_END, is_gzip
from ioprism.model.counters import Tally

BLOCK = 16 * 2**20
LONGEST_LINE = 2**20
DAMAGED = "damaged line"


def open_text(source: Path) -> BufferedReader:
    """Open a file for reading; gzip is undone."""
    if is_gzip(source):
        return cast("BufferedReader", gzip.open(source, "rb"))
    return source.open("rb")


def beginning(source: Path, *, size: int = 64 * 1024) -> bytes:
    """Return the first bytes of the text, or nothing if it cannot be read. Never raises."""
    try:
        with open_text(source) as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def blocks(source: Path, tally: Tally, *, size: int = BLOCK) -> Iterator[bytes]:
    """Yield blocks of whole lines; an endless line is left out and counted.

    Raises:
        BrokenTraceError: the file is damaged gzip from its first byte on.
    """
    rest = b""
    overlong = False
    for read in _pieces(source, tally, size):
        whole, newline, tail = (rest + read).rpartition(b"\n")
        if overlong and newline:
            whole = whole.partition(b"\n")[2]
            overlong = False
        if whole:
            yield whole + b"\n"
        rest = tail
        if len(rest) > LONGEST_LINE:
            tally.leave_out(DAMAGED, count=0 if overlong else 1)
            rest, overlong = b"", True
    if rest and not overlong:
        tally.note(f"{source.name}: {TORN_END}")
        yield rest + b"\n"


def _pieces(source: Path, tally: Tally, size: int) -> Iterator[bytes]:
    begun = False
    held = bytearray()
    try:
        with open_text(source) as file:
            while read := file.read1(size):  # unlike read, it gives what came before any damage
                begun = True
                held += read
                if len(held) >= size:
                    yield bytes(held)
                    held.clear()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not begun:
            raise BrokenTraceError(
                f"it cannot be unpacked ({error}).\nHint: copy the file again.", source=source
            ) from error
        tally.note(f"{source.name} is cut short or damaged: what follows is not read")
    if held:
        yield bytes(held)


def text_lines(source: Path, tally: Tally) -> Iterator[str]:
    """Yield one line after another, without its end; odd bytes become U+FFFD."""
    for block in blocks(source, tally):
        for line in block.decode("utf-8", errors="replace").split("\n"):
            if line:
                yield line.removesuffix("\r")
