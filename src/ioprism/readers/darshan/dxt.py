"""Extended tracing (DXT): every read and write, streamed as events."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import EVENTS, Layer, Operation
from ioprism.model.trace import Warn
from ioprism.readers.darshan.counters import FileCodes
from ioprism.readers.darshan.log import Log, Region, pieces
from ioprism.readers.darshan.records import (
    DXT_HEADER_WORDS,
    DXT_LAYERS,
    dxt_has_offsets,
    dxt_segment_words,
)

HEADER_BYTES = DXT_HEADER_WORDS * 8
MAX_SEGMENTS = 2**40
_KINDS = ("write", "read")  # the order in which a record holds them


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive segments of one record and one direction inside a piece."""

    identifier: int
    rank: int
    host: bytes
    kind: int  # index into _KINDS
    at: int  # byte position in the piece
    count: int


@dataclass(slots=True)
class _Cursor:
    """How far the record that straddles two pieces has been read."""

    identifier: int = 0
    rank: int = 0
    host: bytes = b""
    left: list[int] = field(default_factory=lambda: [0, 0])  # writes, reads still to come


def runs(log: Log, region: Region, *, ranks: int, warn: Warn) -> Iterator[tuple[bytes, list[Run]]]:
    """Yield pieces of inflated bytes and where the segments lie in them.

    A record of a rank that the job does not have ends the region: it is damaged.
    """
    header = struct.Struct(f"{log.byte_order}Qqq64sqq")
    size = dxt_segment_words(region.name, region.version) * 8
    cursor = _Cursor()
    rest = b""
    for piece in pieces(log, region, warn):
        data = rest + piece if rest else piece
        found, position, sound = _scan(data, header, size, cursor, ranks)
        yield data, found
        if not sound:
            warn(
                f"{log.path.name}: a {region.name} record is damaged; "
                "the segments from there on are missing"
            )
            return
        rest = data[position:]
    missing = sum(cursor.left)
    if missing:
        warn(f"{log.path.name}: {missing} {region.name} segments are missing at the end")
    elif rest:
        warn(f"{log.path.name}: the last {region.name} record is cut off")


def _scan(
    data: bytes, header: struct.Struct, size: int, cursor: _Cursor, ranks: int
) -> tuple[list[Run], int, bool]:
    found = []
    position, length = 0, len(data)
    while True:
        for kind in (0, 1):
            count = min(cursor.left[kind], (length - position) // size)
            if count:
                found.append(
                    Run(cursor.identifier, cursor.rank, cursor.host, kind, position, count)
                )
                cursor.left[kind] -= count
                position += count * size
            if cursor.left[kind]:
                return found, position, True
        if length - position < HEADER_BYTES:
            return found, position, True
        identifier, rank, _, host, writes, reads = header.unpack_from(data, position)
        if not (0 <= writes < MAX_SEGMENTS and 0 <= reads < MAX_SEGMENTS and -1 <= rank < ranks):
            return found, position, False
        cursor.identifier, cursor.rank, cursor.host = identifier, rank, host
        cursor.left = [writes, reads]
        position += HEADER_BYTES


@dataclass(frozen=True, slots=True)
class DxtPartition:
    """The segments of one DXT module of one log."""

    log: Log
    region: Region
    codes: FileCodes
    ranks: int
    threads: pl.DataFrame | None = None  # rank, tid, process: where threads are told apart

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events piece by piece; segments that run backwards are dropped."""
        dropped = 0
        for data, found in runs(self.log, self.region, ranks=self.ranks, warn=warn):
            if found:
                frame = self._events(data, found)
                sound = _sound(frame)
                dropped += frame.height - sound.height
                yield sound.lazy()
        if dropped:
            warn(f"{self.log.path.name}: {dropped} damaged {self.region.name} segments left out")

    def _events(self, data: bytes, found: list[Run]) -> pl.DataFrame:
        words = dxt_segment_words(self.region.name, self.region.version)
        columns = segment_columns(data, found, words, self.log.byte_order)
        counts = np.array([run.count for run in found])
        ranks = np.repeat(np.array([run.rank for run in found], np.int32), counts)
        ids = np.array([run.identifier for run in found], np.uint64)
        files = self.codes.series("file", ids).gather(np.repeat(np.arange(len(ids)), counts))
        kinds = np.repeat(np.array([run.kind for run in found], np.uint8), counts)
        height = len(ranks)
        operations = np.array([Operation.categories.to_list().index(k) for k in _KINDS], np.uint8)
        has_offsets = dxt_has_offsets(self.region.name, self.region.version)
        return pl.DataFrame(
            {
                "start": columns[2].view(np.float64),
                "end": columns[3].view(np.float64),
                "rank": ranks,
                "process": self._processes(ranks, columns),
                "file": files,
                "layer": _constant(DXT_LAYERS[self.region.name], Layer, height),
                "operation": pl.Series(operations[kinds]).cat.to(Operation),
                "function": _constant(None, pl.Categorical(), height),
                "collective": _constant(None, pl.Boolean(), height),
                "nonblocking": _constant(None, pl.Boolean(), height),
                "offset": columns[0].view(np.int64)
                if has_offsets
                else _constant(None, pl.Int64(), height),
                "bytes": columns[1].view(np.int64),
            },
            schema=EVENTS.schema,
        )

    def _processes(
        self, ranks: npt.NDArray[np.int32], columns: list[npt.NDArray[np.uint64]]
    ) -> pl.Series:
        if self.threads is None:
            return pl.Series(ranks.clip(min=0).astype(np.uint32))
        if len(columns) < 5:  # this module does not tell threads apart, but the other one does
            own, keys = self.threads.unique("rank", keep="first"), ["rank"]
            seen = pl.DataFrame({"rank": ranks})
        else:
            own, keys = self.threads, ["rank", "tid"]
            seen = pl.DataFrame({"rank": ranks, "tid": columns[4]})
        return seen.join(own, on=keys, how="left", maintain_order="left")["process"]


def _constant(value: str | None, dtype: pl.DataType, height: int) -> pl.Series:
    return pl.Series([value], dtype=dtype).new_from_index(0, height)


def _sound(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out calls that end before they begin, never begin, or move less than nothing."""
    start, end, size = (frame[name].to_numpy() for name in ("start", "end", "bytes"))
    # Comparing with infinity from both sides is false for what is not a number, too.
    good = (start > -np.inf) & (start <= end) & (end < np.inf) & (size >= 0)
    return frame if good.all() else frame.filter(pl.Series(good))


def scan_processes(log: Log, region: Region, *, ranks: int, warn: Warn) -> pl.DataFrame:
    """Return the ranks, hosts and threads that a DXT module saw, without building events."""
    words = dxt_segment_words(region.name, region.version)
    seen = [_PROCESSES_SEEN.to_frame()]
    for data, found in runs(log, region, ranks=ranks, warn=warn):
        counts = [run.count for run in found]
        frame = pl.DataFrame(
            {
                "rank": pl.Series([run.rank for run in found], dtype=pl.Int32),
                "host": pl.Series([_host(run.host) for run in found], dtype=pl.String),
            }
        )
        if words > 4 and found:
            threads = segment_columns(data, found, words, log.byte_order)[4]
            repeated = frame.select(pl.all().repeat_by(pl.Series(counts)).explode())
            frame = repeated.with_columns(tid=pl.Series(threads))
        else:
            frame = frame.with_columns(tid=pl.lit(None, dtype=pl.UInt64))
        seen.append(frame.unique())
    return pl.concat(seen).unique().sort("rank", "tid", nulls_last=False)


_PROCESSES_SEEN = pl.Schema({"rank": pl.Int32, "host": pl.String, "tid": pl.UInt64})


def _host(name: bytes) -> str:
    return name.split(b"\0")[0].decode("utf-8", "backslashreplace")


def segment_columns(
    data: bytes, found: list[Run], words: int, byte_order: str
) -> list[npt.NDArray[np.uint64]]:
    """Gather the segments of all runs, one contiguous native array per field."""
    raw = np.frombuffer(data, dtype=f"{byte_order}u8", count=len(data) // 8)
    parts = [raw[run.at // 8 : run.at // 8 + words * run.count] for run in found]
    rows = np.concatenate(parts).reshape(-1, words)
    return [rows[:, field].astype(np.uint64) for field in range(words)]
