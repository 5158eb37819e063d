"""What a log to be written holds, and the bytes of its records."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import UsageError
from ioprism.formats.darshan.log import ByteOrder
from ioprism.formats.darshan.meaning import (
    FIXED,
    LUSTRE_COMPONENT,
    PADDING,
    Layout,
    dxt_segment_words,
)
from ioprism.model.trace import Job

SEGMENTS_AT_ONCE = 2**16

Bytes = Iterable[bytes]
Numbers = npt.NDArray[Any]


class Module(Protocol):
    """One module's records: anything that can give one stream of bytes per rank."""

    @property
    def name(self) -> str:
        """The module, as `records.MODULES` calls it."""
        ...

    @property
    def version(self) -> int:
        """The version of its records."""
        ...

    def streams(self, byte_order: ByteOrder) -> Iterator[Bytes]:
        """Yield the bytes that each contributing rank adds, in pieces."""
        ...


@dataclass(frozen=True, slots=True)
class LogContent:
    """Everything a log says."""

    job: Job
    names: Mapping[int, str] = field(default_factory=dict)  # record identifier -> path
    modules: Sequence[Module] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """Fixed-size records: `id`, `rank`, [`parent`], and one column per counter.

    Counters that the table lacks are written as zero; those that only another version of
    the record has are left out. Identifiers are unsigned, `…_UUID` columns are text.
    """

    name: str
    table: pl.DataFrame
    version: int

    def streams(self, byte_order: ByteOrder) -> Iterator[Bytes]:
        """Yield the records of each rank; those shared by all ranks come from rank 0."""
        words = self._words(byte_order)
        contributor = self.table["rank"].to_numpy().clip(min=0)
        order = np.argsort(contributor, kind="stable")
        firsts = np.flatnonzero(np.diff(contributor[order], prepend=-1))
        for rows in np.split(order, firsts[1:]):
            yield [words[rows].tobytes()]

    def _words(self, byte_order: ByteOrder) -> npt.NDArray[np.uint64]:
        layout = self._layout()
        words = np.zeros((self.table.height, layout.words), f"{byte_order}u8")
        parent = ("parent",) if layout.has_parent else ()
        columns = ("id", "rank", *parent, *layout.counters, *layout.times)
        values = {series.name: series for series in self.table.get_columns()}
        for position, name in enumerate(columns):
            if name in values:
                words[:, position] = _as_words(values[name])
        self._write_tail(words.view(np.uint8), layout, 8 * len(columns), byte_order)
        return words

    def _layout(self) -> Layout:
        versions = FIXED.get(self.name)
        if versions is None or self.version not in versions:
            raise UsageError(
                f"there are no {self.name} records of version {self.version}.\n"
                f"Hint: see `ioprism.formats.darshan.meaning.FIXED` for those there are."
            )
        known = {"id", "rank", "parent"}.union(
            *((*one.counters, *one.times, *one.tail) for one in versions.values())
        )
        unknown = [name for name in self.table.columns if name not in known or name == PADDING]
        if unknown or not {"id", "rank"} <= set(self.table.columns):
            raise UsageError(
                f"a table of {self.name} records needs the columns id and rank and may not "
                f"have {', '.join(unknown) or 'others'}.\n"
                "Hint: see `ioprism.formats.darshan.meaning`."
            )
        return versions[self.version]

    def _write_tail(
        self, raw: npt.NDArray[np.uint8], layout: Layout, at: int, byte_order: ByteOrder
    ) -> None:
        for name in layout.tail:
            size = 16 if name.endswith("_UUID") else 8
            if name in self.table.columns:
                values = self.table[name]
                data = (
                    b"".join(uuid.UUID(text).bytes for text in values)
                    if size == 16
                    else values.to_numpy().astype(f"{byte_order}u8").tobytes()
                )
                raw[:, at : at + size] = np.frombuffer(data, np.uint8).reshape(-1, size)
            at += size


def _as_words(values: pl.Series) -> npt.NDArray[np.uint64]:
    """Return the bits of each value as an unsigned word."""
    numbers = (values.fill_null(0) if values.null_count() else values).to_numpy()
    if values.dtype == pl.UInt64:
        return numbers
    return numbers.astype(np.float64 if values.dtype.is_float() else np.int64).view(np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Reads or writes of one file by one rank, in the order they happened."""

    offset: Numbers  # bytes
    length: Numbers  # bytes
    start: Numbers  # seconds
    end: Numbers  # seconds
    thread: Numbers | None = None  # zero where None and the version has threads

    def __len__(self) -> int:
        return len(self.offset)

    def __getitem__(self, rows: slice) -> Segments:
        return Segments(
            self.offset[rows],
            self.length[rows],
            self.start[rows],
            self.end[rows],
            None if self.thread is None else self.thread[rows],
        )

    def encoded(self, words: int, byte_order: ByteOrder) -> Iterator[bytes]:
        """Yield the segments' bytes in pieces of bounded size."""
        thread = self.thread if self.thread is not None else np.zeros(len(self), np.uint64)
        columns = (
            np.asarray(self.offset, np.int64),
            np.asarray(self.length, np.int64),
            np.asarray(self.start, np.float64),
            np.asarray(self.end, np.float64),
            np.asarray(thread, np.uint64),
        )[:words]
        for first in range(0, len(self), SEGMENTS_AT_ONCE):
            rows = slice(first, first + SEGMENTS_AT_ONCE)
            block = np.empty((len(columns[0][rows]), words), f"{byte_order}u8")
            for position, column in enumerate(columns):
                block[:, position] = column[rows].view(np.uint64)
            yield block.tobytes()


NO_SEGMENTS = Segments(*(np.empty(0) for _ in range(4)))


@dataclass(frozen=True, slots=True, eq=False)
class DxtRecord:
    """Every read and write of one file by one rank."""

    id: int
    rank: int
    writes: Segments = NO_SEGMENTS
    reads: Segments = NO_SEGMENTS
    host: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Dxt:
    """Extended tracing. The records may be a generator: they are written as they come.

    Records of one rank must follow each other, because each rank adds one stream.
    """

    name: str
    records: Iterable[DxtRecord]
    version: int

    def streams(self, byte_order: ByteOrder) -> Iterator[Bytes]:
        """Yield the records of each rank, writes before reads."""
        for _, records in groupby(self.records, key=lambda record: record.rank):
            yield self._encoded(records, byte_order)

    def _encoded(self, records: Iterator[DxtRecord], byte_order: ByteOrder) -> Iterator[bytes]:
        head = struct.Struct(f"{byte_order}Qqq64sqq")
        words = dxt_segment_words(self.name, self.version)
        for record in records:
            yield head.pack(
                record.id,
                record.rank,
                record.shared,
                record.host.encode()[:63],
                len(record.writes),
                len(record.reads),
            )
            yield from record.writes.encoded(words, byte_order)
            yield from record.reads.encoded(words, byte_order)


@dataclass(frozen=True, slots=True)
class HeatmapRecord:
    """Bytes that one rank moved through one interface, per time bin."""

    id: int
    rank: int
    bin_width: float  # seconds
    write: Sequence[int]
    read: Sequence[int]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Heat maps; records of one rank must follow each other."""

    records: Sequence[HeatmapRecord]
    name: str = "HEATMAP"
    version: int = 1

    def streams(self, byte_order: ByteOrder) -> Iterator[Bytes]:
        """Yield the heat maps of each rank."""
        head = struct.Struct(f"{byte_order}Qqdq16x")
        for _, records in groupby(self.records, key=lambda record: record.rank):
            yield [
                head.pack(one.id, one.rank, one.bin_width, len(one.write))
                + np.asarray([*one.write, *one.read], f"{byte_order}i8").tobytes()
                for one in records
            ]


@dataclass(frozen=True, slots=True)
class LustreComponent:
    """The layout of one part of a file."""

    targets: Sequence[int]  # storage targets in stripe order
    stripe_size: int  # bytes; -1 for a part that holds no data yet
    stripe_count: int | None = None  # the number of targets, if None
    pattern: int = 0
    flags: int = 0
    extent_start: int = 0
    extent_end: int = -1
    mirror: int = 0
    pool: str = ""

    @property
    def counters(self) -> list[int]:
        """The values, in the order of `records.LUSTRE_COMPONENT`."""
        count = len(self.targets) if self.stripe_count is None else self.stripe_count
        known = {"stripe_count": count}
        return [known.get(name, getattr(self, name)) for name in LUSTRE_COMPONENT]


@dataclass(frozen=True, slots=True)
class LustreRecord:
    """The layout of one file; version 1 has room for the first component only."""

    id: int
    rank: int
    components: Sequence[LustreComponent]


@dataclass(frozen=True, slots=True)
class Lustre:
    """Stripe layouts; records of one rank must follow each other."""

    records: Sequence[LustreRecord]
    name: str = "LUSTRE"
    version: int = 2

    def streams(self, byte_order: ByteOrder) -> Iterator[Bytes]:
        """Yield the layouts that each rank adds."""
        encoded = {1: _lustre_1, 2: _lustre_2}[self.version]
        for _, records in groupby(self.records, key=lambda record: max(0, record.rank)):
            yield [encoded(record, byte_order) for record in records]


def _lustre_1(record: LustreRecord, byte_order: ByteOrder) -> bytes:
    part = record.components[0]
    system = (max(part.targets, default=0) + 1, 1, 0)  # storage and metadata targets, first one
    values = (record.rank, *system, part.stripe_size, len(part.targets), *part.targets)
    return struct.pack(f"{byte_order}Q{len(values)}q", record.id, *values)


def _lustre_2(record: LustreRecord, byte_order: ByteOrder) -> bytes:
    targets = [target for part in record.components for target in part.targets]
    component = struct.Struct(f"{byte_order}{len(LUSTRE_COMPONENT)}q16s")
    counts = (record.rank, len(record.components), len(targets))
    return b"".join(
        [
            struct.pack(f"{byte_order}Q3q", record.id, *counts),
            *(component.pack(*part.counters, part.pool.encode()) for part in record.components),
            struct.pack(f"{byte_order}{len(targets)}q", *targets),
        ]
    )
