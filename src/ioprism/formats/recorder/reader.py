"""Turn a Recorder folder into a trace: the calls of its ranks as events."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ioprism.formats.calls import UNKNOWN, FilePointers, nullable
from ioprism.formats.clocks import align_clocks
from ioprism.formats.reading import Reading
from ioprism.formats.recorder.meaning import AS_FIRST, families, meaning
from ioprism.formats.recorder.signatures import (
    Signature,
    SignatureTable,
    read_old_facts,
    read_old_rank,
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
from ioprism.model.schema import (
    EVENTS,
    OPERATIONS,
    PROCESSES,
    Layer,
    Operation,
    file_table,
    join_small,
)
from ioprism.model.trace import LAYERS, Completeness, Job, Trace, Warn
from ioprism.units import format_counted

BATCH = 250_000  # events in a table, about


Vocabulary = pl.DataFrame  # what signatures mean, by their number; nulls for numbers without one
_NUMBERS = ("bytes", "offset", "amount")  # that differ within a family; `UNKNOWN`: none
_WORDS: Mapping[str, pl.DataType] = {
    "function": pl.Categorical(),
    **dict.fromkeys(("layer", "operation"), pl.UInt8()),
    **dict.fromkeys(("collective", "nonblocking", "positional"), pl.Boolean()),
    **dict.fromkeys(("sets", "moves", "shifts_view"), pl.Boolean()),
    # Rows of the file table, and numbers of MPI file handles that are used or defined; -1: none.
    **dict.fromkeys(("file", "handle", "opens"), pl.Int64()),
    **dict.fromkeys((*_NUMBERS, "offset_per_rank"), pl.Int64()),
}


def vocabulary(signatures: Mapping[int, Signature], paths: dict[str, int]) -> Vocabulary:
    """Understand every signature once; new paths are added to `paths`."""
    handles: dict[str, int] = {}

    def number_of(name: str | None, known: dict[str, int]) -> int:
        return -1 if name is None else known.setdefault(name, len(known))

    def words(signature: Signature) -> tuple[object, ...]:
        m = meaning(signature)
        call, amount = m.call, m.position if m.sets else m.moves
        offset, per_rank = m.offset or (UNKNOWN, 0)
        return (
            signature.function, call.layer_code, call.operation_code,
            call.collective, call.nonblocking, call.positional,
            m.sets, m.moves is not None, m.shifts_view,
            number_of(m.path, paths), number_of(m.handle, handles), number_of(m.opens, handles),
            UNKNOWN if m.bytes is None else m.bytes, offset,
            UNKNOWN if amount is None else amount, per_rank,
        )  # fmt: skip

    if isinstance(signatures, SignatureTable):
        alike = families(signatures)
        rows = [words(signatures.row(row)) for row in alike.first.tolist()]
        numbers = signatures.numbers
    else:
        alike, rows = None, list(map(words, signatures.values()))
        numbers = np.array(list(signatures), np.int64)
    columns = zip(*rows, strict=True)
    table = pl.DataFrame(dict(zip(_WORDS, columns, strict=False)), schema=_WORDS)
    if alike is not None:
        table = table[alike.of_row]
        table = table.with_columns(
            pl.Series(name, np.where(own == AS_FIRST, table[name].to_numpy(), own))
            for name, own in zip(_NUMBERS, (alike.bytes, alike.offset, alike.amount), strict=True)
        )
    highest = int(numbers.max(initial=-1))
    row_of = pl.Series([None], dtype=pl.Int64).new_from_index(0, highest + 1)
    row_of = row_of.scatter(pl.Series(numbers), pl.Series(range(len(numbers)), dtype=pl.Int64))
    return table.select(pl.all().gather(row_of))


@dataclass(frozen=True, slots=True, eq=False)
class RecorderPartition:
    """The calls of some ranks."""

    streams: Mapping[int, Callable[[Warn], Stream]]  # what reads the calls of a rank
    vocabularies: Mapping[int, Vocabulary]  # by rank, or the one of all ranks under -1
    shifts: Mapping[int, float] = field(default_factory=dict)  # seconds that a rank began later
    relative_offsets: bool = False  # offsets are relative to a function's first one

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the events of rank after rank, small ranks together."""
        ranks = (self._events(rank, warn) for rank in self.streams)
        return (table.lazy() for table in join_small(ranks, BATCH))

    def _events(self, rank: int, warn: Warn) -> pl.DataFrame:
        words = self.vocabularies.get(rank, self.vocabularies.get(-1))
        try:
            stream = self.streams[rank](warn)
        except OSError as error:
            warn(f"rank {rank} cannot be read ({error.strerror or error}); its calls are missing")
            return EVENTS.empty()
        if words is None or not len(stream):
            return EVENTS.empty()
        return self._frame(stream, words, rank, warn)

    def _frame(self, stream: Stream, words: Vocabulary, rank: int, warn: Warn) -> pl.DataFrame:
        shift = self.shifts.get(rank, 0.0)
        inside = (stream.signatures < words.height) & (stream.end >= stream.start)
        inside[inside] &= words["layer"].is_not_null().to_numpy()[stream.signatures[inside]]
        if not inside.all():
            warn(f"rank {rank}: {format_counted(int((~inside).sum()), 'damaged call')} left out")
        calls = words[stream.signatures[inside]]
        file = _files(calls)
        offset = _offsets(calls, file, rank, relative=self.relative_offsets)
        moved = calls["bytes"].to_numpy()
        known = calls.with_columns(
            start=stream.start[inside] + shift,
            end=stream.end[inside] + shift,
            rank=pl.lit(rank),
            process=pl.lit(rank),
            file=nullable(file, file < 0),
            layer=calls["layer"].cat.to(Layer),
            operation=calls["operation"].cat.to(Operation),
            offset=nullable(offset, offset == UNKNOWN),
            bytes=nullable(moved, moved == UNKNOWN),
        )
        return EVENTS.conform(known)


def _files(calls: pl.DataFrame) -> Integers:
    """Each call's file; MPI calls name it by the handle that this rank's open defined."""
    file, handle, opens = (calls[name].to_numpy() for name in ("file", "handle", "opens"))
    named = handle >= 0
    if not named.any():
        return file
    table = np.full(max(int(handle.max()), int(opens.max())) + 1, -1)
    opening = opens >= 0
    table[opens[opening]] = file[opening]  # the last one counts
    return np.where(named, table[handle], file)


def _offsets(calls: pl.DataFrame, file: Integers, rank: int, *, relative: bool) -> Integers:
    base, amount, handle = (calls[name].to_numpy() for name in ("offset", "amount", "handle"))
    sets, moves, positional, shifts_view = (
        calls[name].to_numpy() for name in ("sets", "moves", "positional", "shifts_view")
    )
    # Behind a file view, an offset counts what the view shows, not the file's bytes.
    unplaced = (base == UNKNOWN) | relative
    unplaced |= np.isin(handle, handle[shifts_view]) if shifts_view.any() else False
    own = np.where(unplaced, UNKNOWN, base + calls["offset_per_rank"].to_numpy() * rank)
    data = calls["operation"].to_numpy() <= OPERATIONS.index("write")
    plain = (calls["layer"].to_numpy() <= LAYERS.index("stdio")) & (file >= 0)
    position = FilePointers().replay(
        file, sets=plain & sets, moves=plain & moves & ~sets, amount=amount
    )
    known = plain & ~positional & (position >= 0)
    own = np.where(unplaced & known, position, own)
    return np.where(data, own, UNKNOWN)


RANKS_TOGETHER = 8  # in one partition


def read_old_stream(layout: TraceLayout, rank: int, warn: Warn) -> Stream:
    """Return the calls of a rank of the oldest generation."""
    return read_old_rank(layout, rank, warn)[0]


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
        layout, noted = self.layout, self.completeness.warn
        warn = noted if rank < 0 else lambda message: noted(f"rank {rank}: {message}")
        if layout.generation == "A":
            return read_old_rank(layout, rank, warn)[1]
        section = layout.section(ALL_SIGNATURES if rank < 0 else SIGNATURES, rank)
        data = read_section(section) if layout.generation == "B" else next(blobs(section), b"")
        return read_signatures(data, layout.functions, wide=layout.wide_functions, warn=warn)

    def _shifts(self) -> dict[int, float]:
        starts = {}
        for rank in range(self.layout.ranks):
            try:
                start, _ = read_old_facts(self.layout, rank)
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
            streams: dict[int, Callable[[Warn], Stream]] = {
                rank: partial(read_old_stream, self.layout, rank)
                if grammars is None
                else partial(read_stream, self.layout, grammars, rank)
                for rank in ranks
            }
            yield RecorderPartition(streams, own, shifts, self.layout.relative_offsets)


def process_table(ranks: int) -> pl.DataFrame:
    """Return one process per rank."""
    row = pl.int_range(ranks, dtype=pl.UInt32, eager=True)
    return PROCESSES.conform(pl.DataFrame({"process": row, "rank": row.cast(pl.Int32)}))
