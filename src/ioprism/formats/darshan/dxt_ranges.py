"""Cut the traced requests of a large log into ranges of whole records, without inflating them.

Every rank has written a compressed stream of its own, one behind the other. Where one begins is
not told, so the two bytes with which a stream can begin are searched for, and taken for one if
what they inflate to is the head of a record: of a rank and a file that the log knows.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from isal import isal_zlib

from ioprism.formats.darshan.counters import FileCodes
from ioprism.formats.darshan.dxt import HEADER_BYTES, MAX_SEGMENTS
from ioprism.formats.darshan.log import Log, Region
from ioprism.formats.text import UNREADABLE

COMPRESSED = 8 * 2**20  # bytes of a region that are worth a range of their own
PROBE = 4096  # compressed bytes that are sure to hold the head of a record
_BEGINNING = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # by level of compression


@dataclass(frozen=True, slots=True)
class Cutter:
    """Knows what a record of this log can be."""

    log: Log
    codes: FileCodes
    ranks: int

    def ranges(self, region: Region) -> list[Region]:
        """Cut a region; a small one, or one that only one rank wrote, stays whole."""
        if self.log.compression != "zlib" or region.length < 2 * COMPRESSED:
            return [region]
        path = self.log.path
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            stop = min(region.offset + region.length, len(data))
            cuts = [region.offset, *self._cuts(data, region.offset, stop)]
        cuts.append(region.offset + region.length)
        return [replace(region, offset=a, length=b - a) for a, b in pairwise(cuts)]

    def _cuts(self, data: mmap.mmap, start: int, stop: int) -> Iterator[int]:
        at = start + COMPRESSED
        while at < stop - COMPRESSED:
            found = self._stream_at(data, at, stop)
            if found is None:
                return
            yield found
            at = found + COMPRESSED

    def _stream_at(self, data: mmap.mmap, at: int, stop: int) -> int | None:
        """Where the next stream begins."""
        places = (found.start() for found in _BEGINNING.finditer(data, at, stop))
        return next((p for p in places if self._is_record(data[p : p + PROBE])), None)

    def _is_record(self, packed: bytes) -> bool:
        try:
            head = isal_zlib.decompressobj().decompress(packed, HEADER_BYTES)
        except UNREADABLE:
            return False
        if len(head) < HEADER_BYTES:
            return False
        identifier, rank, _, host, writes, reads = struct.unpack(
            f"{self.log.byte_order}Qqq64sqq", head
        )
        known = self.codes.series("file", np.array([identifier], np.uint64)).null_count() == 0
        counts = 0 <= writes < MAX_SEGMENTS and 0 <= reads < MAX_SEGMENTS
        return known and counts and 0 <= rank < self.ranks and host.rstrip(b"\0").isascii()
