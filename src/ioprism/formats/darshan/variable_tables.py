"""Modules whose records vary in length, as tables: Lustre's striping, and heat maps.

A heat map holds the bytes moved per rank and time bin, which Darshan keeps even without DXT.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.formats.darshan.counters import FileCodes
from ioprism.formats.darshan.log import Log, Region, whole
from ioprism.formats.darshan.records import LUSTRE_COMPONENT
from ioprism.formats.darshan.variable import UNUSED, heat_records, lustre_components
from ioprism.model.trace import Warn

LUSTRE_BYTES = 2**30
VERSIONS = (1, 2)

LUSTRE = pl.Schema(
    {
        "id": pl.UInt64(),
        "rank": pl.Int32(),
        "component": pl.Int64(),
        "system_targets": pl.Int64(),  # how many the file system has, where the log says so
        **dict.fromkeys(LUSTRE_COMPONENT, pl.Int64()),
        "pool": pl.String(),
        "targets": pl.List(pl.Int64()),
    }
)


def read_lustre(log: Log, region: Region, codes: FileCodes, warn: Warn) -> pl.DataFrame:
    """Read one row per layout component of each file."""
    if region.version not in VERSIONS:
        warn(f"{log.path.name}: LUSTRE records of version {region.version} are not read")
        rows: list[dict[str, object]] = []
    else:
        data = whole(log, region, warn, limit=LUSTRE_BYTES)
        rows = list(_checked(lustre_components(data, log.byte_order, region.version), log, warn))
    table = pl.DataFrame(rows, schema=LUSTRE)
    file = codes.series("file", table["id"].to_numpy().astype(np.uint64))
    return table.drop("id").insert_column(0, file)


def _checked(
    rows: Iterator[dict[str, object] | None], log: Log, warn: Warn
) -> Iterator[dict[str, object]]:
    for row in rows:
        if row is None:
            warn(f"{log.path.name}: a LUSTRE record is damaged; layouts from there on are missing")
            return
        yield row


def layouts(lustre: pl.DataFrame) -> pl.DataFrame:
    """Return each file's first component that holds data: its stripe size, count and targets."""
    return (
        lustre.filter(pl.col("file").is_not_null() & (pl.col("stripe_size") != UNUSED))
        .sort("component")
        .unique("file", keep="first", maintain_order=True)
        .select("file", "stripe_size", "stripe_count", "targets")
    )


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
