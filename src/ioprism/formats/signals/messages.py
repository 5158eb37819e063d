"""Read one message of a live stream: TMIO, plain arrays, GekkoFS or Metric Proxy.

A message may say which job it belongs to: a map has a key ``job``. Nothing in it is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.errors import IoprismError
from ioprism.formats.signals.build import Content, Intervals, interval_bytes
from ioprism.formats.signals.monitors import (
    DIRECTIONS,
    GEKKO_FIELDS,
    bare,
    metric_series,
    metrics_in,
    request_intervals,
)
from ioprism.formats.signals.tmio import parse_document, parse_flush
from ioprism.model.arrays import FloatArray, TimeSeries
from ioprism.model.trace import Completeness

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
    """Where the values of an array are in a message."""

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
    """A stretch that is in the message as a whole."""
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


MOST_NAME = 200  # characters of a job's name; a longer one is cut right behind, and refused later
Problem = (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError)


class MalformedMessageError(ValueError):
    """A message is none of the known forms; the stream goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Requests of one direction, or samples of one metric, of one job."""

    start: FloatArray  # seconds
    end: FloatArray
    amount: FloatArray  # bytes, or the unit of the metric
    direction: str | None = None  # read, write, or None where the message does not say
    job: str | None = None
    ranks: int | None = None


def parse_message(raw: bytes) -> list[Piece]:
    """Read a whole message, JSON or msgpack.

    Raises:
        MalformedMessageError: it is none of the known forms.
    """
    try:
        values = _values(raw)
    except Problem as error:
        raise MalformedMessageError(str(error)[:200]) from error
    return [piece for value in values for piece in parse_value(value)]


def parse_alike(raws: Sequence[bytes]) -> list[Piece]:
    """Read messages of the same form together; their pieces are joined.

    Raises:
        MalformedMessageError: one of them is none of the known forms, or their forms differ.
    """
    if len(raws) == 1:
        return parse_message(raws[0])
    try:
        plain = unpack_plain(raws)
    except Problem as error:
        raise MalformedMessageError(str(error)[:200]) from error
    if plain is None:
        raise MalformedMessageError("they differ in more than their numbers")
    return parse_value(plain)


def parse_value(value: object) -> list[Piece]:
    """Read one JSON or msgpack value of a stream.

    Raises:
        MalformedMessageError: it is none of the known forms.
    """
    try:
        if type(value) is dict and "b" in value and "ts" in value:
            return [_plain(value)]
        return list(_pieces(value))
    except (*Problem, IoprismError) as error:
        raise MalformedMessageError(str(error)[:200]) from error


def unpack(raw: bytes) -> Any:  # noqa: ANN401 - any msgpack value
    """Unpack one msgpack value that may not claim to be larger than it is."""
    import msgpack

    try:
        return msgpack.unpackb(raw, strict_map_key=False)
    except msgpack.exceptions.ExtraData:
        return _several(raw)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise MalformedMessageError(f"it is not msgpack ({str(error)[:100]})") from error


class Several(list[Any]):
    """Values that came one after the other in one message."""


def _several(raw: bytes) -> Several:
    import msgpack

    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(raw))
    unpacker.feed(raw)
    try:
        return Several(unpacker)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise MalformedMessageError(f"it is not msgpack ({str(error)[:100]})") from error


def _values(raw: bytes) -> list[Any]:
    if raw[:1] in (b"{", b"\t", b" ", b"\n"):
        return _json_values(raw)
    plain = unpack_plain([raw])
    if plain is not None:
        return [plain]
    value = unpack(raw)
    if not isinstance(value, Several):
        return [value]
    named = [dict(zip(GEKKO_FIELDS, fields, strict=True)) for fields in _reports(value)]
    return named or list(value)


def _json_values(raw: bytes) -> list[Any]:
    """One document, over several lines if need be, or one on every line."""
    lines = [line for line in raw.splitlines() if line.strip()]
    try:
        return [_json(raw)]
    except MalformedMessageError:
        if len(lines) < 2:
            raise
        return [_json(line) for line in lines]


def _json(line: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"it is not JSON ({str(error)[:100]})") from error


def _reports(values: list[Any]) -> Iterator[list[Any]]:
    """GekkoFS reports: nine values, of which the fourth says the direction."""
    fields = [bare(value) for value in values]
    count = len(GEKKO_FIELDS)
    if len(fields) % count or fields[3] not in DIRECTIONS:
        return
    for first in range(0, len(fields), count):
        yield fields[first : first + count]


def _plain(value: Mapping[str, Any]) -> Piece:
    """The plain form: rates b from ts to te."""
    start = np.asarray(value["ts"], dtype=np.float64)
    end = np.asarray(value["te"], dtype=np.float64)
    rate = np.asarray(value["b"], dtype=np.float64)
    if not start.ndim == end.ndim == rate.ndim == 1 or not len(start) == len(end) == len(rate):
        raise ValueError(f"{rate.shape} rates do not fit {start.shape} starts, {end.shape} ends")
    return Piece(
        start,
        end,
        interval_bytes(rate, start, end),
        None,
        _job_name(value.get("job")),
        _ranks(value),
    )


def _ranks(value: Mapping[str, Any]) -> int | None:
    ranks = value.get("ranks")
    return ranks if isinstance(ranks, int) and ranks > 0 else None


def _pieces(value: object) -> Iterator[Piece]:
    if isinstance(value, list):
        yield from _of_content(parse_flush(value), None)
        return
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} is not a message")
    job = _job_name(value.get("job"))
    if "start_t_micro" in value:
        yield _of_intervals(request_intervals(value), job, 1)
    elif "metrics" in value:
        for series in metric_series(metrics_in(value), Completeness()):
            yield _of_series(series, job or _job_name(series.name))
    else:
        kept = {key: item for key, item in value.items() if isinstance(key, str) and key != "job"}
        yield from _of_content(parse_document(kept), job)


def _of_content(content: Content, job: str | None) -> Iterator[Piece]:
    for intervals in content.intervals:
        yield _of_intervals(intervals, job, content.ranks)
    for series in content.series:
        yield _of_series(series, job)


def _of_intervals(part: Intervals, job: str | None, ranks: int | None) -> Piece:
    direction = part.operation if part.operation in ("read", "write") else None
    return Piece(part.start, part.end, part.bytes, direction, job, ranks)


def _of_series(series: TimeSeries, job: str | None) -> Piece:
    edges, values = series.steps.edges, series.steps.values
    amount = np.asarray(values * np.diff(edges), dtype=np.float64)
    return Piece(edges[:-1], edges[1:], amount, series.direction, job)


def _job_name(job: object) -> str | None:
    if job is None:
        return None
    if not isinstance(job, str | int):
        raise ValueError("the name of a job must be text or a number")
    # JSON can hold halves of characters, which nothing else can.
    return str(job)[: MOST_NAME + 1].encode("utf-8", "replace").decode()
