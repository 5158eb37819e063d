"""Find the values in a stream of bytes that comes in arbitrary pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ioprism.formats.signals.gekkofs import FIELDS, bare
from ioprism.live.metrics import Counts

# Where a flush of TMIO begins: damage is skipped up to there.
FLUSH = re.compile(rb"\x9e[\xa0-\xbf](?:read|write)_(?:sync|async)|\xdc\x00\x13\xa7io_time")
LONGEST_MARK = 16  # bytes
MOST_ITEMS = 2**20  # that an array may claim to have before they are there


class Lines:
    """JSON, one value per line."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._tail = b""
        self._skipping = False  # a line that is too long

    @property
    def left(self) -> int:
        """Bytes of a value that is still incomplete."""
        return len(self._tail)

    def feed(self, chunk: bytes, counts: Counts) -> Iterator[Any]:
        """Yield the values that are complete now."""
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if self._skipping and lines:
            self._skipping = False
            lines = lines[1:]
        for line in lines:
            if line.strip():
                yield from self._value(line, counts)
        if len(self._tail) > self._largest:
            if not self._skipping:
                counts.oversized += 1
            self._tail, self._skipping = b"", True

    def _value(self, line: bytes, counts: Counts) -> Iterator[Any]:
        if len(line) > self._largest:
            counts.oversized += 1
            return
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            counts.messages += 1
            counts.malformed += 1
            return
        yield value


class Packed:
    """Msgpack values one after the other; those of GekkoFS make a report in nines."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._tail = b""
        self._fields: list[Any] = []
        self._field_bytes = 0
        self._lost = False  # damage was met, and no new beginning yet

    @property
    def left(self) -> int:
        """Bytes of a value, or report, that is still incomplete."""
        return len(self._tail) + self._field_bytes

    def feed(self, chunk: bytes, counts: Counts) -> Iterator[Any]:
        """Yield the values that are complete now."""
        data = self._tail + chunk
        while data := self._after_damage(data):
            values, used, damaged = _unpacked(data, largest=self._largest)
            for value, size in values:
                yield from self._joined(value, size)
            data = data[used:]
            if not damaged and len(data) <= self._largest:
                break
            counts.messages += 1
            counts.malformed += damaged
            counts.oversized += not damaged
            self._lost, data = True, data[1:]
            self._fields, self._field_bytes = [], 0
        self._tail = data or self._tail if self._lost else data

    def _after_damage(self, data: bytes) -> bytes:
        """What begins with a flush again; what cannot be told yet stays in the tail."""
        if not self._lost:
            return data
        flush = FLUSH.search(data)
        self._tail = data[-LONGEST_MARK:]
        self._lost = flush is None
        return data[flush.start() :] if flush else b""

    def _joined(self, value: Any, size: int) -> Iterator[Any]:  # noqa: ANN401 - any msgpack value
        flush = isinstance(value, list) and value and isinstance(value[0], str)
        if flush or (isinstance(value, dict) and len(value) != 1):
            yield value
            return
        self._fields.append(bare(value))
        self._field_bytes += size
        if len(self._fields) == len(FIELDS):
            yield dict(zip(FIELDS, self._fields, strict=True))
            self._fields, self._field_bytes = [], 0


def _unpacked(data: bytes, *, largest: int) -> tuple[list[tuple[Any, int]], int, bool]:
    """Whole values with their sizes, how many bytes they use, and whether damage follows."""
    import msgpack

    unpacker = msgpack.Unpacker(
        strict_map_key=False,
        max_buffer_size=max(len(data), largest),
        max_array_len=MOST_ITEMS,
        max_map_len=MOST_ITEMS,
    )
    unpacker.feed(data)
    values: list[tuple[Any, int]] = []
    used = 0
    try:
        for value in unpacker:
            end = unpacker.tell()
            values.append((value, end - used))
            used = end
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError):
        return values, used, True
    return values, used, False
