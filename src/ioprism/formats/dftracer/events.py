"""Read the calls of DFTracer files as events, several pieces at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from ioprism.formats.calls import Call, classify
from ioprism.formats.dftracer.lines import Trouble, chunks, pieces, portions
from ioprism.formats.dftracer.offsets import moved_bytes, numbers_of, offsets, pointer_key
from ioprism.formats.dftracer.parse import Parsed, parse
from ioprism.formats.dftracer.survey import Segment
from ioprism.formats.file_pointer import (
    RELATIVE,
    RELATIVE_BELOW,
    UNKNOWN,
    FilePointers,
    Integers,
)
from ioprism.model.schema import EVENTS, OPERATIONS, Layer, Operation
from ioprism.model.trace import Completeness, Warn
from ioprism.units import format_counted

CORES = os.cpu_count() or 1
WORKERS = min(8, CORES - 1) if CORES > 2 else 0  # beside what is done with the calls
LARGEST_TASK = 64 * 2**20  # bytes of text inflated by one task; longer stretches are streamed
BATCH = 2**18  # events handed on at once
LONGEST = 10**9  # seconds from the trace's start; more is damage
_CLASSES = {"POSIX": "posix", "STDIO": "stdio"}
_OWN = "dftracer"  # events that DFTracer writes about itself
_DATA = OPERATIONS.index("write")  # reads and writes come first


Task = Callable[[], Iterable[Parsed]]


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """How the trace numbers its files."""

    by_hash: pl.DataFrame  # fhash, file
    by_path: pl.DataFrame  # fname, file: of old versions, which write paths into every line


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One file, or a range of it, and how to understand it."""

    path: Path
    segments: tuple[Segment, ...]
    origin: int  # the trace's start in the file's clock ticks
    per_second: int
    processes: pl.DataFrame  # pid, tid, process, rank
    own_hashes: pl.DataFrame  # fhash, file: hashes that mean something else in this file


@dataclass(slots=True)
class _Damage:
    lines: int = 0
    calls: int = 0
    unnamed: int = 0
    bare: int = 0
    sums: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class DftracerPartition:
    """The calls of some files, or of a range of one."""

    sources: tuple[Source, ...]
    index: Index

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        return gathered(frame for s in self.sources for frame in self._frames(s, warn))

    def _frames(
        self, source: Source, warn: Warn, pointers: FilePointers | None = None
    ) -> Iterator[pl.DataFrame]:
        damage, pointers = _Damage(), pointers or FilePointers()
        read = partial(parse, without=self._needless())
        for parsed in in_order(tasks_of(source.path, source.segments, read, Trouble())):
            damage.lines += parsed.damaged
            damage.sums += parsed.sums
            if parsed.is_call.any():
                yield _Events(source, self.index, damage).frame(parsed, pointers)
        _report(source.path.name, damage, warn)

    def _needless(self) -> frozenset[str]:
        """What the survey has read already, or has seen that there is none of."""
        paths = () if len(self.index.by_path) else ("fname",)
        return frozenset(("hostname", *paths))


@dataclass(slots=True)
class Relay:
    """What a range leaves behind for the next one, if the same process reads both."""

    pointers: dict[int, FilePointers] = field(default_factory=dict)  # by range

    def __reduce__(self) -> tuple[type[Relay], tuple[()]]:
        """Travel empty: another process has not read the range before."""
        return Relay, ()


@dataclass(frozen=True, slots=True, eq=False)
class DftracerRange(DftracerPartition):
    """A range of one file: file pointers stand where the ranges before have left them."""

    earlier: tuple[Source, ...] = ()
    relay: Relay = field(default_factory=Relay)

    @property
    def continues(self) -> int:
        """How many of the partitions before this one belong to the same file."""
        return len(self.earlier)

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events; what was not read before in this process is replayed first."""
        pointers = self.relay.pointers.pop(self.continues, None)
        if pointers is None:
            pointers = joined(self._read(source).moves for source in self.earlier)
        yield from gathered(self._frames(self.sources[0], warn, pointers))
        self.relay.pointers[self.continues + 1] = pointers

    def prepared(self) -> PreparedRange:
        """Read the range without knowing what came before it."""
        return self._read(self.sources[0])

    def _read(self, source: Source) -> PreparedRange:
        pointers, noted = FilePointers(unset=RELATIVE), Completeness()
        frames = tuple(self._frames(source, noted.warn, pointers))
        return PreparedRange(frames, pointers, noted.warnings)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRange:
    """A range that was read alone: offsets that depend on earlier calls are relative."""

    frames: tuple[pl.DataFrame, ...]
    moves: FilePointers
    warnings: tuple[str, ...]

    def continued(self, earlier: Sequence[FilePointers], warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events, knowing how the ranges before this one have moved file pointers."""
        for message in self.warnings:
            warn(message)
        before = joined(earlier).at
        table = pl.DataFrame(
            {"key": list(before), "before": list(before.values())},
            schema={"key": pl.Int64, "before": pl.Int64},
        ).filter(pl.col("before") != UNKNOWN)
        return gathered(_placed(frame, table) for frame in self.frames)


def _placed(frame: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Turn relative offsets into those of the file; null where it is not known."""
    relative = (frame["offset"] < RELATIVE_BELOW).fill_null(False)
    if not relative.any():
        return frame
    key = pointer_key(frame["process"].to_numpy(), frame["file"].fill_null(0).to_numpy())
    found = pl.DataFrame({"key": key}).join(before, on="key", how="left", maintain_order="left")
    own = frame["offset"] - RELATIVE + found["before"]
    return frame.with_columns(offset=own.zip_with(relative, frame["offset"]))


def joined(moves: Iterable[FilePointers]) -> FilePointers:
    """Return where file pointers stand after some ranges, from the file's beginning on."""
    pointers = FilePointers()
    for one in moves:
        pointers.advance(one)
    return pointers


def gathered(frames: Iterable[pl.DataFrame]) -> Iterator[pl.LazyFrame]:
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
    path: Path,
    segments: Sequence[Segment],
    read: Callable[[Iterable[bytes]], Parsed],
    trouble: Trouble,
) -> Iterator[Task]:
    """Yield what can be done at the same time: to inflate and parse a segment each."""
    for segment in segments:
        source = chunks(
            path, trouble, start=segment.start, stop=segment.stop, stretch=segment.stretch
        )
        text = pieces(source, trouble)
        if segment.size <= LARGEST_TASK:
            yield partial(map, read, portions(text))
        else:
            for portion in portions(text):
                yield partial(map, read, [list(portion)])


def in_order(tasks: Iterator[Task]) -> Iterator[Parsed]:
    """Run tasks in threads, a few ahead of what is asked for, and keep their order.

    Two cores are busy without them, and what waits takes memory.
    """
    if not WORKERS:
        for task in tasks:
            yield from task()
        return
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="dftracer") as pool:
        running: deque[Future[list[Parsed]]] = deque()
        for task in tasks:
            running.append(pool.submit(_done, task))
            if len(running) > WORKERS:
                yield from running.popleft().result()
        for last in running:
            yield from last.result()


def _done(task: Task) -> list[Parsed]:
    return list(task())


def _report(name: str, damage: _Damage, warn: Warn) -> None:
    if damage.lines:
        warn(f"{name}: {format_counted(damage.lines, 'damaged line')} left out")
    if damage.calls:
        warn(f"{name}: {format_counted(damage.calls, 'call')} with impossible times left out")
    if damage.unnamed:
        warn(f"{name}: {format_counted(damage.unnamed, 'call')} with an undefined file hash")
    if damage.sums:
        warn(f"{name}: {format_counted(damage.sums, 'line')} with sums instead of calls left out")
    if damage.bare:
        bare = format_counted(damage.bare, "read or write", "reads and writes")
        warn(f"{name}: {bare} without file and size; record with DFTRACER_INC_METADATA=1")


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Turns parsed calls into events."""

    source: Source
    index: Index
    damage: _Damage

    def frame(self, parsed: Parsed, pointers: FilePointers) -> pl.DataFrame:
        calls = self._with_possible_times(parsed)
        kinds = _kinds(calls)
        file = self._files(calls)
        process, rank = self._processes(calls)
        layer, operation = kinds["layer"].to_numpy(), kinds["operation"].to_numpy()
        numbers = numbers_of(calls)
        moved = moved_bytes(numbers, layer, operation)
        offset = offsets(
            numbers, process.to_numpy(), file, layer, operation, kinds["positional"].to_numpy(),
            moved, pointers,
        )  # fmt: skip
        self._count(calls, operation, file, moved)
        start = (calls["ts"] - self.source.origin) / self.source.per_second
        unknown = pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(calls))
        return pl.DataFrame(
            {
                "start": start,
                "end": start + calls["dur"] / self.source.per_second,
                "rank": rank,
                "process": process,
                "file": _nullable(file, UNKNOWN).cast(pl.UInt32),
                "layer": kinds["layer"].cast(pl.UInt8).cat.to(Layer),
                "operation": kinds["operation"].cast(pl.UInt8).cat.to(Operation),
                "function": calls["name"],
                "collective": unknown,
                "nonblocking": unknown,
                "offset": _nullable(offset, UNKNOWN),
                "bytes": _nullable(moved, UNKNOWN),
            },
            schema=EVENTS.schema,
        )

    def _with_possible_times(self, parsed: Parsed) -> pl.DataFrame:
        """The calls without DFTracer's own marks and those with damaged times."""
        longest = LONGEST * self.source.per_second
        begin, took = pl.col("ts"), pl.col("dur")
        possible = begin.ge(0) & took.is_between(0, longest, closed="left")
        possible &= (begin - self.source.origin).is_between(-longest, longest)
        foreign = parsed.is_call & parsed.rows["cat"].ne_missing(_OWN)
        keep = foreign & parsed.rows.select(possible).to_series()
        self.damage.calls += int(foreign.sum()) - int(keep.sum())
        return parsed.rows if keep.all() else parsed.rows.filter(keep)

    def _processes(self, calls: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        known = self.source.processes
        if known.height == 1:
            return tuple(known[name].new_from_index(0, len(calls)) for name in ("process", "rank"))  # type: ignore[return-value]
        found = calls.select("pid", "tid").join(
            known, on=["pid", "tid"], how="left", maintain_order="left"
        )
        return found["process"].fill_null(0), found["rank"].fill_null(0)

    def _files(self, calls: pl.DataFrame) -> Integers:
        """Row of the file table; UNKNOWN where a call has no file."""
        hashes = calls.select("fhash")
        file = _looked_up(hashes, self.index.by_hash)
        if len(self.source.own_hashes):
            file = _looked_up(hashes, self.source.own_hashes).fill_null(file)
        self.damage.unnamed += file.null_count() - hashes["fhash"].null_count()
        if len(self.index.by_path):
            file = file.fill_null(_looked_up(calls.select("fname"), self.index.by_path))
        return file.cast(pl.Int64).fill_null(UNKNOWN).to_numpy()

    def _count(
        self, calls: pl.DataFrame, operation: Integers, file: Integers, moved: Integers
    ) -> None:
        bare = (operation <= _DATA) & (file == UNKNOWN) & (moved == UNKNOWN)
        self.damage.bare += int((bare & calls["fhash"].is_null().to_numpy()).sum())


def _looked_up(names: pl.DataFrame, table: pl.DataFrame) -> pl.Series:
    found = names.join(table, on=names.columns[0], how="left", maintain_order="left")
    return found["file"]


def _kinds(calls: pl.DataFrame) -> pl.DataFrame:
    """What each call is and does, as numbers."""
    names, categories = (calls[key].to_physical().cast(pl.Int64) for key in ("name", "cat"))
    key = names + categories.fill_null(-1) * 2**32
    first = key.arg_unique()
    kinds = [
        kind_of(name, category or "") for name, category in calls[first, ["name", "cat"]].rows()
    ]
    table = pl.DataFrame({"key": key[first]}).with_columns(
        layer=pl.Series([kind.layer_code for kind in kinds], dtype=pl.Int64),
        operation=pl.Series([kind.operation_code for kind in kinds], dtype=pl.Int64),
        positional=pl.Series([kind.positional for kind in kinds], dtype=pl.Boolean),
    )
    return pl.DataFrame({"key": key}).join(table, on="key", how="left", maintain_order="left")


def kind_of(name: str, category: str) -> Call:
    """Return what a function of one of DFTracer's categories does."""
    call = classify(name)
    if category in _CLASSES:
        return Call(_CLASSES[category], call.operation, positional=call.positional)
    if category.upper() in ("MPI", "MPIIO", "HDF5", "HIP") and call.layer != "other":
        return call
    return Call("application", "other")


def _nullable(values: Integers, missing: int) -> pl.Series:
    series = pl.Series(values)
    absent = values == missing
    return series.set(pl.Series(absent), None) if absent.any() else series
