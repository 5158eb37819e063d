"""Traces of the TMIO library, and the JSON forms that FTIO takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ioprism.formats.signals.build import (
    Content,
    Intervals,
    SignalReader,
    broken,
    head,
    interval_bytes,
    json_document,
    json_lines,
    msgpack_objects,
    numbers,
    steps,
)
from ioprism.model.arrays import FloatArray, TimeSeries
from ioprism.model.trace import Completeness

# Modes ending in _b tell the bandwidth that was required, not what was measured.
MODES = ("read_sync", "write_sync", "read_async_t", "write_async_t")
REQUIRED = ("read_async_b", "write_async_b", "io_time")
MODE_KEY = re.compile(rb'"(?:read|write)_(?:sync|async)(?:_[tb])?"\s*:|"bandwidth"\s*:\s*\{')
PLAIN = re.compile(rb'\s*\{\s*"(?!traceEvents")[bt]\w*"\s*:\s*\[')
MSGPACK_MODE = re.compile(rb"\x9e[\xa0-\xbf](?:read|write)_(?:sync|async)")

Body = Mapping[str, Any]


class Asynchronous(NamedTuple):
    """Asynchronous requests: when each began, really ended, and was waited for, in seconds."""

    start: FloatArray
    end: FloatArray
    wait: FloatArray
    bytes: FloatArray


class TmioReader(SignalReader):
    """Reads TMIO's JSON, JSON lines and msgpack, and FTIO's custom JSON."""

    name = "tmio"
    title = "TMIO (.json, .jsonl, .msgpack) and FTIO's custom JSON"
    tells = frozenset({"calls", "layers", "heatmap"})

    def recognises(self, source: Path) -> bool:
        """Whether the content has TMIO's modes or plain arrays b and t. Never raises."""
        start = head(source)
        if start.lstrip()[:1] == b"{":
            return bool(MODE_KEY.search(start) or PLAIN.match(start))
        return bool(MSGPACK_MODE.match(start))

    def content(self, source: Path, completeness: Completeness) -> Content:
        """Return all intervals; phases of ranks become events."""
        return _join_contents(self._contents(source, completeness))

    def _contents(self, source: Path, completeness: Completeness) -> Iterator[Content]:
        form, entries = _entries(source, completeness)
        flushes = _Flushes()
        for entry in entries:
            content = parse_flush(entry) if form == "msgpack" else parse_document(entry)
            if form != "document":
                flushes.observe([entry[0]] if form == "msgpack" else entry, content)
            yield content
        if (missing := flushes.missing_end) is not None:
            completeness.warn(f"{source.name}: {missing}")


def _entries(source: Path, completeness: Completeness) -> tuple[str, Iterator[Any]]:
    """The form of a file, and what is in it: flushes of msgpack, lines, or one document."""
    start = head(source)
    if start.lstrip()[:1] != b"{":
        return "msgpack", msgpack_objects(source, completeness)
    if _has_lines(source, start):
        return "lines", json_lines(source, completeness)
    return "document", iter([json_document(source)])


class _Flushes:
    """Notices where a stream of flushes ends.

    A flush is one entry for each mode and then `io_time`. The last one, which TMIO writes when
    the program ends, has no phases.
    """

    def __init__(self) -> None:
        self._begun = False  # a mode came, and no io_time since
        self._phases = 0  # in this flush
        self._last_phases = 0  # in the one before

    def observe(self, keys: Iterable[object], content: Content) -> None:
        """Take one entry: its keys, and what it holds."""
        names = [key for key in keys if isinstance(key, str)]
        self._begun |= any(name.startswith(("read_", "write_")) for name in names)
        self._phases += sum(len(part.start) for part in content.intervals)
        if "io_time" in names:
            self._begun, self._last_phases, self._phases = False, self._phases, 0

    @property
    def missing_end(self) -> str | None:
        """What to say about the end; None if it is there, or the stream is not TMIO's."""
        if self._begun:
            return "the last flush has no io_time: the file is truncated"
        if self._last_phases:
            return (
                "the empty flush that ends a trace is missing: the program was killed or still "
                "runs, or the file is truncated"
            )
        return None


def _has_lines(source: Path, start: bytes) -> bool:
    """Whether the first line is a whole object, followed by others unless they were cut off."""
    if source.suffix == ".jsonl":
        return True
    line = start.strip().partition(b"\n")[0].strip()
    return line.endswith(b"}") and line.count(b"{") == line.count(b"}") and b"\n" in start.strip()


def _join_contents(contents: Iterator[Content]) -> Content:
    parts = list(contents)
    ranks = [part.ranks for part in parts if part.ranks]
    return Content(
        intervals=[intervals for part in parts for intervals in part.intervals],
        series=_joined_series([series for part in parts for series in part.series]),
        ranks=max(ranks, default=None),
    )


def _joined_series(parts: list[TimeSeries]) -> list[TimeSeries]:
    by_name: dict[str, list[TimeSeries]] = {}
    for series in parts:
        by_name.setdefault(series.name, []).append(series)
    joined = []
    for name, same in by_name.items():
        edges = np.concatenate([series.steps.edges for series in same])
        values = np.concatenate([np.append(series.steps.values, 0.0) for series in same])
        joined.append(TimeSeries(name, steps(edges, values), same[0].direction))
    return joined


def parse_document(document: object) -> Content:
    """One JSON object: modes, a bare bandwidth, or bare arrays."""
    if not isinstance(document, dict):
        raise ValueError("expected an object")
    modes = {key: body for key, body in document.items() if key.startswith(("read_", "write_"))}
    if not modes and any(key in document for key in REQUIRED):
        return Content()
    if not modes:
        return _body(document.get("bandwidth", document), "other")
    measured = {name: body for name, body in modes.items() if name in MODES}
    return _join_contents(
        _mode(name, body) for name, body in measured.items() if isinstance(body, dict)
    )


def _mode(name: str, body: Body) -> Content:
    signal = _body(body.get("bandwidth", body), name.partition("_")[0], nonblocking="async" in name)
    ranks = body.get("number_of_ranks")
    return Content(signal.intervals, signal.series, int(ranks) if ranks else None)


def _body(body: Body, operation: str, *, nonblocking: bool | None = None) -> Content:
    """Arrays of one direction: per rank (two times) or summed over ranks (one time)."""
    arrays = {key: value for key, value in body.items() if isinstance(value, list)}
    rates = _pick(arrays, "b_rank_avr", "b_overlap_avr", prefix="b")
    if not rates:
        return Content()
    if rates == "b_overlap_avr" or not any(key.endswith("_e") or key == "te" for key in arrays):
        times = _pick(arrays, "t_overlap", "t", prefix="t")
        series = steps(numbers(arrays[times]), numbers(arrays[rates]))
        direction = None if operation == "other" else operation
        return Content(series=[TimeSeries(operation, series, direction)])
    start = numbers(arrays[_pick(arrays, "t_rank_s", prefix="t", suffix="s")])
    end = numbers(arrays[_pick(arrays, "t_rank_e", prefix="t", suffix="e")])
    moved = interval_bytes(numbers(arrays[rates]), start, end)
    return Content([Intervals(start, end, moved, operation, nonblocking)])


def _pick(arrays: Body, *names: str, prefix: str, suffix: str = "") -> str:
    """The first of these keys that is there, else the only one of this form."""
    for name in names:
        if name in arrays:
            return name
    like = [key for key in arrays if key.startswith(prefix) and key.endswith(suffix)]
    return like[0] if like else ""


def parse_flush(flush: object) -> Content:
    """One array of a msgpack flush: a mode with its phases, or times that are not needed."""
    if not isinstance(flush, list | tuple) or not flush:
        raise ValueError("expected an array")
    if flush[0] == "io_time":
        return Content()
    if len(flush) < 14:
        raise ValueError(f"a mode has {len(flush)} fields instead of 14")
    nonblocking, write, ranks, phases = bool(flush[1]), bool(flush[2]), flush[12], flush[13]
    moved, start, end = _phase_columns(phases, 3)
    operation = "write" if write else "read"
    return Content(
        [Intervals(start, end, moved, operation, nonblocking)],
        ranks=int(ranks) if ranks else None,
    )


def _phase_columns(phases: object, fields: int) -> list[FloatArray]:
    """Bytes, start, end, and when it was waited for."""
    if not isinstance(phases, list | tuple):
        raise ValueError("phases are not an array")
    columns = (map(itemgetter(field), phases) for field in range(fields))
    return [np.fromiter(column, np.float64, len(phases)) for column in columns]


def read_asynchronous(source: Path) -> dict[str, Asynchronous]:
    """Return the asynchronous requests of a TMIO file by direction; none of most files.

    Raises:
        BrokenTraceError: its arrays cannot be read.
    """
    try:
        form, entries = _entries(source, Completeness())
        parts = list(map(_of_flush if form == "msgpack" else _of_document, entries))
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise broken(source, f"its arrays cannot be read ({error})") from error
    every: dict[str, list[Asynchronous]] = {}
    for part in parts:
        for direction, requests in part.items():
            every.setdefault(direction, []).append(requests)
    return {
        direction: Asynchronous(*map(np.concatenate, zip(*parts, strict=True)))
        for direction, parts in every.items()
    }


def _of_flush(flush: object) -> dict[str, Asynchronous]:
    if not isinstance(flush, list | tuple) or len(flush) < 14 or flush[0] == "io_time":
        return {}
    if not flush[1] or not flush[13]:
        return {}
    moved, start, end, wait = _phase_columns(flush[13], 4)
    known = _sound_requests(start, end, wait, moved)
    return {"write" if flush[2] else "read": known} if len(known.start) else {}


def _of_document(document: object) -> dict[str, Asynchronous]:
    if not isinstance(document, dict):
        return {}
    directions = {}
    for direction in ("read", "write"):
        bodies = [document.get(f"{direction}_async_{kind}") for kind in ("t", "b")]
        if not all(isinstance(body, dict) and body for body in bodies):
            continue
        measured, required = (_mode(direction, body).intervals for body in bodies if body)
        if len(measured) != 1 or len(required) != 1:
            continue
        took, until = measured[0], required[0]
        if len(took.start) == len(until.start):
            known = _sound_requests(took.start, took.end, until.end, took.bytes)
            if len(known.start):
                directions[direction] = known
    return directions


def _sound_requests(
    start: FloatArray, end: FloatArray, wait: FloatArray, moved: FloatArray
) -> Asynchronous:
    with np.errstate(invalid="ignore"):
        good = (end > start) & (wait > start) & (moved > 0.0)
    good &= np.isfinite(start) & np.isfinite(end) & np.isfinite(wait) & np.isfinite(moved)
    return Asynchronous(start[good], end[good], wait[good], moved[good])
