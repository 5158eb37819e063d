"""Read the calls of DFTracer files as events, several pieces at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import Call, classify
from ioprism.formats.dftracer.columns import Columns, Strings, parse
from ioprism.formats.dftracer.digits import Integers
from ioprism.formats.dftracer.forms import Forms
from ioprism.formats.dftracer.lines import Trouble, chunks, pieces
from ioprism.formats.dftracer.objects import MISSING, is_sum
from ioprism.formats.dftracer.offsets import moved_bytes, offsets
from ioprism.formats.dftracer.survey import Segment
from ioprism.formats.file_pointer import UNKNOWN, FilePointers
from ioprism.model.schema import EVENTS, OPERATIONS, Layer, Operation
from ioprism.model.trace import Warn

# On two cores, threads take turns with the interpreter: a fifth more work, and no sooner done.
WORKERS = max(1, min(8, (os.cpu_count() or 1) // 2))
LARGEST_TASK = 64 * 2**20  # bytes of text inflated by one task; longer stretches are streamed
BATCH = 2**18  # events handed on at once
LONGEST = 10**9  # seconds from the trace's start; more is damage
_CLASSES = {"POSIX": "posix", "STDIO": "stdio"}
_OWN = "dftracer"  # events that DFTracer writes about itself


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """How the trace numbers files and processes."""

    hashes: npt.NDArray[np.uint64]  # sorted
    hash_rows: npt.NDArray[np.uint32]  # of the file table
    paths: dict[str, int]  # row of the file table by path


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One file, and how to understand it."""

    path: Path
    segments: tuple[Segment, ...]
    origin: int  # the trace's start in the file's clock ticks
    per_second: int
    pairs: Integers  # pid and tid in one number, sorted
    processes: npt.NDArray[np.uint32]  # row of the process table by pair
    ranks: npt.NDArray[np.int32]
    own_hashes: npt.NDArray[np.uint64]  # hashes that mean something else in this file; sorted
    own_rows: npt.NDArray[np.uint32]


def pair_key(pid: Integers, tid: Integers) -> Integers:
    """Return one number for a process and its thread."""
    return (pid << 32) ^ (tid & 0xFFFFFFFF)


@dataclass(slots=True)
class _Damage:
    lines: int = 0
    calls: int = 0
    unnamed: int = 0
    bare: int = 0
    sums: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class DftracerPartition:
    """The calls of one or several files."""

    sources: tuple[Source, ...]
    index: Index

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        return _gathered(self._frames(warn))

    def _frames(self, warn: Warn) -> Iterator[pl.DataFrame]:
        for source in self.sources:
            damage, trouble = _Damage(), Trouble()
            tasks = tasks_of(source.path, source.segments, trouble)
            pointers = FilePointers()
            for columns in in_order(tasks):
                damage.lines += columns.damaged
                damage.sums += sum(is_sum(read) for read in columns.others)
                if len(columns):
                    yield _Events(source, self.index, damage).frame(columns, pointers)
            _report(source.path.name, damage, warn)


def _gathered(frames: Iterator[pl.DataFrame]) -> Iterator[pl.LazyFrame]:
    """Join small tables: what is done once for a table costs less, the fewer there are."""
    held: list[pl.DataFrame] = []
    height = 0
    for frame in filter(len, frames):
        held.append(frame)
        height += frame.height
        if height >= BATCH:
            yield pl.concat(held, rechunk=True).lazy()
            held, height = [], 0
    if held:
        yield pl.concat(held, rechunk=True).lazy()


def tasks_of(
    path: Path, segments: Sequence[Segment], trouble: Trouble
) -> Iterator[Callable[[], list[Columns]]]:
    """Yield what can be done at the same time: to inflate and parse a segment each."""
    forms = Forms()  # lines of one file look alike; tasks may learn from each other in any order
    for segment in segments:
        if segment.size <= LARGEST_TASK:
            yield partial(_read_segment, path, segment, trouble, forms)
        else:
            text = chunks(path, trouble, start=segment.start, stop=segment.stop)
            for piece in pieces(text, trouble):
                yield partial(_read_piece, piece, forms)


def _read_segment(path: Path, segment: Segment, trouble: Trouble, forms: Forms) -> list[Columns]:
    text = chunks(path, trouble, start=segment.start, stop=segment.stop)
    return [parse(piece, forms) for piece in pieces(text, trouble)]


def _read_piece(piece: bytes, forms: Forms) -> list[Columns]:
    return [parse(piece, forms)]


def in_order(tasks: Iterator[Callable[[], list[Columns]]]) -> Iterator[Columns]:
    """Run tasks in threads, a few ahead of what is asked for, and keep their order."""
    if WORKERS == 1:
        for task in tasks:
            yield from task()
        return
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="dftracer") as pool:
        running: deque[Future[list[Columns]]] = deque()
        for task in tasks:
            running.append(pool.submit(task))
            if len(running) > WORKERS:
                yield from running.popleft().result()
        for last in running:
            yield from last.result()


def _report(name: str, damage: _Damage, warn: Warn) -> None:
    if damage.lines:
        warn(f"{name}: {damage.lines} damaged lines left out")
    if damage.calls:
        warn(f"{name}: {damage.calls} calls with impossible times left out")
    if damage.unnamed:
        warn(f"{name}: {damage.unnamed} calls name a file by a hash that is nowhere defined")
    if damage.sums:
        warn(f"{name}: {damage.sums} lines hold sums instead of calls and are left out")
    if damage.bare:
        warn(
            f"{name}: {damage.bare} reads and writes have neither file nor size; "
            "record with DFTRACER_INC_METADATA=1"
        )


@dataclass(slots=True, eq=False)
class _Events:
    """Turns columns into events."""

    source: Source
    index: Index
    damage: _Damage
    calls: list[Call] = field(default_factory=list)

    def frame(self, columns: Columns, pointers: FilePointers) -> pl.DataFrame:
        start, end, sound = self._times(columns)
        kind = self._kinds(columns)
        process, rank = self._processes(columns)
        file = self._files(columns)
        layer, operation, positional = (
            np.array([getattr(call, name) for call in self.calls])[kind]
            for name in ("layer_code", "operation_code", "positional")
        )
        moved = moved_bytes(columns, layer, operation)
        offset = offsets(columns, process, file, layer, operation, positional, moved, pointers)
        self._count(columns, operation, file, moved)
        frame = pl.DataFrame(
            {
                "start": start,
                "end": end,
                "rank": rank,
                "process": process,
                "file": _nullable(file, -1).cast(pl.UInt32),
                "layer": pl.Series(layer.astype(np.uint8)).cat.to(Layer),
                "operation": pl.Series(operation.astype(np.uint8)).cat.to(Operation),
                "function": _names(columns.name),
                "collective": pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(start)),
                "nonblocking": pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(start)),
                "offset": _nullable(offset, UNKNOWN),
                "bytes": _nullable(moved, MISSING),
            },
            schema=EVENTS.schema,
        )
        return frame if sound.all() else frame.filter(pl.Series(sound))

    def _times(
        self, columns: Columns
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Seconds since the trace began, and which rows are calls with possible times."""
        tick = self.source.per_second
        own = np.array([value == _OWN for value in columns.cat.values])[columns.cat.codes]
        possible = (columns.ts >= 0) & (columns.dur >= 0) & (columns.dur < LONGEST * tick)
        start = (columns.ts - self.source.origin) / tick
        possible &= np.abs(start) < LONGEST
        self.damage.calls += int((~possible & ~own).sum())
        return start, start + columns.dur / tick, possible & ~own

    def _kinds(self, columns: Columns) -> Integers:
        """A number for each row's kind of call; `calls` lists them."""
        names, cats = columns.name.values, columns.cat.values
        pair = columns.name.codes.astype(np.int64) * len(cats) + columns.cat.codes
        present = np.flatnonzero(np.bincount(pair, minlength=len(names) * len(cats)))
        self.calls = [kind_of(names[p // len(cats)], cats[p % len(cats)]) for p in present.tolist()]
        numbers = np.zeros(len(names) * len(cats), np.int64)
        numbers[present] = np.arange(len(present))
        return np.asarray(numbers[pair], np.int64)

    def _processes(self, columns: Columns) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        key = pair_key(columns.pid, columns.tid)
        if (key == key[0]).all():
            place = np.full(len(key), np.searchsorted(self.source.pairs, key[0]))
        else:
            place = np.searchsorted(self.source.pairs, key)
        place = place.clip(0, len(self.source.pairs) - 1)
        return self.source.processes[place], self.source.ranks[place]

    def _files(self, columns: Columns) -> Integers:
        """The row of each call's file, -1 for none."""
        rows = np.full(len(columns), -1)
        if columns.path.values:
            known = [self.index.paths.get(path, -1) for path in columns.path.values]
            rows = np.array([*known, -1], np.int64)[columns.path.codes]
        hashed = np.flatnonzero(columns.has_hash)
        if len(hashed):
            wanted = columns.file_hash[hashed]
            found = _looked_up(wanted, self.index.hashes, self.index.hash_rows)
            own = _looked_up(wanted, self.source.own_hashes, self.source.own_rows)
            rows[hashed] = np.where(own >= 0, own, found)
            self.damage.unnamed += int((rows[hashed] < 0).sum())
        return np.asarray(rows, np.int64)

    def _count(
        self, columns: Columns, operation: Integers, file: Integers, moved: Integers
    ) -> None:
        data = operation <= OPERATIONS.index("write")
        bare = data & (file < 0) & (moved == MISSING) & ~columns.has_hash
        self.damage.bare += int(bare.sum())


def kind_of(name: str, category: str) -> Call:
    """Return what a function of one of DFTracer's categories does."""
    call = classify(name)
    if category in _CLASSES:
        return Call(_CLASSES[category], call.operation, positional=call.positional)
    if category.upper() in ("MPI", "MPIIO", "HDF5", "HIP") and call.layer != "other":
        return call
    return Call("application", "other")


def _looked_up(
    wanted: npt.NDArray[np.uint64],
    hashes: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
) -> Integers:
    if not len(hashes):
        return np.full(len(wanted), -1)
    place = np.searchsorted(hashes, wanted).clip(0, len(hashes) - 1)
    return np.where(hashes[place] == wanted, rows[place].astype(np.int64), -1)


def _names(names: Strings) -> pl.Series:
    return pl.Series(names.values, dtype=pl.Categorical()).gather(names.codes)


def _nullable(values: Integers, missing: int) -> pl.Series:
    series = pl.Series(values)
    absent = values == missing
    return series.set(pl.Series(absent), None) if absent.any() else series
