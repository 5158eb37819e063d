"""Parts of a timeline at any zoom, and its marks as compact bytes.

Neighbours in a sorted table differ little, so differences are small; their high bytes are
nearly all zero and lie together, so deflate makes them vanish.

Wide windows are answered from runs that were joined once, at three widths; narrow ones from
the calls themselves. Neither ever returns much more than a screen can show.
"""

from __future__ import annotations

import math
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from isal import isal_zlib

from ioprism.formats.reading import THREADS
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Partition, Trace
from ioprism.text import printable
from ioprism.views.timeline import (
    CallMarks,
    Runs,
    Timeline,
    Window,
    marks_of_runs,
    order_marks,
    order_runs,
    stretch,
)

Whole = npt.NDArray[np.int64]

LARGEST = 2**53 - 1  # the last whole number that a script can tell from its neighbour
TICKS = 2**48  # nanoseconds of three days; scripts hold whole numbers up to 2**53
MANY = 100_000  # marks from which on a microsecond is fine enough
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

    def deflate(self) -> bytes:
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
    columns = (*(EXACT if (marks["calls"] == 1).all() else RUNS), *NAMES)
    held = tuple((name, _width(values[name])) for name in columns if name in values)
    planes = b"".join(_planes(values[name], width) for name, width in held)
    return Packed(planes, marks.height, shown.start, tick, held, functions)


def tick_of(span: float, marks: int) -> float:
    """Return the unit of time: a power of ten that cuts the span into at most `TICKS`."""
    finest = span / TICKS if span > 0 else 1e-9
    power = 10.0 ** math.ceil(math.log10(max(finest, 1e-9)))
    return max(power, 1e-6) if marks > MANY else power


def _values(marks: pl.DataFrame, origin: float, tick: float) -> dict[str, Whole]:
    begin, end = (_ticks(marks[name], origin, tick) for name in ("start", "end"))
    size, offset, reach = (_clip_sizes(marks[name]) for name in ("bytes", "offset", "reach"))
    # Where a rank reads on, an offset is the previous one's end: nothing to store.
    expected = np.concatenate(([0], (offset + size)[:-1])) if len(offset) else offset
    layer, operation = (marks[name].to_physical().to_numpy() for name in ("layer", "operation"))
    has_place = _present(marks["offset"])
    return {
        "start": np.diff(begin, prepend=0),
        "duration": end - begin,
        "rank": np.diff(marks["rank"].to_numpy().astype(np.int64), prepend=0),
        "file": np.diff(_file_numbers(marks["file"]), prepend=0),
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
        values["process"] = np.diff(_file_numbers(marks["process"]), prepend=0)
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


def _clip_sizes(sizes: pl.Series) -> Whole:
    whole: Whole = np.clip(sizes.fill_null(0).to_numpy(), 0, LARGEST).astype(np.int64)
    return whole


def _file_numbers(files: pl.Series) -> Whole:
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
    """All lowest bytes first, then the next ones, up to the width of a value."""
    raw = np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(raw[:, :width].T).tobytes()


MOST_HELD = 25_000_000  # events in memory; more are kept in a folder for as long as they are used
MOST_CALLS = 60_000  # of a tile; more are joined to runs
LEVELS = (1024, 2048, 4096)  # columns of the whole picture
FEWEST = 500  # columns that a window must have to be answered from a level
ROWS = 128  # ranks share rows beyond this
NEEDED = ("start", "end", "rank", "process", "file", "layer", "operation", "function", "offset",
          "bytes")  # fmt: skip


@dataclass(slots=True, eq=False)
class Tiles:
    """The calls of a trace, and runs of them over the whole of it, made when first needed."""

    calls: pl.LazyFrame
    start: float
    end: float
    ranks: int
    count: int  # calls
    _levels: dict[int, pl.DataFrame] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def tile(
        self, start: float, end: float, *, columns: int, ranks: tuple[int, int] | None = None
    ) -> Timeline:
        """Return the marks of a window of time and ranks."""
        share = (end - start) / max(self.end - self.start, 1e-9)
        fitting = [level for level in LEVELS if share * level >= FEWEST]
        if fitting and ranks is None and self.count > MOST_CALLS:
            return self._from_level(fitting[0], Window(start, end))
        return self._from_calls(start, end, columns, ranks)

    def whole(self) -> Timeline:
        """Return the whole picture, coarsely."""
        return self.tile(self.start, self.end, columns=LEVELS[0])

    def level(self, columns: int) -> pl.DataFrame:
        """Return the runs of the whole picture in this many columns."""
        with self._lock:
            if columns not in self._levels:
                width = stretch(self.start, self.end, columns)
                runs = (
                    Runs(width, row_step(self.ranks))
                    .partial(self.calls)
                    .collect(engine="streaming")
                )
                self._levels[columns] = order_runs(marks_of_runs(runs))
            return self._levels[columns]

    def _from_level(self, columns: int, window: Window) -> Timeline:
        kept = window.of(self.level(columns).lazy()).collect()
        width = stretch(self.start, self.end, columns)
        step = row_step(self.ranks)
        return Timeline(kept, self.start, self.end, self.count, width, rank_step=step)

    def _from_calls(
        self, start: float, end: float, columns: int, ranks: tuple[int, int] | None
    ) -> Timeline:
        kept = Window(start, end, ranks).of(self.calls).collect()
        if kept.height <= MOST_CALLS:
            marks = order_marks(CallMarks().partial(kept.lazy()).collect())
            return Timeline(marks, self.start, self.end, self.count)
        step = row_step(self.ranks if ranks is None else ranks[1] - ranks[0] + 1)
        width = stretch(start, end, columns)
        runs = Runs(width, step).partial(kept.lazy()).collect()
        marks = order_runs(marks_of_runs(runs))
        return Timeline(marks, self.start, self.end, self.count, width, rank_step=step)


def row_step(ranks: int) -> int:
    """Return how many ranks share a row."""
    return max(1, -(-ranks // ROWS))


@contextmanager
def tiles_of(trace: Trace, *, most_held: int = MOST_HELD) -> Iterator[Tiles]:
    """Read a trace once and be ready for any window of it."""
    with tempfile.TemporaryDirectory(prefix="ioprism-") as place:
        calls, count = _keep_calls(trace, Path(place), most_held)
        span = calls.select(pl.col("start").min(), pl.col("end").max(), pl.col("rank").max())
        start, end, last = span.collect().row(0)
        ranks = max(trace.job.ranks or 1, (last or 0) + 1)
        runtime = trace.job.runtime or 1.0
        yield Tiles(calls, start or 0.0, runtime if end is None else end, ranks, count)


def _keep_calls(trace: Trace, place: Path, most_held: int) -> tuple[pl.LazyFrame, int]:
    """Keep what pictures need: in memory, or in files where it is too much for that."""
    pieces: list[pl.DataFrame] = [EVENTS.empty().select(NEEDED)]
    count = rows = 0
    for batch in _read_batches(trace):
        pieces.append(batch)
        rows += batch.height
        count += batch.height
        if rows > most_held:
            pl.concat(pieces).sort("start").write_parquet(place / f"{count}.parquet")
            pieces, rows = pieces[:1], 0
    if count == rows:
        return pl.concat(pieces, rechunk=False).lazy(), count
    pl.concat(pieces).sort("start").write_parquet(place / "rest.parquet")
    return pl.scan_parquet(sorted(place.glob("*.parquet")), glob=False), count


def _read_batches(trace: Trace) -> Iterator[pl.DataFrame]:
    """Yield the calls in their order; partitions that gain from it are read in parallel."""

    def read(partition: Partition) -> Iterator[pl.DataFrame]:
        for batch in partition.batches(trace.completeness.warn):
            yield batch.select(NEEDED).collect()

    waiting: deque[Future[list[pl.DataFrame]]] = deque()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="calls") as pool:
        for partition in trace.partitions:
            if not getattr(partition, "side_by_side", False):
                yield from read(partition)
                continue
            waiting.append(pool.submit(lambda one: list(read(one)), partition))
            if len(waiting) > THREADS:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
