"""Cut a large DFTracer file into ranges that begin and end with a line, without reading it.

Plain text is cut behind the next line end. Compressed files can only be cut between gzip
members, which DFTracer 2.2 writes every 16 MiB of text: their headers are searched for. A
header may also turn up by chance inside a member, so the ranges are confirmed by reading them.
A single member can be cut if there is an index of it.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from isal import isal_zlib

from ioprism.formats.dftracer.checkpoints import Checkpoint, Stretch, index_of
from ioprism.formats.dftracer.lines import LONGEST_LINE
from ioprism.formats.text import GZIP, UNREADABLE, is_gzip

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
    stretch: Stretch | None = None  # where in the text of a single gzip member

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
        cuts = [0, *dict.fromkeys(_cuts(text, least, find)), size]
    if compressed and len(cuts) == 2:
        return _stretches(path, size)
    return [Range(path, start, stop, last=stop == size) for start, stop in pairwise(cuts)]


def lacks_index(path: Path) -> bool:
    """Whether the file could be cut if there were an index of it."""
    found = ranges(path)
    return len(found) == 1 and found[0].stop >= 2 * COMPRESSED and is_gzip(path)


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
        Range(path, 0, size, end == index.size, Stretch(begin, end))
        for begin, end in zip(begins, [*ends, index.size], strict=True)
    ]


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
