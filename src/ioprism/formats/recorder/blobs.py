"""Read Recorder's files and zlib blobs without trusting the sizes they claim."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from isal import isal_zlib

from ioprism.formats.budget import Budget
from ioprism.formats.recorder.layout import Section
from ioprism.formats.text import UNREADABLE
from ioprism.storage.checked import open_plain

LARGEST = 2**30  # bytes of one read
WINDOW = 2**20
COPIES_HELD = 4  # of a blob: as bytes, as numbers, and what is computed of them


def read_section(section: Section) -> bytes:
    """Return a section's bytes."""
    with open_plain(section.path) as file:
        end = file.seek(0, os.SEEK_END)
        stop = end if section.stop is None else min(end, section.stop)
        file.seek(min(end, section.start))
        return file.read(max(0, min(LARGEST, stop - section.start)))


def blobs(section: Section) -> Iterator[bytes]:
    """Inflate consecutive blobs: size, inflated size, zlib stream; a damaged one ends early.

    Raises:
        OverBudgetError: together they hold more than a file of this size can.
    """
    data, budget = read_section(section), Budget(section.path)
    at = 0
    while at + 16 <= len(data):
        size, _ = struct.unpack_from("<QQ", data, at)
        packed = memoryview(data)[at + 16 : at + 16 + min(size, len(data))]
        yield inflated(packed, budget)
        at += 16 + size


def inflated(packed: memoryview, budget: Budget) -> bytes:
    """Inflate what can be inflated."""
    inflate = isal_zlib.decompressobj()
    pieces: list[bytes] = []
    rest: bytes | memoryview = packed
    while len(rest) and not inflate.eof:
        try:
            piece = inflate.decompress(rest, WINDOW)
        except UNREADABLE:
            break
        budget.take(COPIES_HELD * len(piece), "a blob of the trace")
        pieces.append(piece)
        rest = inflate.unconsumed_tail
    return b"".join(pieces)
