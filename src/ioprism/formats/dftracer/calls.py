"""The calls of a text as numbers: most lines by templates, the others decoded one by one.

The sums per function and second of DFTracer's aggregated mode become the counters and the heat
map that Darshan would have written: calls, bytes and seconds per process, and bytes per second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import APPEND, UNKNOWN, FilePointers, Integers, classify, pointer_key
from ioprism.formats.darshan.meaning import POSIX
from ioprism.formats.dftracer.lines import (
    LARGE_PIECE,
    NUMBERS,
    Arguments,
    DecodedLines,
    Line,
    Trouble,
    bare_object,
    chunks,
    decode_line,
    decode_text,
    hash_of,
    pieces,
    whole_number,
    whole_numbers,
)
from ioprism.formats.dftracer.templates import (
    PADDING,
    Hashes,
    LineTemplate,
    Places,
    Text,
    template_of,
)
from ioprism.formats.reading import Budget
from ioprism.model.schema import OPERATIONS, Layer
from ioprism.model.trace import LARGEST_PLAUSIBLE, LAYERS, Warn
from ioprism.units import format_counted

UNDEFINED = -1  # a file whose hash is defined nowhere; `UNKNOWN`: a call without file
FILE = "fhash"
FEW_TEMPLATES, MOST_TEMPLATES = 16, 64  # the first are of one thread each
FEW = 256  # a template has to fit at least one line in 256
TRIES = 4  # lines that become no template until the others are left


class CallColumns:
    """Some calls in the order of the file, as columns of numbers; and what else there was."""

    def __init__(self, height: int) -> None:
        self.kind = np.full(height, UNDEFINED)  # row of `CallParser.kinds`
        self._columns: dict[str, Integers] = {}
        self.damaged = 0  # lines
        self.sums = 0  # lines that stand for several calls
        self.undefined = 0  # calls with a hash that is defined nowhere

    def __getitem__(self, key: str) -> Integers:
        """Return a column to read or to write into; it is `UNKNOWN` at first."""
        if key not in self._columns:
            self._columns[key] = np.full(len(self.kind), UNKNOWN)
        return self._columns[key]

    @property
    def file(self) -> Integers:
        """Row of the file table; `UNKNOWN` and `UNDEFINED` where there is none."""
        return self[FILE]

    def only(self, wanted: npt.NDArray[np.bool_]) -> CallColumns:
        """Return some of the calls."""
        if wanted.all():
            return self
        part = CallColumns(0)
        part.kind = self.kind[wanted]
        part._columns = {key: column[wanted] for key, column in self._columns.items()}
        part.damaged, part.sums, part.undefined = self.damaged, self.sums, self.undefined
        return part


@dataclass(frozen=True, eq=False)
class FileIndex:
    """How the trace numbers its files."""

    by_hash: Mapping[str, int]
    by_path: Mapping[str, int]  # of old versions, which write paths into every line

    @cached_property
    def hashes(self) -> Hashes:
        """The same for templates, made when the first is."""
        return Hashes(self.by_hash)

    def rows(self, calls: Iterable[Arguments]) -> Integers:
        """Return the files of decoded calls."""
        return np.array([self._row(one) for one in calls], np.int64)

    def _row(self, call: Arguments) -> int:
        """Look a file up: by its hash, else by its path."""
        code = hash_of(call.fhash)
        by_hash = UNKNOWN if code is None else self.by_hash.get(code, UNDEFINED)
        if by_hash < 0 and isinstance(call.fname, str):
            return self.by_path.get(call.fname, by_hash)
        return by_hash


@dataclass(slots=True, eq=False)
class CallParser:
    """Reads the text of one file, and learns from it how its lines are written."""

    index: FileIndex
    least: int = 2 * 2**20  # bytes of text for which templates are worth it
    kinds: dict[tuple[str, str], int] = field(default_factory=dict)  # by name and category
    _templates: list[LineTemplate] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def read(self, piece: bytes) -> CallColumns:
        """Read whole lines of text, with `PADDING` extra line ends after them."""
        text = Text(piece)
        calls = CallColumns(len(text.starts))
        rows = np.arange(len(text.starts))
        large = len(piece) - PADDING >= self.least or bool(self._templates)
        # Old versions write a path into each line, so that lines do not repeat.
        if large and not self.index.by_path:
            rows = self._read_by_templates(text, rows, calls)
        if len(rows):
            self._decode(text, rows, calls)
        return calls.only(calls.kind >= 0)

    def _decode(self, text: Text, rows: Places, calls: CallColumns) -> None:
        """Read lines that fit no template."""
        last = len(text.starts) - 1
        while last > 0 and not text.line(last).strip():
            last -= 1
        objects = {
            row: line
            for row in rows.tolist()
            if (line := bare_object(text.line(row), first=row == 0, last=row == last))
        }
        decoded = DecodedLines([decode_line(line) for line in objects.values()])
        calls.damaged = decoded.damaged_count
        calls.sums = sum(line.is_sum for line in decoded.others)
        lines = decoded.calls
        arguments = [line.arguments for line in lines]
        rows = np.array(list(objects), np.intp)[decoded.is_call]
        for key, column in decoded.required_numbers.items():
            calls[key][rows] = column[decoded.is_call]
        for key in NUMBERS:
            calls[key][rows] = whole_numbers(map(attrgetter(key), arguments))
        calls.kind[rows] = [self._kind(line.name, line.category) for line in lines]
        files = self.index.rows(arguments)
        calls.file[rows] = files
        calls.undefined = int(np.count_nonzero(files == UNDEFINED))

    def _read_by_templates(self, text: Text, rows: Places, calls: CallColumns) -> Places:
        """Read what fits templates, known and new; return the lines that fit none."""
        few = len(rows) // FEW
        hits: list[tuple[int, LineTemplate]] = []
        for template in self._templates:
            before = len(rows)
            rows = self._fit(template, text, rows, calls) if before > few else rows
            hits.append((before - len(rows), template))
        tries = TRIES
        while tries and len(rows) > few and len(hits) < MOST_TEMPLATES:
            line, before = text.line(int(rows[len(rows) * tries // (TRIES + 1)])), len(rows)
            one = template_of(
                line, NUMBERS, self.index.hashes, of_one_thread=len(hits) < FEW_TEMPLATES
            )
            rows = rows if one is None else self._fit(one, text, rows, calls)
            if one is not None and before - len(rows) > few:
                hits.append((before - len(rows), one))
            else:
                tries -= 1
        hits.sort(key=lambda hit: -hit[0])
        self._templates = [template for _, template in hits]
        return rows

    def _fit(self, template: LineTemplate, text: Text, rows: Places, calls: CallColumns) -> Places:
        """Read the lines that fit a template; return the others."""
        fitting, values = template.fit(text, rows, self.index.hashes)
        if not len(fitting):
            return rows
        calls.kind[fitting] = self._kind(template.name, template.category)
        for key, column in values.items():
            calls[key][fitting] = column
        for key, value in template.same.items():
            calls[key][fitting] = value
        left = np.zeros(len(calls.kind), np.bool_)
        left[rows] = True
        left[fitting] = False
        return np.flatnonzero(left)

    def _kind(self, name: str, category: str) -> int:
        known = self.kinds.get((name, category))
        if known is not None:
            return known
        with self._lock:
            return self.kinds.setdefault((name, category), len(self.kinds))


Codes = npt.NDArray[np.uint8]


def moved_bytes(calls: CallColumns, layer: Codes, operation: Codes) -> Integers:
    """Return what reads and writes moved: what they returned, else what they were asked for."""
    data = operation <= OPERATIONS.index("write")
    returned, asked, size = (calls[key] for key in ("ret", "count", "size"))
    moved = np.where(returned == UNKNOWN, asked, returned.clip(min=0))
    items = (layer == LAYERS.index("stdio")) & (size > 0) & (moved != UNKNOWN)
    if items.any():  # fread and fwrite count items
        moved = np.where(items, moved.clip(max=LARGEST_PLAUSIBLE) * size.clip(1, 2**20), moved)
    return np.where(data & (moved >= 0) & (moved < LARGEST_PLAUSIBLE), moved, UNKNOWN)


def offsets(
    calls: CallColumns, process: npt.NDArray[np.uint32],
    layer: Codes, operation: Codes, positional: npt.NDArray[np.bool_], moved: Integers,
    pointers: FilePointers,
) -> Integers:  # fmt: skip
    """Return the calls' own offsets, or the replayed file pointer."""
    is_open = operation == OPERATIONS.index("open")
    is_seek = operation == OPERATIONS.index("seek")
    data = operation <= OPERATIONS.index("write")
    worked = (calls["ret"] >= 0) | (calls["ret"] == UNKNOWN)
    named = (calls.file >= 0) & (layer <= LAYERS.index("stdio"))
    append = (calls["flags"] != UNKNOWN) & ((calls["flags"] & APPEND) != 0)
    amount = np.where(data, np.where(moved == UNKNOWN, 0, moved), UNKNOWN)
    amount = np.where(is_open & ~append, 0, amount)
    amount = np.where(is_seek, _seek_target(calls, layer), amount)
    positions = pointers.replay(
        pointer_key(process, calls.file),
        sets=named & worked & (is_open | is_seek),
        moves=named & data & ~positional,
        amount=amount,
    )
    own = np.where(calls["offset"] >= 0, calls["offset"], UNKNOWN)
    return np.where(data & named, np.where(positional, own, positions), UNKNOWN)


def _seek_target(calls: CallColumns, layer: Codes) -> Integers:
    """Where a seek leaves the pointer: lseek returns it, fseek only if it was absolute."""
    returned, offset, whence = (calls[key] for key in ("ret", "offset", "whence"))
    absolute = np.where((whence == 0) & (offset >= 0), offset, UNKNOWN)
    posix = layer == LAYERS.index("posix")
    return np.where(posix & (returned >= 0), returned, absolute)


MOST_SECONDS = 10_000_000
BYTES_OF_BIN = 32  # two directions, as a list and as a table
NO_COUNT = -1  # as Darshan writes what it does not know
_COUNTS = {"read": "POSIX_READS", "write": "POSIX_WRITES", "open": "POSIX_OPENS",
           "seek": "POSIX_SEEKS", "stat": "POSIX_STATS", "sync": "POSIX_FSYNCS",
           "metadata": "POSIX_MMAPS"}  # fmt: skip
_BYTES = {"read": "POSIX_BYTES_READ", "write": "POSIX_BYTES_WRITTEN"}
# Darshan counts the time of a sync as time of writing.
_TIMES = {"read": "POSIX_F_READ_TIME", "write": "POSIX_F_WRITE_TIME", "sync": "POSIX_F_WRITE_TIME"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The calls of one function in one second of one process."""

    pid: int
    second: int  # since the trace began
    operation: str
    count: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Aggregates:
    """All sums of a trace, read when they are first needed."""

    paths: Sequence[Path]
    rank_of: Mapping[int, int]  # by pid
    origin: int  # seconds since 1970
    per_second: int  # clock ticks
    warn: Warn = field(repr=False)

    def tables(self) -> dict[str, Callable[[], pl.DataFrame]]:
        """The loaders of the counter tables."""
        return {"POSIX": self.counters, "HEATMAP": self.heatmap} if self.paths else {}

    @cached_property
    def rows(self) -> list[Aggregate]:
        """Every sum in the files."""
        return [one for path in self.paths for one in self._read(path)]

    def _read(self, path: Path) -> Iterator[Aggregate]:
        trouble, damaged = Trouble(), 0
        for portion in pieces(chunks(path, trouble), trouble, size=LARGE_PIECE):
            decoded = decode_text(portion)
            damaged += decoded.damaged_count
            for line in filter(attrgetter("is_sum"), decoded.lines):
                aggregate = self._aggregate(line)
                damaged += aggregate is None
                if aggregate is not None:
                    yield aggregate
        if damaged:
            self.warn(f"{path.name}: {format_counted(damaged, 'damaged line')} left out")

    def _aggregate(self, line: Line) -> Aggregate | None:
        pid, ts, count = map(whole_number, (line.pid, line.ts, line.arguments.dft_cnt))
        if not isinstance(line.name, str) or pid is None or ts is None or count is None:
            return None
        second = ts // self.per_second - self.origin
        if not (0 <= second < MOST_SECONDS and 0 <= count < LARGEST_PLAUSIBLE):
            return None
        operation = classify(line.name).operation
        # The value of a single call has the plain key.
        moved = _plausible(line.arguments.ret_sum, line.arguments.ret)
        ticks = _plausible(line.arguments.dur_sum, line.arguments.dur)
        data = operation in _BYTES
        return Aggregate(
            pid, second, operation, count, max(0, moved) if data else 0, ticks / self.per_second
        )

    def counters(self) -> pl.DataFrame:
        """One row per process, with the columns of Darshan's POSIX module."""
        ranks = defaultdict[int, defaultdict[str, float]](lambda: defaultdict(float))
        for one in self.rows:
            sums, operation = ranks[self.rank_of.get(one.pid, 0)], one.operation
            if operation in _COUNTS:
                sums[_COUNTS[operation]] += one.count
                sums[_TIMES.get(operation, "POSIX_F_META_TIME")] += one.seconds
            if operation in _BYTES:
                sums[_BYTES[operation]] += one.bytes
        rows = [
            {"file": None, "rank": rank}
            | {name: int(sums.get(name, NO_COUNT)) for name in POSIX.counters}
            | {name: sums[name] for name in POSIX.times}
            for rank, sums in sorted(ranks.items())
        ]
        schema = {"file": pl.UInt32(), "rank": pl.Int32()}
        schema |= dict.fromkeys(POSIX.counters, pl.Int64())
        return pl.DataFrame(rows, schema=schema | dict.fromkeys(POSIX.times, pl.Float64()))

    def heatmap(self) -> pl.DataFrame:
        """Bytes per second and process."""
        last = max((one.second for one in self.rows), default=0)
        others = sum(path.stat().st_size for path in self.paths[1:])
        budget = Budget(self.paths[0], beside=others)
        bins: dict[int, dict[str, list[int]]] = {}
        for one in self.rows:
            if one.bytes and one.operation in _BYTES:
                rank = self.rank_of.get(one.pid, 0)
                if rank not in bins:
                    budget.take(BYTES_OF_BIN * (last + 1), "the heat map")
                    bins[rank] = {direction: [0] * (last + 1) for direction in _BYTES}
                bins[rank][one.operation][one.second] += one.bytes
        return pl.DataFrame(
            {
                "layer": pl.Series(["posix"] * len(bins), dtype=Layer),
                "rank": pl.Series(list(bins), dtype=pl.Int32),
                "bin_width": pl.Series([1.0] * len(bins), dtype=pl.Float64),
                "write": pl.Series([b["write"] for b in bins.values()], dtype=pl.List(pl.Int64)),
                "read": pl.Series([b["read"] for b in bins.values()], dtype=pl.List(pl.Int64)),
            }
        )


def _plausible(*values: object) -> int:
    """Return the first value that is a number, if it is plausible; 0 otherwise."""
    number = next((n for n in map(whole_number, values) if n is not None), 0)
    return number if abs(number) < LARGEST_PLAUSIBLE else 0
