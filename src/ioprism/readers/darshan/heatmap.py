"""Bytes moved per rank and time bin, which Darshan keeps even without DXT."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.model.trace import Warn
from ioprism.readers.darshan.log import Log, Region, whole

HEATMAP_BYTES = 2**30
MAX_BINS = 2**20

HEATMAP = pl.Schema(
    {
        "id": pl.UInt64(),
        "rank": pl.Int32(),
        "bin_width": pl.Float64(),
        "write": pl.List(pl.Int64()),
        "read": pl.List(pl.Int64()),
    }
)


def read_heatmap(log: Log, region: Region, warn: Warn) -> pl.DataFrame:
    """Read one row per interface and rank: bin width in seconds, bytes per bin by direction."""
    data = whole(log, region, warn, limit=HEATMAP_BYTES)
    rows = []
    for row in _records(data, log.byte_order):
        if row is None:
            warn(f"{log.path.name}: a HEATMAP record is damaged; bins from there on are missing")
            break
        rows.append(row)
    return pl.DataFrame(rows, schema=HEATMAP, orient="row")


def _records(data: bytes, order: str) -> Iterator[tuple[object, ...] | None]:
    head = struct.Struct(f"{order}Qqdq16x")  # two pointers of the writing process are junk
    position = 0
    while position + head.size <= len(data):
        identifier, rank, width, bins = head.unpack_from(data, position)
        position += head.size
        end = position + 16 * bins
        sane = 0 <= bins <= MAX_BINS and width > 0 and np.isfinite(width) and -1 <= rank < 2**31
        if not sane or end > len(data):
            yield None
            return
        both = np.frombuffer(data, f"{order}i8", count=2 * bins, offset=position)
        native = both.astype(np.int64, copy=False)
        yield identifier, rank, width, native[:bins].tolist(), native[bins:].tolist()
        position = end
    if position < len(data):
        yield None
