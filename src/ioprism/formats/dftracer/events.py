"""Read the calls of DFTracer files as events, several pieces at a time."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import (
    RELATIVE,
    RELATIVE_BELOW,
    UNKNOWN,
    Call,
    FilePointers,
    classify,
    nullable,
    pointer_key,
)
from ioprism.formats.dftracer.calls import (
    CallColumns,
    CallParser,
    FileIndex,
    moved_bytes,
    offsets,
)
from ioprism.formats.dftracer.lines import LARGE_PIECE, Trouble, chunks, pieces
from ioprism.formats.dftracer.survey import Segment
from ioprism.formats.dftracer.templates import PADDING
from ioprism.model.schema import EVENTS, OPERATIONS, Layer, Operation, join_small
from ioprism.model.trace import Completeness, Warn
from ioprism.units import format_counted

CORES = os.cpu_count() or 1
WORKERS = min(8, CORES - 1) if CORES > 2 else 0  # beside what is done with the calls
LARGEST_TASK = 64 * 2**20  # bytes of text inflated by one task; longer stretches are streamed
BATCH = 2**18  # events per table
LONGEST = 10**9  # seconds from the trace's start; more is damage
_CLASSES = {"POSIX": "posix", "STDIO": "stdio"}
_OWN = "dftracer"  # events that DFTracer writes about itself
_DATA = OPERATIONS.index("write")  # reads and writes come first


Task = Callable[[], Iterable[CallColumns]]


@dataclass(frozen=True, slots=True, eq=False)
class CallSource:
    """One file, or a range of it, and how to understand it."""

    path: Path
    segments: tuple[Segment, ...]
    origin: int  # the trace's start in the file's clock ticks
    per_second: int
    processes: pl.DataFrame  # pid, tid, process, rank
    own_hashes: Mapping[str, int]  # those that mean another file here


# What is lost, and its wording: singular, plural where it is irregular, and the rest.
_LOSSES = {
    "damaged": ("damaged line", None, "left out"),
    "impossible": ("call", None, "with impossible times left out"),
    "undefined": ("call", None, "with an undefined file hash"),
    "sums": ("line", None, "with sums instead of calls left out"),
    "bare": ("read or write", "reads and writes",
             "without file and size; record with DFTRACER_INC_METADATA=1"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class DftracerPartition:
    """The calls of some files, or of a range of one."""

    sources: tuple[CallSource, ...]
    index: FileIndex

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        return join_small_frames(frame for s in self.sources for frame in self._frames(s, warn))

    def _frames(
        self, source: CallSource, warn: Warn, pointers: FilePointers | None = None
    ) -> Iterator[pl.DataFrame]:
        index, pointers = self.index, pointers or FilePointers()
        if source.own_hashes:
            index = FileIndex({**index.by_hash, **source.own_hashes}, index.by_path)
        parser = CallParser(index)
        events = _Events(source, parser, pointers)
        for calls in in_order(tasks_of(source.path, source.segments, parser.read, Trouble())):
            for name in ("damaged", "sums", "undefined"):
                events.lost[name] += getattr(calls, name)
            if len(calls.kind):
                yield events.frame(calls)
        for name, (one, many, what) in _LOSSES.items():
            if events.lost[name]:
                counted = format_counted(events.lost[name], one, many)
                warn(f"{source.path.name}: {counted} {what}")


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

    earlier: tuple[CallSource, ...] = ()
    relay: Relay = field(default_factory=Relay)

    @property
    def continues(self) -> int:
        """How many of the partitions before this one belong to the same file."""
        return len(self.earlier)

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events; what was not read before in this process is replayed first."""
        pointers = self.relay.pointers.pop(self.continues, None)
        if pointers is None:
            pointers = join_moves(self._read(source).moves for source in self.earlier)
        yield from join_small_frames(self._frames(self.sources[0], warn, pointers))
        self.relay.pointers[self.continues + 1] = pointers

    def prepare(self) -> PreparedRange:
        """Read the range without knowing what came before it."""
        return self._read(self.sources[0])

    def _read(self, source: CallSource) -> PreparedRange:
        pointers, noted = FilePointers(unset=RELATIVE), Completeness()
        frames = tuple(self._frames(source, noted.warn, pointers))
        return PreparedRange(frames, pointers, noted.warnings)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRange:
    """A range that was read alone: offsets that depend on earlier calls are relative."""

    frames: tuple[pl.DataFrame, ...]
    moves: FilePointers
    warnings: tuple[str, ...]

    def continue_after(self, earlier: Sequence[FilePointers], warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events, knowing how the ranges before this one have moved file pointers."""
        for message in self.warnings:
            warn(message)
        before = join_moves(earlier).at
        table = pl.DataFrame(
            {"key": list(before), "before": list(before.values())},
            schema={"key": pl.Int64, "before": pl.Int64},
        ).filter(pl.col("before") != UNKNOWN)
        return join_small_frames(_with_absolute_offsets(frame, table) for frame in self.frames)


def _with_absolute_offsets(frame: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Turn relative offsets into those of the file; null where it is not known."""
    relative = (frame["offset"] < RELATIVE_BELOW).fill_null(False)
    if not relative.any():
        return frame
    key = pointer_key(frame["process"].to_numpy(), frame["file"].fill_null(0).to_numpy())
    earlier = pl.DataFrame({"key": key}).join(before, on="key", how="left", maintain_order="left")
    own = frame["offset"] - RELATIVE + earlier["before"]
    return frame.with_columns(offset=own.zip_with(relative, frame["offset"]))


def join_moves(moves: Iterable[FilePointers]) -> FilePointers:
    """Return where file pointers stand after some ranges, from the file's beginning on."""
    pointers = FilePointers()
    for one in moves:
        pointers.advance(one)
    return pointers


def join_small_frames(frames: Iterable[pl.DataFrame]) -> Iterator[pl.LazyFrame]:
    """Yield tables of about `BATCH` events, each in one piece of memory.

    A trace may have 100,000 small files: what can be done for many of them is done here.
    """
    codes = {
        "layer": pl.col("layer").cat.to(Layer),
        "operation": pl.col("operation").cat.to(Operation),
    }
    tables = (table.rechunk().with_columns(**codes) for table in join_small(frames, BATCH))
    return (EVENTS.conform(table).lazy() for table in tables)


def tasks_of(
    path: Path,
    segments: Sequence[Segment],
    read: Callable[[bytes], CallColumns],
    trouble: Trouble,
) -> Iterator[Task]:
    """Yield what can be done at the same time: to inflate and parse a segment each."""
    for segment in segments:
        source = chunks(
            path, trouble, start=segment.start, stop=segment.stop, stretch=segment.stretch
        )
        text = pieces(source, trouble, size=LARGE_PIECE, padding=b"\n" * PADDING)
        if segment.size <= LARGEST_TASK:
            yield partial(map, read, text)
        else:
            for piece in text:
                yield partial(map, read, [piece])


def in_order(tasks: Iterator[Task]) -> Iterator[CallColumns]:
    """Run tasks in threads, a few ahead of what is asked for, and keep their order.

    Two cores are busy without them, and what waits takes memory.
    """
    if not WORKERS:
        for task in tasks:
            yield from task()
        return
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="dftracer") as pool:
        running: deque[Future[list[CallColumns]]] = deque()
        for task in tasks:
            running.append(pool.submit(lambda one: list(one()), task))
            if len(running) > WORKERS:
                yield from running.popleft().result()
        for last in running:
            yield from last.result()


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Turns parsed calls into events."""

    source: CallSource
    parser: CallParser
    pointers: FilePointers
    lost: Counter[str] = field(default_factory=Counter)  # by key of _LOSSES

    def frame(self, every: CallColumns) -> pl.DataFrame:
        kinds = _Kinds.of(self.parser.kinds)
        calls = self._possible(every, kinds)
        layer, operation = kinds.layer[calls.kind], kinds.operation[calls.kind]
        process, rank = self._processes(calls)
        moved = moved_bytes(calls, layer, operation)
        offset = offsets(
            calls, process.to_numpy(), layer, operation,
            kinds.positional[calls.kind], moved, self.pointers,
        )  # fmt: skip
        bare = (operation <= _DATA) & (calls.file == UNKNOWN) & (moved == UNKNOWN)
        self.lost["bare"] += int(np.count_nonzero(bare))
        begin, took = (pl.Series(calls[key]) for key in ("ts", "dur"))
        start = (begin - self.source.origin) / self.source.per_second
        return pl.DataFrame(
            {
                "start": start,
                "end": start + took / self.source.per_second,
                "rank": rank,
                "process": process,
                "file": nullable(calls.file.astype(np.uint32), calls.file < 0),
                "layer": layer,
                "operation": operation,
                "function": kinds.names.gather(calls.kind),
                "offset": nullable(offset, offset == UNKNOWN),
                "bytes": nullable(moved, moved == UNKNOWN),
            }
        )

    def _possible(self, calls: CallColumns, kinds: _Kinds) -> CallColumns:
        """The calls without DFTracer's own marks and those with damaged times."""
        longest = LONGEST * self.source.per_second
        begin, took = calls["ts"], calls["dur"]
        origin = self.source.origin
        possible = (begin >= max(0, origin - longest)) & (begin <= origin + longest)
        possible &= (took >= 0) & (took < longest)
        if possible.all() and not kinds.own.any():
            return calls
        foreign = ~kinds.own[calls.kind]
        possible &= foreign
        self.lost["impossible"] += int(foreign.sum()) - int(possible.sum())
        return calls.only(possible)

    def _processes(self, calls: CallColumns) -> tuple[pl.Series, pl.Series]:
        known = self.source.processes
        if known.height == 1:
            return tuple(
                known[name].new_from_index(0, len(calls.kind)) for name in ("process", "rank")
            )  # type: ignore[return-value]
        both = pl.DataFrame({key: calls[key] for key in ("pid", "tid")})
        matched = both.join(known, on=["pid", "tid"], how="left", maintain_order="left")
        return matched["process"].fill_null(0), matched["rank"].fill_null(0)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """What the kinds of calls are and do, as numbers."""

    names: pl.Series
    own: npt.NDArray[np.bool_]  # DFTracer's own marks
    layer: npt.NDArray[np.uint8]
    operation: npt.NDArray[np.uint8]
    positional: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, kinds: Mapping[tuple[str, str], int]) -> _Kinds:
        named = list(kinds)
        calls = [kind_of(*one) for one in named]
        return cls(
            pl.Series([name for name, _ in named], dtype=pl.Categorical()),
            np.array([category == _OWN for _, category in named], np.bool_),
            np.array([call.layer_code for call in calls], np.uint8),
            np.array([call.operation_code for call in calls], np.uint8),
            np.array([call.positional for call in calls], np.bool_),
        )


def kind_of(name: str, category: str) -> Call:
    """Return what a function of one of DFTracer's categories does."""
    call = classify(name)
    if category in _CLASSES:
        return Call(_CLASSES[category], call.operation, positional=call.positional)
    if category.upper() in ("MPI", "MPIIO", "HDF5", "HIP") and call.layer != "other":
        return call
    return Call("application", "other")
