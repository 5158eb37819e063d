"""Extended tracing (DXT): every read and write, streamed as events."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from isal import isal_zlib

from ioprism.formats.darshan.decode import FileCodes
from ioprism.formats.darshan.log import Log, Region, pieces
from ioprism.formats.darshan.meaning import (
    DXT_HEADER_WORDS,
    DXT_LAYERS,
    dxt_has_offsets,
    dxt_segment_words,
)
from ioprism.formats.darshan.tables import file_column
from ioprism.formats.reading import places_to_cut
from ioprism.formats.text import UNREADABLE
from ioprism.model.schema import EVENTS, OPERATIONS, Layer, Operation
from ioprism.model.trace import Completeness, Warn
from ioprism.model.usage import NAMELESS
from ioprism.units import format_counted

HEADER_BYTES = DXT_HEADER_WORDS * 8
MAX_SEGMENTS = 2**40
# A piece stays in the processor's cache from inflating until it is sorted into columns.
PIECE = 128 * 1024
# Columns of this many segments stay below 4 MiB: for larger ones NumPy asks for huge pages,
# which virtual machines take three times as long to provide.
BLOCK = 500_000
COMPRESSED = 8 * 2**20  # bytes of a region that are worth a separate range
PROBE = 4096  # compressed bytes that are sure to hold the head of a record
STREAM_START = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # by level of compression
MAX_LIKENESSES = 2**17  # in a row, each inflated; by chance there is one in 16 KiB
# The order in which a record holds them.
_OPERATIONS = np.array([OPERATIONS.index(kind) for kind in ("write", "read")], np.uint8)


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Consecutive segments of one record and one direction inside a piece."""

    identifier: int
    rank: int
    host: bytes
    kind: int  # index into _OPERATIONS
    at: int  # byte position in the piece
    count: int


@dataclass(slots=True)
class _Cursor:
    """How far the record that straddles two pieces has been read."""

    identifier: int = 0
    rank: int = 0
    host: bytes = b""
    left: list[int] = field(default_factory=lambda: [0, 0])  # writes, reads still to come


def runs(
    log: Log, region: Region, *, ranks: int, warn: Warn
) -> Iterator[tuple[bytes, list[SegmentRun]]]:
    """Yield pieces of inflated bytes and where their segments are.

    A record of a rank that the job does not have ends the region: it is damaged.
    """
    header = struct.Struct(f"{log.byte_order}Qqq64sqq")
    size = dxt_segment_words(region.name, region.version) * 8
    cursor = _Cursor()
    rest = b""
    for piece in pieces(log, region, warn, size=PIECE):
        data = rest + piece if rest else piece
        of_piece, position, sound = _scan(data, header, size, cursor, ranks)
        yield data, of_piece
        if not sound:
            warn(
                f"{log.path.name}: a {region.name} record is damaged; "
                "the segments from there on are missing"
            )
            return
        rest = data[position:]
    missing = sum(cursor.left)
    if missing:
        segments = format_counted(missing, f"{region.name} segment")
        warn(f"{log.path.name}: {segments} missing at the end")
    elif rest:
        warn(f"{log.path.name}: the last {region.name} record is cut off")


def _scan(
    data: bytes, header: struct.Struct, size: int, cursor: _Cursor, ranks: int
) -> tuple[list[SegmentRun], int, bool]:
    complete = []
    position, length = 0, len(data)
    while True:
        for kind in (0, 1):
            count = min(cursor.left[kind], (length - position) // size)
            if count:
                complete.append(
                    SegmentRun(cursor.identifier, cursor.rank, cursor.host, kind, position, count)
                )
                cursor.left[kind] -= count
                position += count * size
            if cursor.left[kind]:
                return complete, position, True
        if length - position < HEADER_BYTES:
            return complete, position, True
        identifier, rank, _, host, writes, reads = header.unpack_from(data, position)
        if not (0 <= writes < MAX_SEGMENTS and 0 <= reads < MAX_SEGMENTS and -1 <= rank < ranks):
            return complete, position, False
        cursor.identifier, cursor.rank, cursor.host = identifier, rank, host
        cursor.left = [writes, reads]
        position += HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Block:
    """Segments of many records."""

    fields: list[npt.NDArray[np.uint64]]
    runs: list[SegmentRun]  # whose segments they are, in order

    def each(self, of_runs: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Give every segment what its run has."""
        return np.repeat(np.array(of_runs, dtype), [run.count for run in self.runs])


def blocks(log: Log, region: Region, *, ranks: int, warn: Warn) -> Iterator[Block]:
    """Yield all segments in blocks of about `BLOCK`."""
    words = dxt_segment_words(region.name, region.version)
    fields, held, filled = _columns(words, BLOCK), list[SegmentRun](), 0
    for data, of_piece in runs(log, region, ranks=ranks, warn=warn):
        rows = _rows(data, of_piece, words, log.byte_order)
        end = filled + len(rows)
        if end > len(fields[0]):
            if filled:
                yield Block([column[:filled] for column in fields], held)
            fields, held = _columns(words, max(BLOCK, len(rows))), []
            filled, end = 0, len(rows)
        for number, column in enumerate(fields):
            column[filled:end] = rows[:, number]
        held += of_piece
        filled = end
    if filled:
        yield Block([column[:filled] for column in fields], held)


def _columns(words: int, height: int) -> list[npt.NDArray[np.uint64]]:
    return [np.empty(height, np.uint64) for _ in range(words)]


def _rows(
    data: bytes, of_piece: list[SegmentRun], words: int, byte_order: str
) -> npt.NDArray[np.uint64]:
    raw = np.frombuffer(data, dtype=f"{byte_order}u8", count=len(data) // 8)
    parts = [raw[run.at // 8 : run.at // 8 + words * run.count] for run in of_piece]
    return np.concatenate([raw[:0], *parts]).reshape(-1, words)


@dataclass(frozen=True, slots=True)
class DxtPartition:
    """The segments of one DXT module of one log."""

    log: Log
    region: Region
    codes: FileCodes
    ranks: int
    threads: pl.DataFrame | None = None  # rank, tid, process: where the trace distinguishes threads
    side_by_side: ClassVar[bool] = True  # inflating needs no interpreter: threads gain a quarter

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events block by block; segments that run backwards are dropped."""
        dropped = 0
        for block in blocks(self.log, self.region, ranks=self.ranks, warn=warn):
            frame = self._events(block)
            sound = _sound(frame)
            dropped += frame.height - sound.height
            yield sound.lazy()
        if dropped:
            damaged = format_counted(dropped, f"damaged {self.region.name} segment")
            warn(f"{self.log.path.name}: {damaged} left out")

    def _events(self, block: Block) -> pl.DataFrame:
        layer, height = DXT_LAYERS[self.region.name], len(block.fields[0])
        ranks = block.each([run.rank for run in block.runs], np.int32)
        kinds = block.each(_OPERATIONS[[run.kind for run in block.runs]], np.uint8)
        has_offsets = dxt_has_offsets(self.region.name, self.region.version)
        known = pl.DataFrame(
            {
                "start": block.fields[2].view(np.float64),
                "end": block.fields[3].view(np.float64),
                "rank": ranks,
                "process": self._processes(ranks, block.fields),
                "file": self._files(block),
                "layer": pl.Series([layer], dtype=Layer).new_from_index(0, height),
                "operation": pl.Series(kinds).cat.to(Operation),
                **({"offset": block.fields[0].view(np.int64)} if has_offsets else {}),
                "bytes": block.fields[1].view(np.int64),
            }
        )
        return EVENTS.conform(known)

    def _files(self, block: Block) -> pl.Series:
        identifiers = np.array([run.identifier for run in block.runs], np.uint64)
        files = file_column("file", self.codes.rows(identifiers))
        if files.null_count():
            return files.gather(block.each(range(len(files)), np.uint32))
        return pl.Series(block.each(files.to_numpy(), np.uint32))

    def _processes(
        self, ranks: npt.NDArray[np.int32], fields: list[npt.NDArray[np.uint64]]
    ) -> pl.Series:
        if self.threads is None:
            known = ranks if ranks.min() >= 0 else np.maximum(ranks, 0)
            return pl.Series(known.view(np.uint32))
        if len(fields) < 5:  # this module does not tell threads apart, but the other one does
            own, keys = self.threads.unique("rank", keep="first"), ["rank"]
            seen = pl.DataFrame({"rank": ranks})
        else:
            own, keys = self.threads, ["rank", "tid"]
            seen = pl.DataFrame({"rank": ranks, "tid": fields[4]})
        return seen.join(own, on=keys, how="left", maintain_order="left")["process"]


def _sound(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out calls that end before they begin, never begin, or move less than nothing."""
    start, end, size = (frame[name].to_numpy() for name in ("start", "end", "bytes"))
    # Comparisons with NaN are false, too.
    if start.min() > -np.inf and end.max() < np.inf and size.min() >= 0 and (start <= end).all():
        return frame
    good = (start > -np.inf) & (start <= end) & (end < np.inf) & (size >= 0)
    return frame.filter(pl.Series(good))


def survey_processes(
    log: Log, region: Region, *, ranks: int
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the ranks, hosts and threads of a range, and its warnings; any worker can do it."""
    completeness = Completeness()
    warn = completeness.warn
    tables = [_PROCESSES_SEEN.to_frame()]
    if dxt_segment_words(region.name, region.version) > 4:
        tables += (_threads(block) for block in blocks(log, region, ranks=ranks, warn=warn))
    else:
        pieces_and_runs = runs(log, region, ranks=ranks, warn=warn)
        hosts = {(run.rank, run.host) for _, of_piece in pieces_and_runs for run in of_piece}
        tables.append(_owners(list(hosts)).with_columns(tid=pl.lit(None, dtype=pl.UInt64)))
    table = pl.concat(tables).unique().sort("rank", "tid", nulls_last=False)
    return table, completeness.warnings


def _threads(block: Block) -> pl.DataFrame:
    owners = _owners([(run.rank, run.host) for run in block.runs])
    run_of = block.each(range(len(block.runs)), np.uint32)
    return owners[run_of].with_columns(tid=pl.Series(block.fields[4])).unique()


def _owners(owners: list[tuple[int, bytes]]) -> pl.DataFrame:
    hosts = [name.split(b"\0")[0].decode("utf-8", "backslashreplace") for _, name in owners]
    return pl.DataFrame(
        {
            "rank": pl.Series([rank for rank, _ in owners], dtype=pl.Int32),
            "host": pl.Series(hosts, dtype=pl.String),
        }
    )


_PROCESSES_SEEN = pl.Schema({"rank": pl.Int32, "host": pl.String, "tid": pl.UInt64})


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts the requests of a large log into ranges of whole records, without inflating them.

    Every rank has written its own compressed stream, one after the other. Where one begins is not
    recorded, so the two bytes with which a stream can begin are searched for, and accepted if what
    they inflate to is the head of a record: of a rank and a file that the log knows.
    """

    log: Log
    codes: FileCodes
    ranks: int

    def ranges(self, region: Region) -> list[Region]:
        """Cut a region; a small one, or one that only one rank wrote, stays whole."""
        if self.log.compression != "zlib" or region.length < 2 * COMPRESSED:
            return [region]
        path = self.log.path
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            stop = min(region.offset + region.length, len(data))
            find = partial(self._next_stream, data, stop)
            inner = [*places_to_cut(region.offset, stop, least=COMPRESSED, find=find)]
        cuts = [region.offset, *inner, region.offset + region.length]
        return [replace(region, offset=a, length=b - a) for a, b in pairwise(cuts)]

    def _next_stream(self, data: mmap.mmap, stop: int, at: int) -> int | None:
        """Where the next stream begins."""
        matches = islice(STREAM_START.finditer(data, at, stop), MAX_LIKENESSES)
        places = (match.start() for match in matches)
        return next((p for p in places if self._is_record(data[p : p + PROBE])), None)

    def _is_record(self, packed: bytes) -> bool:
        try:
            head = isal_zlib.decompressobj().decompress(packed, HEADER_BYTES)
        except UNREADABLE:
            return False
        if len(head) < HEADER_BYTES:
            return False
        identifier, rank, _, host, writes, reads = struct.unpack(
            f"{self.log.byte_order}Qqq64sqq", head
        )
        known = NAMELESS not in self.codes.rows(np.array([identifier], np.uint64))
        counts = 0 <= writes < MAX_SEGMENTS and 0 <= reads < MAX_SEGMENTS
        return known and counts and 0 <= rank < self.ranks and host.rstrip(b"\0").isascii()
