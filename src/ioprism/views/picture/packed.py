"""Marks as compact bytes: whole numbers, differences, byte planes, deflated.

Neighbours in a sorted table differ little, so differences are small; their high bytes are
nearly all zero and lie together, so deflate makes them vanish.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from isal import isal_zlib

from ioprism.text import printable
from ioprism.views.picture.timeline import Timeline

Whole = npt.NDArray[np.int64]

LARGEST = 2**53 - 1  # the last whole number that a script can tell from its neighbour
TICKS = 2**48  # nanoseconds of three days; scripts hold whole numbers up to 2**53
MANY = 100_000  # from so many marks on, a microsecond is fine enough
LEVEL = 2  # of deflate: the best that is still quick
HAS_BYTES, HAS_PLACE = 1, 2
# The order in which columns stand in the bytes.
EXACT = ("start", "duration", "rank", "file", "bytes", "offset", "kind", "flags")
RUNS = (*EXACT, "calls", "busy", "extent")
NAMES = ("process", "function")  # only where a trace tells them apart
MOST_FUNCTIONS = 20_000  # names in a page; the rest have none


@dataclass(frozen=True, slots=True)
class Packed:
    """The bytes, and what is needed to read them."""

    planes: bytes
    count: int  # marks
    origin: float  # seconds of tick 0
    tick: float  # seconds
    columns: tuple[tuple[str, int], ...]  # name and bytes of a value, in order
    functions: tuple[str, ...] = ()  # names; a value of 1 means the first

    def deflated(self) -> bytes:
        """Return the planes as small as they get without taking long."""
        return bytes(isal_zlib.compress(self.planes, LEVEL))

    def header(self) -> dict[str, Any]:
        """What a script needs to read the bytes."""
        return {
            "count": self.count,
            "origin": self.origin,
            "tick": self.tick,
            "columns": [list(column) for column in self.columns],
            "functions": [printable(name) for name in self.functions],
        }


def pack(shown: Timeline) -> Packed:
    """Return a timeline's marks as bytes."""
    marks = shown.marks
    tick = tick_of(shown.end - shown.start, marks.height)
    functions = _function_names(marks)
    values = _values(marks, shown.start, tick) | _named_values(marks, functions)
    columns = (*(RUNS if _needs_sums(marks) else EXACT), *NAMES)
    held = tuple((name, _width(values[name])) for name in columns if name in values)
    planes = b"".join(_planes(values[name], width) for name, width in held)
    return Packed(planes, marks.height, shown.start, tick, held, functions)


def tick_of(span: float, marks: int) -> float:
    """Return the unit of time: a power of ten that cuts the span into at most `TICKS`."""
    finest = span / TICKS if span > 0 else 1e-9
    power = 10.0 ** math.ceil(math.log10(max(finest, 1e-9)))
    return max(power, 1e-6) if marks > MANY else power


def _needs_sums(marks: pl.DataFrame) -> bool:
    return bool(marks.height) and not bool((marks["calls"] == 1).all())


def _values(marks: pl.DataFrame, origin: float, tick: float) -> dict[str, Whole]:
    begin, end = (_ticks(marks[name], origin, tick) for name in ("start", "end"))
    size, offset, reach = (_bounded(marks[name]) for name in ("bytes", "offset", "reach"))
    # Where a rank reads on, an offset is the previous one's end: nothing to store.
    expected = np.concatenate(([0], (offset + size)[:-1])) if len(offset) else offset
    layer, operation = (marks[name].to_physical().to_numpy() for name in ("layer", "operation"))
    has_place = _present(marks["offset"])
    return {
        "start": np.diff(begin, prepend=0),
        "duration": end - begin,
        "rank": np.diff(marks["rank"].to_numpy().astype(np.int64), prepend=0),
        "file": np.diff(_numbered(marks["file"]), prepend=0),
        "bytes": size,
        "offset": offset - expected,
        "kind": layer.astype(np.int64) * 16 + operation,
        "flags": HAS_BYTES * _present(marks["bytes"]) + HAS_PLACE * has_place,
        "calls": marks["calls"].to_numpy().astype(np.int64),
        "busy": _ticks(marks["seconds"], 0.0, tick),
        "extent": np.where(has_place > 0, np.maximum(reach - offset, 0), 0),
    }


def _function_names(marks: pl.DataFrame) -> tuple[str, ...]:
    """The names of functions, most frequent first; none where the trace does not name them."""
    named = marks["function"].drop_nulls()
    counted = named.value_counts(sort=True).head(MOST_FUNCTIONS) if len(named) else None
    return () if counted is None else tuple(counted["function"].cast(pl.String))


def _named_values(marks: pl.DataFrame, functions: tuple[str, ...]) -> dict[str, Whole]:
    values: dict[str, Whole] = {}
    if marks["process"].n_unique() > marks["rank"].n_unique():  # ranks with several threads
        values["process"] = np.diff(_numbered(marks["process"]), prepend=0)
    if functions:
        numbers = pl.Series(np.arange(1, len(functions) + 1, dtype=np.int64))
        code = marks["function"].cast(pl.String).replace_strict(
            pl.Series(functions), numbers, default=0, return_dtype=pl.Int64
        )  # fmt: skip
        values["function"] = code.fill_null(0).to_numpy()
    return values


def _ticks(seconds: pl.Series, origin: float, tick: float) -> Whole:
    ticks = np.rint((seconds.fill_null(0.0).to_numpy() - origin) / tick)
    whole: Whole = np.clip(np.nan_to_num(ticks), 0, LARGEST).astype(np.int64)
    return whole


def _bounded(sizes: pl.Series) -> Whole:
    whole: Whole = np.clip(sizes.fill_null(0).to_numpy(), 0, LARGEST).astype(np.int64)
    return whole


def _numbered(files: pl.Series) -> Whole:
    numbers: Whole = (files.cast(pl.Int64) + 1).fill_null(0).to_numpy()
    return numbers


def _present(values: pl.Series) -> Whole:
    present: Whole = values.is_not_null().to_numpy().astype(np.int64)
    return present


def _width(values: Whole) -> int:
    """How many bytes hold every value in two's complement: planes of zeros take time to read."""
    if not len(values):
        return 1
    widest = max(int(values.max()), -int(values.min()) - 1)
    return widest.bit_length() // 8 + 1


def _planes(values: Whole, width: int) -> bytes:
    """All lowest bytes first, then the next, as many as a value is wide."""
    raw = np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(raw[:, :width].T).tobytes()
