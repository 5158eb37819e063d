"""What kind of call an event is, and which record of each perspective a call belongs to.

A perspective numbers what it tells apart from 0 on, so that a set of its records is a plain
array of flags. Names are looked up at the very end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import UsageError
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import KIB, LAYERS, MIB
from ioprism.plugins import declared, load

# Where the bins of request sizes begin: < 4 KiB, 4–16, 16–64, 64–256 KiB, … , > 64 MiB.
SIZE_EDGES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
SIZE_NAMES = (
    "below 4 KiB", "4 to 16 KiB", "16 to 64 KiB", "64 to 256 KiB", "256 KiB to 1 MiB",
    "1 to 4 MiB", "4 to 16 MiB", "16 to 64 MiB", "64 MiB and more", "no data",
)  # fmt: skip
NO_SIZE = len(SIZE_NAMES) - 1
SMALL_BINS = SIZE_EDGES.index(MIB) + 1  # bins of requests below 1 MiB
SLOTS = len(SIZE_NAMES) * 2
CLASSES = len(LAYERS) * len(OPERATIONS) * SLOTS
READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")

Codes = npt.NDArray[np.int64]


def call_class(random: pl.Expr) -> pl.Expr:
    """The class of a call from its layer, operation and bytes, and whether it is random."""
    size = pl.col("bytes")
    operation = pl.col("operation").to_physical().cast(pl.UInt16)
    layer = pl.col("layer").to_physical().cast(pl.UInt16)
    moves = (operation <= WRITE) & size.is_not_null()
    # Read and write are the first two operations, so one comparison finds both.
    bin_of_size = pl.when(moves).then(size_bin(size)).otherwise(NO_SIZE)
    slot = bin_of_size * 2 + random.cast(pl.UInt16)
    return ((layer * len(OPERATIONS) + operation) * SLOTS + slot).cast(pl.UInt16)


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin of a size in `SIZE_NAMES`."""
    # All edges are powers of four from 4 KiB on, so the length in bits tells the bin.
    bits = 64 - size.clip(lower_bound=0).bitwise_leading_zeros().cast(pl.Int16)
    return ((bits - 11) // 2).clip(0, len(SIZE_EDGES)).cast(pl.UInt16)


def layer_of(classes: Codes) -> Codes:
    """The number of each class's layer in `LAYERS`."""
    return classes // (SLOTS * len(OPERATIONS))


def operation_of(classes: Codes) -> Codes:
    """The number of each class's operation in `OPERATIONS`."""
    return classes // SLOTS % len(OPERATIONS)


def size_bin_of(classes: Codes) -> Codes:
    """The number of each class's size bin in `SIZE_NAMES`."""
    return classes % SLOTS // 2


def random_of(classes: Codes) -> npt.NDArray[np.bool_]:
    """Whether the calls of each class are random."""
    is_random: npt.NDArray[np.bool_] = classes % 2 == 1
    return is_random


Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RequestOrder:
    """How requests follow each other; flags of all calls, in their own order."""

    random: Flags
    undecided: Flags  # what came before the piece has to be known
    last: Flags  # of its stream
    rows: Whole  # of the requests, stream after stream
    gap: Whole  # of the requests: bytes from the end of the one before
    known: Flags  # whether the gap is

    def gaps(self, wanted: Flags) -> pl.Series:
        """Return the gaps of some requests, in the calls' order; null where unknown."""
        chosen = wanted[self.rows] & self.known
        known, gap = np.zeros(len(wanted), bool), np.zeros(len(wanted), np.int64)
        rows = self.rows[chosen]
        known[rows], gap[rows] = True, self.gap[chosen]
        return pl.Series(gap[wanted]).set(pl.Series(~known[wanted], dtype=pl.Boolean), None)


def walk(calls: pl.DataFrame, requests: Whole) -> RequestOrder:
    """Follow every stream through its requests.

    Args:
        calls: calls with process, file, class, start, end, bytes and reach (the byte behind
            the last one touched); `gap` where it is known already.
        requests: the rows of reads and writes whose place in the file is known.
    """
    stream, rows = _stream_after_stream(calls, requests)
    follows = np.zeros(len(rows), bool)
    follows[1:] = stream[1:] == stream[:-1]
    gap, known = _gaps(calls, rows, follows)
    same_gap, known_before = np.zeros_like(follows), np.zeros_like(follows)
    same_gap[1:] = gap[1:] == gap[:-1]
    known_before[1:] = follows[1:] & known[:-1]
    jumps = known & (gap != 0)
    random, undecided, last = np.zeros((3, calls.height), bool)
    random[rows] = jumps & known_before & ~same_gap
    undecided[rows] = ~known | (jumps & ~known_before)
    last[rows] = np.append(~follows[1:], True)[: len(rows)]
    return RequestOrder(random, undecided, last, rows, gap, known)


def _gaps(calls: pl.DataFrame, rows: Whole, follows: Flags) -> tuple[Whole, Flags]:
    """Return the bytes between each request and the one before, and whether they are known."""
    reach, size = (calls[name].fill_null(0).to_numpy()[rows] for name in ("reach", "bytes"))
    gap = np.zeros(len(rows), np.int64)
    gap[1:] = reach[1:] - size[1:] - reach[:-1]
    if "gap" not in calls.columns:
        return gap, follows
    known = calls["gap"].is_not_null().to_numpy()[rows]
    earlier = calls["gap"].fill_null(0).to_numpy()[rows]
    return np.where(known, earlier, gap), follows | known


def _stream_after_stream(calls: pl.DataFrame, requests: Whole) -> tuple[Numbers, Whole]:
    """Bring the rows of each stream together, by start; calls that begin together stay as are."""
    streams = _streams(calls)[requests]
    stream, rows = _group_streams(streams, requests)
    start = calls["start"].to_numpy()
    if _ascending(start) or _ascending(start[rows], within=stream):
        return stream, rows
    # A trace that is out of order says nothing about calls that begin together.
    keys = (calls[name].to_numpy()[requests] for name in ("reach", "end", "start"))
    order = np.lexsort((*keys, streams))
    return streams[order], requests[order]


def _ascending(values: npt.NDArray[np.float64], *, within: Numbers | None = None) -> bool:
    rises = values[1:] >= values[:-1]
    return bool(np.all(rises if within is None else rises | (within[1:] != within[:-1])))


def _group_streams(streams: Numbers, rows: Whole) -> tuple[Numbers, Whole]:
    bits = int(rows[-1]).bit_length() if len(rows) else 0
    if len(rows) and int(streams.max()).bit_length() + bits > 64:
        order = np.argsort(streams, kind="stable")
        return streams[order], rows[order]
    # Sorting plain numbers is several times faster than sorting positions.
    packed = (streams << np.uint64(bits)) | rows.astype(np.uint64)
    packed.sort()
    return packed >> np.uint64(bits), (packed & np.uint64(2**bits - 1)).astype(np.int64)


def _streams(calls: pl.DataFrame) -> Numbers:
    """Number the streams: one per process, file, layer and direction."""
    files = calls["file"].max()
    width = (files if isinstance(files, int) else 0) + 2
    file = pl.col("file").cast(pl.UInt64).fill_null(width - 1)
    kind = pl.col("class").cast(pl.UInt64) // SLOTS
    direction = kind // len(OPERATIONS) * 2 + kind % len(OPERATIONS)
    used = pl.col("process").cast(pl.UInt64).fill_null(2**32) * width + file
    return calls.select(used * (2 * len(LAYERS)) + direction).to_series().to_numpy()


GROUP = "ioprism.views"

MEANINGS: Mapping[str, str] = {
    "process": "one process, or thread where the trace distinguishes threads",
    "file": "one file",
    "time": "one time bucket",
    "rank": "one MPI rank",
    "host": "one node",
    "application": "one program of a workflow",
    "directory": "the folder of a file",
    "pattern": "files whose names differ in digits only",
    "extension": "what follows the last dot of a file's name",
    "depth": "how deep a file is in the folder tree",
    "mount": "a mounted file system",
    "filesystem": "a type of file system",
    "target": "the storage targets of a file",
    "layer": "an interface: posix, stdio, mpiio, …",
    "operation": "a kind of call: read, write, open, …",
    "function": "a call by its own name",
    "size": "a range of request sizes",
    "phase": "busy time buckets that follow each other without a pause",
}
OF_CALLS = ("layer", "operation", "function", "size")  # may differ within process, file and time
WIDEST = 2**20  # between integers that are numbered by distance, however many rows there are
_CLASSES: Mapping[str, tuple[Callable[[Codes], Codes], tuple[str, ...]]] = {
    "layer": (layer_of, LAYERS),
    "operation": (operation_of, OPERATIONS),
    "size": (size_bin_of, SIZE_NAMES),
}


@dataclass(frozen=True, slots=True, eq=False)
class TableView:
    """A view by a column of the table of files or processes. Plug-ins declare such views."""

    table: Literal["file", "process"]
    value: pl.Expr  # over the columns of that table: the same value, the same record
    meaning: str


_PROCESS_COLUMNS = ("rank", "host", "application")
_FILE_COLUMNS: Mapping[str, pl.Expr] = {
    **{n: pl.col(n) for n in ("directory", "pattern", "extension", "mount", "filesystem")},
    "depth": pl.col("directory").str.strip_chars_end("/").str.count_matches("/"),
    "target": pl.col("targets").list.eval(pl.element().cast(pl.String)).list.join(", "),
}
_TABLE_VIEWS: Mapping[str, TableView] = {
    **{n: TableView("process", pl.col(n), MEANINGS[n]) for n in _PROCESS_COLUMNS},
    **{n: TableView("file", value, MEANINGS[n]) for n, value in _FILE_COLUMNS.items()},
}


@dataclass(frozen=True, slots=True, eq=False)
class Perspective:
    """A way to look at the rows of the main view."""

    name: str
    codes: pl.Series  # of every row, from 0 on
    values: pl.Series  # what each code stands for; null where the trace does not say


def meanings() -> dict[str, str]:
    """Every view and what one of its records is, those of plug-ins last."""
    return {**MEANINGS, **{one.name: load(one).meaning for one in declared(GROUP)}}


def _table_view(name: str) -> TableView:
    if name in _TABLE_VIEWS:
        return _TABLE_VIEWS[name]
    view: TableView = next(load(one) for one in declared(GROUP) if one.name == name)
    return view


def check_views(names: tuple[str, ...]) -> None:
    """Refuse views that do not exist or come twice."""
    unknown = [name for name in names if name not in MEANINGS and name not in meanings()]
    if unknown or not names or len(set(names)) < len(names):
        what = f"there is no view {unknown[0]!r}" if unknown else "views must be named once each"
        raise UsageError(f"{what}.\nHint: views are {', '.join(meanings())}.")


def perspective(
    name: str, main: pl.DataFrame, *, files: pl.DataFrame, processes: pl.DataFrame
) -> Perspective:
    """Number the rows of the main view as this perspective sees them."""
    if name in ("process", "file"):
        return _number_rows(name, main[name])
    if name == "time":
        return _dense(name, main["time"])
    if name == "phase":
        return _phases(main["time"])
    if name == "function":
        return _dense(name, main["function"].cast(pl.String))
    if name in _CLASSES:
        decode, names = _CLASSES[name]
        codes = pl.Series(decode(main["class"].to_numpy().astype(np.int64)).astype(np.uint32))
        return Perspective(name, codes, pl.Series(names))
    view = _table_view(name)
    table = files if view.table == "file" else processes
    return _looked_up(name, main[view.table], table.select(view.table, view.value.alias(name)))


def _number_rows(name: str, rows: pl.Series) -> Perspective:
    """Numbers that already count from 0; null comes last."""
    highest = rows.max()
    size = highest + 1 if isinstance(highest, int) else 0
    values = pl.Series([*range(size), None], dtype=pl.UInt32)
    return Perspective(name, rows.fill_null(size), values)


def _dense(name: str, rows: pl.Series) -> Perspective:
    """Number different values from 0 on; null comes last."""
    if rows.dtype.is_integer() and (offset := _by_offset(name, rows.cast(pl.Int64))) is not None:
        return offset
    values = rows.unique().sort(nulls_last=True)
    numbers = pl.DataFrame({"value": values}).with_row_index("code")
    joined = pl.DataFrame({"value": rows}).join(
        numbers, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return Perspective(name, joined["code"], values)


def _by_offset(name: str, rows: pl.Series) -> Perspective | None:
    """Number integers by their distance from the least, unless they lie too far apart."""
    low, high = rows.min(), rows.max()
    if not isinstance(low, int) or not isinstance(high, int) or high - low > WIDEST:
        return None
    span = high - low + 1
    every = pl.int_range(low, high + 1, eager=True).extend(pl.Series([None], dtype=pl.Int64))
    return Perspective(name, (rows - low).fill_null(span).cast(pl.UInt32), every)


def _looked_up(name: str, rows: pl.Series, table: pl.DataFrame) -> Perspective:
    """Replace a row number by a column of the table it points into."""
    small = _dense(name, table[name])
    highest = max((int(s.max() or 0) for s in (rows, table.to_series(0)) if len(s)), default=0)  # type: ignore[arg-type]
    unknown = len(small.values)
    lookup = np.full(highest + 2, unknown, np.uint32)
    lookup[table.to_series(0).to_numpy()] = small.codes.to_numpy()
    codes = lookup[rows.fill_null(highest + 1).to_numpy()]
    values = pl.concat([small.values, pl.Series([None], dtype=small.values.dtype)])
    return Perspective(name, pl.Series(codes), values)


def _phases(time: pl.Series) -> Perspective:
    """Number the runs of busy buckets; a run's value is the bucket it begins with."""
    busy = time.unique().sort().drop_nulls()
    starts = (busy.diff() > 1).fill_null(True)
    table = pl.DataFrame({"time": busy, "phase": (starts.cum_sum() - 1).cast(pl.UInt32)})
    codes = pl.DataFrame({"time": time}).join(table, on="time", how="left", maintain_order="left")
    first = busy.filter(starts)
    values = pl.concat([first, pl.Series([None], dtype=first.dtype)])
    return Perspective("phase", codes["phase"].fill_null(len(first)), values)
