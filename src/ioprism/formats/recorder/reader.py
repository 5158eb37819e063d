"""Turn a Recorder folder into a trace: the calls of its ranks as events."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import UNKNOWN, FilePointers
from ioprism.formats.clocks import align_clocks
from ioprism.formats.reading import Reading
from ioprism.formats.recorder.meaning import AS_FIRST, Families, Meaning, families, meaning
from ioprism.formats.recorder.signatures import (
    Signature,
    SignatureTable,
    read_old_rank,
    read_old_start,
    read_signatures,
)
from ioprism.formats.recorder.streams import (
    ALL_SIGNATURES,
    SIGNATURES,
    Grammars,
    Integers,
    Stream,
    TraceLayout,
    blobs,
    broken,
    is_recorder,
    last_end,
    read_grammars,
    read_layout,
    read_section,
    read_stream,
    read_ticks,
)
from ioprism.model.schema import EVENTS, OPERATIONS, PROCESSES, Layer, Operation, file_table
from ioprism.model.trace import LAYERS, Completeness, Job, Trace, Warn
from ioprism.units import format_counted

BATCH = 250_000  # events in a table, about


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The signatures of one table, one array per fact, by the signature's number."""

    known: npt.NDArray[np.bool_]
    names: pl.Series  # categorical
    layer: npt.NDArray[np.uint8]
    operation: npt.NDArray[np.uint8]
    collective: pl.Series
    nonblocking: pl.Series
    positional: npt.NDArray[np.bool_]
    file: Integers  # -1: none
    handle: Integers  # number of the MPI file handle, -1: none
    opens: Integers
    bytes: Integers  # UNKNOWN: none
    offset: Integers
    offset_per_rank: Integers
    sets: npt.NDArray[np.bool_]
    amount: Integers
    moves: npt.NDArray[np.bool_]
    shifts_view: npt.NDArray[np.bool_]


def vocabulary(signatures: Mapping[int, Signature], paths: dict[str, int]) -> Vocabulary:
    """Understand every signature once; new paths are added to `paths`."""
    if isinstance(signatures, SignatureTable):
        alike = families(signatures)
        kinds = [signatures.row(row) for row in alike.first.tolist()]
        return _vocabulary(signatures.numbers, alike.of_row, kinds, paths, alike)
    numbers = np.array(list(signatures), np.int64)
    return _vocabulary(numbers, np.arange(len(numbers)), list(signatures.values()), paths)


def _vocabulary(
    numbers: Integers, kind_of: Integers, kinds: Sequence[Signature], paths: dict[str, int],
    alike: Families | None = None,
) -> Vocabulary:  # fmt: skip
    highest = int(numbers.max(initial=-1))
    size = highest + 1 if highest < 2**31 else 0
    kept = np.flatnonzero((numbers >= 0) & (numbers < size))
    rows = numbers[kept]
    meanings = [meaning(signature) for signature in kinds]
    handles: dict[str, int] = {}

    def spread(values: list[int], default: int, given: Integers | None = None) -> Integers:
        """By number: what the kind says, or the signature itself."""
        column = np.full(size, default, np.int64)
        each = np.array(values, np.int64)[kind_of] if values else np.zeros(0, np.int64)
        if given is not None:
            each = np.where(given == AS_FIRST, each, given)
        column[rows] = each[kept]
        return column

    def path(m: Meaning) -> int:
        return -1 if m.path is None else paths.setdefault(m.path, len(paths))

    def handle(name: str | None) -> int:
        return -1 if name is None else handles.setdefault(name, len(handles))

    def optional(value: int | None) -> int:
        return UNKNOWN if value is None else value

    def text(values: list[Any], dtype: pl.DataType) -> pl.Series:
        column = np.full(size, len(values), np.int64)
        column[rows] = kind_of[kept]
        return pl.Series([*values, None], dtype=dtype).gather(pl.Series(column))

    told = alike.bytes if alike is not None else None
    places = alike.offset if alike is not None else None
    amounts = alike.amount if alike is not None else None
    return Vocabulary(
        known=spread([1] * len(kinds), 0).astype(np.bool_),
        names=text([signature.function for signature in kinds], pl.Categorical()),
        layer=spread([m.call.layer_code for m in meanings], 0).astype(np.uint8),
        operation=spread([m.call.operation_code for m in meanings], 0).astype(np.uint8),
        collective=text([m.call.collective for m in meanings], pl.Boolean()),
        nonblocking=text([m.call.nonblocking for m in meanings], pl.Boolean()),
        positional=spread([m.call.positional for m in meanings], 0).astype(np.bool_),
        file=spread([path(m) for m in meanings], -1),
        handle=spread([handle(m.handle) for m in meanings], -1),
        opens=spread([handle(m.opens) for m in meanings], -1),
        bytes=spread([optional(m.bytes) for m in meanings], UNKNOWN, told),
        offset=spread(
            [UNKNOWN if m.offset is None else m.offset.base for m in meanings], UNKNOWN, places
        ),
        offset_per_rank=spread([0 if m.offset is None else m.offset.per_rank for m in meanings], 0),
        sets=spread([m.sets for m in meanings], 0).astype(np.bool_),
        amount=spread([optional(m.position if m.sets else m.moves) for m in meanings], 0, amounts),
        moves=spread([m.moves is not None for m in meanings], 0).astype(np.bool_),
        shifts_view=spread([m.shifts_view for m in meanings], 0).astype(np.bool_),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RecorderPartition:
    """The calls of some ranks."""

    layout: TraceLayout
    ranks: range
    grammars: Grammars | None  # None: records with back references
    vocabularies: Mapping[int, Vocabulary]  # by rank, or the one of all ranks under -1
    shifts: Mapping[int, float]  # seconds from the trace's start to the rank's own

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events of rank after rank, small ranks together."""
        held: list[pl.DataFrame] = []
        rows = 0
        for rank in self.ranks:
            frame = self._events(rank, warn)
            held.append(frame)
            rows += frame.height
            if rows >= BATCH:
                yield pl.concat(held).lazy()
                held, rows = [], 0
        if rows:
            yield pl.concat(held).lazy()

    def _events(self, rank: int, warn: Warn) -> pl.DataFrame:
        words = self.vocabularies.get(rank, self.vocabularies.get(-1))
        try:
            stream = self._stream(rank, warn)
        except OSError as error:
            warn(f"rank {rank} cannot be read ({error.strerror or error}); its calls are missing")
            return EVENTS.empty()
        if words is None or not len(stream):
            return EVENTS.empty()
        return events(stream, words, rank, self.shifts.get(rank, 0.0), self.layout, warn)

    def _stream(self, rank: int, warn: Warn) -> Stream:
        if self.grammars is None:
            return read_old_rank(self.layout, rank, warn)[0]
        return read_stream(self.layout, self.grammars, rank, warn)


def events(
    stream: Stream, words: Vocabulary, rank: int, shift: float, layout: TraceLayout, warn: Warn
) -> pl.DataFrame:
    """Build one rank's events."""
    inside = stream.signatures < len(words.known)
    inside[inside] &= words.known[stream.signatures[inside]]
    inside &= stream.end >= stream.start
    if not inside.all():
        warn(f"rank {rank}: {format_counted(int((~inside).sum()), 'damaged call')} left out")
    numbers = stream.signatures[inside]
    file = _files(numbers, words)
    offset = _offsets(numbers, words, file, rank, layout)
    height = len(numbers)
    known = pl.DataFrame(
        {
            "start": stream.start[inside] + shift,
            "end": stream.end[inside] + shift,
            "rank": np.full(height, rank, np.int32),
            "process": np.full(height, rank, np.uint32),
            "file": _nullable(file, -1).cast(pl.UInt32),
            "layer": pl.Series(words.layer[numbers]).cat.to(Layer),
            "operation": pl.Series(words.operation[numbers]).cat.to(Operation),
            "function": words.names.gather(numbers),
            "collective": words.collective.gather(numbers),
            "nonblocking": words.nonblocking.gather(numbers),
            "offset": _nullable(offset, UNKNOWN),
            "bytes": _nullable(words.bytes[numbers], UNKNOWN),
        }
    )
    return EVENTS.conform(known)


def _files(numbers: Integers, words: Vocabulary) -> Integers:
    """Each call's file; MPI calls name it by the handle that this rank's open defined."""
    file = words.file[numbers]
    handle = words.handle[numbers]
    if (handle >= 0).any():
        opening = np.flatnonzero(words.opens[numbers] >= 0)
        table = np.full(int(handle.max(initial=0)) + 1, -1)
        for place in opening.tolist():
            defined = int(words.opens[numbers[place]])
            if defined < len(table):
                table[defined] = file[place]
        named = handle >= 0
        file[named] = table[handle[named]]
    return file


def _offsets(
    numbers: Integers, words: Vocabulary, file: Integers, rank: int, layout: TraceLayout
) -> Integers:
    base = words.offset[numbers]
    own = np.where(base == UNKNOWN, UNKNOWN, base + words.offset_per_rank[numbers] * rank)
    own = _without_views(own, numbers, words)
    if layout.relative_offsets:
        own = np.full(len(own), UNKNOWN)
    data = words.operation[numbers] <= OPERATIONS.index("write")
    plain = (words.layer[numbers] <= LAYERS.index("stdio")) & (file >= 0)
    position = FilePointers().replay(
        file,
        sets=plain & words.sets[numbers],
        moves=plain & words.moves[numbers] & ~words.sets[numbers],
        amount=words.amount[numbers],
    )
    replayed = np.where(words.positional[numbers] | (position < 0), UNKNOWN, position)
    return np.where(
        data, np.where(own == UNKNOWN, np.where(plain, replayed, UNKNOWN), own), UNKNOWN
    )


def _without_views(own: Integers, numbers: Integers, words: Vocabulary) -> Integers:
    """Behind a file view, an offset counts what the view shows, not the file's bytes."""
    shifted = np.flatnonzero(words.shifts_view[numbers])
    if not len(shifted):
        return own
    handles = np.unique(words.handle[numbers[shifted]])
    return np.where(np.isin(words.handle[numbers], handles), UNKNOWN, own)


def _nullable(values: Integers, missing: int) -> pl.Series:
    series = pl.Series(values)
    absent = values == missing
    return series.set(pl.Series(absent), None) if absent.any() else series


RANKS_TOGETHER = 8  # in one partition


class RecorderReader:
    """Reads the folders that Recorder 2.0 and later write."""

    name = "recorder"
    title = "Recorder traces (a folder with recorder.mt or recorder.dat)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "files", "collective", "layers"})

    def __init__(self, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()

    def recognises(self, source: Path) -> bool:
        """Whether the folder holds a Recorder trace. Never raises."""
        try:
            return source.is_dir() and is_recorder(source)
        except OSError:
            return False

    def read(self, source: Path) -> Trace:
        """Read signatures and grammars now; calls are unfolded when asked for."""
        try:
            return _RecorderContent(read_layout(source)).trace(self.reading.clock_offsets)
        except (OSError, struct.error) as error:
            raise broken(source, f"a file cannot be read ({error})") from error


@dataclass(frozen=True)
class _RecorderContent:
    layout: TraceLayout
    completeness: Completeness = field(default_factory=Completeness)
    paths: dict[str, int] = field(default_factory=dict)  # row of the file table

    def trace(self, clock_offsets: Mapping[str, float] | None) -> Trace:
        layout, warn = self.layout, self.completeness.warn
        old = layout.generation == "A"
        grammars = None if old else read_grammars(layout, warn)
        words = self._vocabularies()
        if not words:
            raise broken(layout.folder, "no call signature can be read")
        shifts = self._shifts() if old else {}
        start = min(shifts.values(), default=layout.start)
        shifts = {rank: begun - start for rank, begun in shifts.items()}
        if layout.relative_offsets:
            warn("Recorder ran with intra-process pattern recognition: offsets are not absolute")
        partitions = tuple(self._partitions(grammars, words, shifts))
        spans = self._spans(shifts)
        runtime = max((end for _, end in spans.values()), default=0.0)
        trace = Trace(
            format=RecorderReader.name,
            paths=(layout.folder,),
            job=Job(
                ranks=layout.ranks,
                start_time=start or None,
                end_time=start + runtime if start else None,
                runtime=runtime,
                metadata={"recorder_generation": layout.generation},
            ),
            partitions=partitions,
            load_files=lambda: file_table(list(self.paths)),
            load_processes=partial(process_table, layout.ranks),
            completeness=self.completeness,
        )
        # Recorder names no nodes: each rank's clock may be another one.
        clocks = trace.processes.select("process", clock=pl.format("rank{}", "rank"))
        return align_clocks(trace, spans, clock_offsets, clocks)

    def _spans(self, shifts: dict[int, float]) -> dict[str, tuple[float, float]]:
        """First and last time of every rank, in seconds since the trace's start."""
        spans = {}
        for rank in range(self.layout.ranks):
            try:
                begin, end = self._span(rank)
            except (OSError, struct.error):
                continue  # what is missing is reported when events are read
            if end > 0:
                shift = shifts.get(rank, 0.0)
                spans[f"rank{rank}"] = shift + begin, shift + end
        return spans

    def _span(self, rank: int) -> tuple[float, float]:
        if self.layout.generation == "A":
            stream, _ = read_old_rank(self.layout, rank, lambda _: None)
            return float(stream.start[:1].sum()), float(stream.end.max(initial=0.0))
        ticks = read_ticks(self.layout, rank)
        resolution = self.layout.resolution
        return float(ticks[:1, 0].sum()) * resolution, last_end(ticks, resolution)

    def _vocabularies(self) -> dict[int, Vocabulary]:
        if self.layout.shared:
            return {-1: vocabulary(self.signatures(-1), self.paths)}
        vocabularies = {}
        for rank in range(self.layout.ranks):
            try:
                signatures = self.signatures(rank)
            except OSError as error:
                self.completeness.warn(
                    f"rank {rank} cannot be read ({error.strerror or error}); its calls are missing"
                )
                continue
            vocabularies[rank] = vocabulary(signatures, self.paths)
        return vocabularies

    def signatures(self, rank: int) -> Mapping[int, Signature]:
        """Return the signatures of a rank, or of all ranks (-1)."""
        layout, warn = self.layout, _with_rank(self.completeness.warn, rank)
        if layout.generation == "A":
            return read_old_rank(layout, rank, warn)[1]
        section = layout.section(ALL_SIGNATURES if rank < 0 else SIGNATURES, rank)
        data = read_section(section) if layout.generation == "B" else next(blobs(section), b"")
        return read_signatures(data, layout.functions, wide=layout.wide_functions, warn=warn)

    def _shifts(self) -> dict[int, float]:
        starts = {}
        for rank in range(self.layout.ranks):
            try:
                start = read_old_start(self.layout, rank)
            except (OSError, struct.error):
                self.completeness.warn(f"rank {rank} does not say when it started")
                continue
            if 0 < start < 2**40:
                starts[rank] = start
        return starts

    def _partitions(
        self, grammars: Grammars | None, words: dict[int, Vocabulary], shifts: dict[int, float]
    ) -> Iterator[RecorderPartition]:
        for first in range(0, self.layout.ranks, RANKS_TOGETHER):
            ranks = range(first, min(first + RANKS_TOGETHER, self.layout.ranks))
            own = {rank: words[rank] for rank in (-1, *ranks) if rank in words}
            yield RecorderPartition(self.layout, ranks, grammars, own, shifts)


def _with_rank(warn: Warn, rank: int) -> Warn:
    return warn if rank < 0 else lambda message: warn(f"rank {rank}: {message}")


def process_table(ranks: int) -> pl.DataFrame:
    """Return one process per rank."""
    row = pl.int_range(ranks, dtype=pl.UInt32, eager=True)
    return PROCESSES.conform(pl.DataFrame({"process": row, "rank": row.cast(pl.Int32)}))
