"""Unpack plain msgpack messages without making a Python number of each of their values.

Nearly all messages are one small map of arrays of doubles, and those of one sender differ in
nothing but their numbers. They are read together, in place; anything unusual, damage included,
is left to the msgpack library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.model.signal import FloatArray

MAP, MAP_END = 0x80, 0x90  # of at most 15 entries
ARRAY, ARRAY_END = 0x90, 0xA0  # of at most 15 items
ARRAY_16 = 0xDC
TEXT, TEXT_END = 0xA0, 0xC0  # of at most 31 bytes
NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4}  # unsigned ones, by their bytes
DOUBLE = b"\xcb"
STRIDE = 9  # bytes of a double and its mark
BIG_ENDIAN = np.dtype(">f8")
ARRAYS = (b"b", b"ts", b"te")


class UnusualError(ValueError):
    """The bytes are not of the form that is read here."""


@dataclass(frozen=True, slots=True)
class Doubles:
    """Where the values of an array lie in a message."""

    first: int  # byte of the first mark
    count: int

    @property
    def end(self) -> int:
        """The byte after the last value."""
        return self.first + STRIDE * self.count

    def read(self, buffer: bytes, *, messages: int) -> FloatArray:
        """Return the values of equally long messages, one after the other."""
        if not self.count:
            return np.zeros(0)
        shape, strides = (messages, self.count), (len(buffer) // messages, STRIDE)
        values: FloatArray = np.ndarray(shape, BIG_ENDIAN, buffer, self.first + 1, strides)
        return values.astype(np.float64).ravel()


def unpack_plain(raws: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return one map for messages that differ in their numbers only; arrays are joined.

    Returns:
        None if they differ in anything else, or are not of the plain form.
    """
    entries = _entries(raws[0])
    if entries is None or (len(raws) > 1 and not _are_alike(raws, entries)):
        return None
    buffer = b"".join(raws)
    return {
        key.decode(): value.read(buffer, messages=len(raws)) if key in ARRAYS else value
        for key, value in entries.items()
    }


def _are_alike(raws: Sequence[bytes], entries: Mapping[bytes, Any]) -> bool:
    length = len(raws[0])
    if any(len(raw) != length for raw in raws):
        return False
    fixed = np.ones(length, dtype=bool)
    for key in ARRAYS:
        part = entries[key]
        fixed[part.first : part.end].reshape(part.count, STRIDE)[:, 1:] = False
    block = np.frombuffer(b"".join(raws), np.uint8).reshape(len(raws), length)
    kept = block[:, np.flatnonzero(fixed)]
    return bool((kept == kept[0]).all())


def _entries(raw: bytes) -> Mapping[bytes, Any] | None:
    """What a plain message holds, arrays as `Doubles`; None if it is any other."""
    if not raw or not MAP <= raw[0] < MAP_END:
        return None
    entries: dict[bytes, Any] = {}
    place = 1
    try:
        for _ in range(raw[0] - MAP):
            if not TEXT <= raw[place] < TEXT_END:
                return None
            value = place + 1 + raw[place] - TEXT
            key = raw[place + 1 : value]
            if key in entries:
                return None
            entries[key], place = READERS[key](raw, value)
    except (KeyError, IndexError, UnusualError, UnicodeDecodeError):
        return None
    return entries if place == len(raw) and all(key in entries for key in ARRAYS) else None


def _doubles(raw: bytes, place: int) -> tuple[Doubles, int]:
    mark = raw[place]
    if mark == ARRAY_16:
        doubles = Doubles(place + 3, int.from_bytes(_within(raw, place + 1, place + 3)))
    elif ARRAY <= mark < ARRAY_END:
        doubles = Doubles(place + 1, mark - ARRAY)
    else:
        raise UnusualError
    if (
        doubles.end > len(raw)
        or raw[doubles.first : doubles.end : STRIDE] != DOUBLE * doubles.count
    ):
        raise UnusualError
    return doubles, doubles.end


def _number(raw: bytes, place: int) -> tuple[int, int]:
    mark = raw[place]
    if mark < MAP:
        return mark, place + 1
    if mark not in NUMBERS:
        raise UnusualError
    end = place + 1 + NUMBERS[mark]
    return int.from_bytes(_within(raw, place + 1, end)), end


def _name(raw: bytes, place: int) -> tuple[str | int, int]:
    if not TEXT <= raw[place] < TEXT_END:
        return _number(raw, place)
    end = place + 1 + raw[place] - TEXT
    return _within(raw, place + 1, end).decode(), end


def _within(raw: bytes, start: int, end: int) -> bytes:
    """A stretch that lies in the message as a whole."""
    if end > len(raw):
        raise UnusualError
    return raw[start:end]


READERS: Mapping[bytes, Callable[[bytes, int], tuple[Any, int]]] = {
    b"b": _doubles,
    b"ts": _doubles,
    b"te": _doubles,
    b"job": _name,
    b"rank": _number,
    b"ranks": _number,
}
