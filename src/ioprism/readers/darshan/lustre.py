"""How files are striped over Lustre's storage targets."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.model.trace import Warn
from ioprism.readers.darshan.counters import FileCodes
from ioprism.readers.darshan.log import Log, Region, whole
from ioprism.readers.darshan.records import LUSTRE_COMPONENT

LUSTRE_BYTES = 2**30
MAX_STRIPES = 65_536
UNUSED = -1  # stripe size of a component that holds no data yet

_SCHEMA = pl.Schema(
    {
        "id": pl.UInt64(),
        "rank": pl.Int32(),
        "component": pl.Int64(),
        **dict.fromkeys(LUSTRE_COMPONENT, pl.Int64()),
        "pool": pl.String(),
        "targets": pl.List(pl.Int64()),
    }
)


def read_lustre(log: Log, region: Region, codes: FileCodes, warn: Warn) -> pl.DataFrame:
    """Read one row per layout component of each file."""
    parse = {1: _version_1, 2: _version_2}.get(region.version)
    if parse is None:
        warn(f"{log.path.name}: LUSTRE records of version {region.version} are not read")
        rows: list[dict[str, object]] = []
    else:
        data = whole(log, region, warn, limit=LUSTRE_BYTES)
        rows = list(_checked(parse(data, log.byte_order), log, warn))
    table = pl.DataFrame(rows, schema=_SCHEMA)
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


def _version_1(data: bytes, order: str) -> Iterator[dict[str, object] | None]:
    """One component per file: id, rank, targets of the system, and the layout itself."""
    head = struct.Struct(f"{order}Qq5q")
    position = 0
    while position + head.size <= len(data):
        identifier, rank, _, _, _, stripe_size, stripe_count = head.unpack_from(data, position)
        position += head.size
        end = position + 8 * stripe_count
        if not 0 <= stripe_count <= MAX_STRIPES or end > len(data):
            yield None
            return
        yield {
            "id": identifier,
            "rank": rank,
            "component": 0,
            "stripe_size": stripe_size,
            "stripe_count": stripe_count,
            "targets": list(struct.unpack_from(f"{order}{stripe_count}q", data, position)),
        }
        position = end


def _version_2(data: bytes, order: str) -> Iterator[dict[str, object] | None]:
    """Several components per file: their counters, then the targets of all of them."""
    head = struct.Struct(f"{order}Q3q")
    component = struct.Struct(f"{order}{len(LUSTRE_COMPONENT)}q16s")
    position = 0
    while position + head.size <= len(data):
        identifier, rank, components, stripes = head.unpack_from(data, position)
        position += head.size
        targets_at = position + component.size * components
        end = targets_at + 8 * stripes
        sane = 0 <= components <= MAX_STRIPES and 0 <= stripes <= MAX_STRIPES
        if not sane or end > len(data):
            yield None
            return
        targets = struct.unpack_from(f"{order}{stripes}q", data, targets_at)
        taken = 0
        for number in range(components):
            *values, pool = component.unpack_from(data, position + component.size * number)
            counters = dict(zip(LUSTRE_COMPONENT, values, strict=True))
            count = max(0, counters["stripe_count"])
            yield {
                "id": identifier,
                "rank": rank,
                "component": number,
                **counters,
                "pool": pool.split(b"\0")[0].decode("utf-8", "backslashreplace"),
                "targets": list(targets[taken : taken + count]),
            }
            taken += count
        position = end


def layouts(lustre: pl.DataFrame) -> pl.DataFrame:
    """Return each file's first component that holds data: its stripe size, count and targets."""
    return (
        lustre.filter(pl.col("file").is_not_null() & (pl.col("stripe_size") != UNUSED))
        .sort("component")
        .unique("file", keep="first", maintain_order=True)
        .select("file", "stripe_size", "stripe_count", "targets")
    )
