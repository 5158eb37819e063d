"""Bytes moved per rank and time bin, which Darshan keeps even without DXT."""

from __future__ import annotations

import polars as pl

from ioprism.formats.darshan.log import Log, Region, whole
from ioprism.formats.darshan.variable import heat_records
from ioprism.model.trace import Warn

HEATMAP_BYTES = 2**30

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
    for record in heat_records(data, log.byte_order):
        if record is None:
            warn(f"{log.path.name}: a HEATMAP record is damaged; bins from there on are missing")
            break
        rows.append((*record[:3], record.write.tolist(), record.read.tolist()))
    return pl.DataFrame(rows, schema=HEATMAP, orient="row")
