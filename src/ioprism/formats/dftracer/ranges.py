"""Cut a large DFTracer file into ranges that begin and end with a line, without reading it.

Plain text is cut behind the next line end. Compressed files can only be cut between gzip
members, which DFTracer 2.2 writes every 16 MiB of text: their headers are searched for. A
header may also turn up by chance inside a member, so the ranges are confirmed by reading them.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from isal import isal_zlib

from ioprism.formats.dftracer.lines import GZIP, LONGEST_LINE
from ioprism.formats.text import UNREADABLE

PLAIN = 32 * 2**20  # bytes of text that are worth a range of their own
COMPRESSED = 4 * 2**20
PROBE = 2**16  # compressed bytes that tell a member from a chance likeness
HEADER = GZIP + b"\x08"


@dataclass(frozen=True, slots=True)
class Range:
    """Where to read in a file."""

    path: Path
    start: int
    stop: int
    last: bool = True  # whether the file ends here


def ranges(path: Path) -> list[Range]:
    """Cut a file into ranges of about equal size."""
    size = path.stat().st_size
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
    least = COMPRESSED if compressed else PLAIN
    if size < 2 * least:
        return [Range(path, 0, size)]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        find = _member_at if compressed else _line_at
        cuts = [0, *dict.fromkeys(_cuts(text, least, find)), size]
    return [Range(path, start, stop, last=stop == size) for start, stop in pairwise(cuts)]


def _cuts(
    text: mmap.mmap, least: int, find: Callable[[mmap.mmap, int], int | None]
) -> Iterator[int]:
    at = least
    while at < len(text) - least:
        found = find(text, at)
        if found is None:
            return
        yield found
        at = found + least


def _line_at(text: mmap.mmap, at: int) -> int | None:
    """Where the next line begins."""
    end = text.find(b"\n", at, at + LONGEST_LINE)
    return None if end < 0 or end + 1 >= len(text) else end + 1


def _member_at(text: mmap.mmap, at: int) -> int | None:
    """Where the next gzip member begins that holds lines as DFTracer writes them."""
    found = text.find(HEADER, at)
    while found >= 0:
        if _begins_a_line(text[found : found + PROBE]):
            return found
        found = text.find(HEADER, found + 1)
    return None


def _begins_a_line(member: bytes) -> bool:
    try:
        text = isal_zlib.decompressobj(wbits=31).decompress(member, PROBE)
    except UNREADABLE:
        return False
    return text.startswith((b'{"id":', b'{"name":')) and b"\n" in text
