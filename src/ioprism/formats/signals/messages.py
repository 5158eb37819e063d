"""Read one message of a live stream: TMIO, plain arrays, GekkoFS or Metric Proxy.

A message may say which job it belongs to: a map has a key ``job``. Nothing in it is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
import msgspec
import numpy as np

from ioprism.errors import IoprismError
from ioprism.formats.signals.build import Content, interval_bytes
from ioprism.formats.signals.monitors import (
    DIRECTIONS,
    GEKKO_FIELDS,
    bare,
    metric_series,
    metrics_in,
    request_intervals,
)
from ioprism.formats.signals.tmio import parse_document, parse_flush
from ioprism.model.arrays import FloatArray
from ioprism.model.trace import Completeness

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


class PlainMessage(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The most common message: rates ``b`` from ``ts`` to ``te`` (seconds)."""

    b: list[float]
    ts: list[float]
    te: list[float]
    job: str | int | None = None
    rank: int | None = None
    ranks: int | None = None


_PLAIN = msgspec.msgpack.Decoder(PlainMessage)


def decode_plain(raw: bytes) -> PlainMessage | None:
    """Return a message of the most common form; None if it has any other."""
    try:
        return _PLAIN.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # a key that is not UTF-8
        return None


def parse_message(raw: bytes) -> list[Piece]:
    """Read a whole message, JSON or msgpack.

    Raises:
        MalformedMessageError: it is none of the known forms.
    """
    plain = decode_plain(raw)
    if plain is not None:
        return [_join_plain([plain])]
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
    plain = [message for message in map(decode_plain, raws) if message is not None]
    if len(plain) < len(raws) or len({(one.job, one.ranks) for one in plain}) > 1:
        raise MalformedMessageError("they differ in more than their numbers")
    return [_join_plain(plain)]


def _join_plain(messages: Sequence[PlainMessage]) -> Piece:
    """Return the requests of messages that have the same job."""
    for one in messages:
        if not len(one.b) == len(one.ts) == len(one.te):
            raise MalformedMessageError("rates, starts and ends are not equally many")
    rate, start, end = (
        np.array([number for one in messages for number in getattr(one, name)], np.float64)
        for name in ("b", "ts", "te")
    )
    return _requests(rate, start, end, messages[0].job, messages[0].ranks)


def parse_value(value: object) -> list[Piece]:
    """Read one JSON or msgpack value of a stream.

    Raises:
        MalformedMessageError: it is none of the known forms.
    """
    try:
        if type(value) is dict and "b" in value and "ts" in value:
            rate, start, end = (np.asarray(value[name], np.float64) for name in ("b", "ts", "te"))
            return [_requests(rate, start, end, value.get("job"), value.get("ranks"))]
        return list(_pieces(value))
    except (*Problem, IoprismError) as error:
        raise MalformedMessageError(str(error)[:200]) from error


def unpack(raw: bytes) -> Any:  # noqa: ANN401 - any msgpack value
    """Unpack one msgpack value that may not claim to be larger than it is."""
    try:
        try:
            return msgpack.unpackb(raw, strict_map_key=False)
        except msgpack.exceptions.ExtraData:
            unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(raw))
            unpacker.feed(raw)
            return Several(unpacker)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise MalformedMessageError(f"it is not msgpack ({str(error)[:100]})") from error


class Several(list[Any]):
    """Values that came one after the other in one message."""


def _values(raw: bytes) -> list[Any]:
    if raw[:1] in (b"{", b"\t", b" ", b"\n"):
        return _json_values(raw)
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


def _requests(
    rate: FloatArray, start: FloatArray, end: FloatArray, job: object, ranks: object
) -> Piece:
    """Requests that move bytes at these rates from start to end."""
    if not start.ndim == end.ndim == rate.ndim == 1:
        raise ValueError("expected flat lists of numbers")
    known = ranks if isinstance(ranks, int) and ranks > 0 else None
    return Piece(start, end, interval_bytes(rate, start, end), None, _job_name(job), known)


def _pieces(value: object) -> Iterator[Piece]:
    if isinstance(value, list):
        yield from _of_content(parse_flush(value), None)
        return
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} is not a message")
    job = _job_name(value.get("job"))
    if "start_t_micro" in value:
        yield from _of_content(Content([request_intervals(value)], ranks=1), job)
    elif "metrics" in value:
        for series in metric_series(metrics_in(value), Completeness()):
            yield from _of_content(Content(series=[series]), job or _job_name(series.name))
    else:
        kept = {key: item for key, item in value.items() if isinstance(key, str) and key != "job"}
        yield from _of_content(parse_document(kept), job)


def _of_content(content: Content, job: str | None) -> Iterator[Piece]:
    for part in content.intervals:
        direction = part.operation if part.operation in ("read", "write") else None
        yield Piece(part.start, part.end, part.bytes, direction, job, content.ranks)
    for series in content.series:
        edges, values = series.steps.edges, series.steps.values
        amount = np.asarray(values * np.diff(edges), dtype=np.float64)
        yield Piece(edges[:-1], edges[1:], amount, series.direction, job)


def _job_name(job: object) -> str | None:
    if job is None:
        return None
    if not isinstance(job, str | int):
        raise ValueError("the name of a job must be text or a number")
    # JSON can hold halves of characters, which nothing else can.
    return str(job)[: MOST_NAME + 1].encode("utf-8", "replace").decode()
