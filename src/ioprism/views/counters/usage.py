"""A trace's calls and counter tables as the columns that rules judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.model.usage import (
    DIRECTIONS,
    EVERYONE,
    NAMELESS,
    HeatMap,
    Moves,
    RankLoad,
    Usage,
)

_ENTRY = ("file", "rank")


@dataclass(frozen=True, slots=True, eq=False)
class TableCounters:
    """Counter tables, column by column."""

    tables: Mapping[str, pl.DataFrame]

    def columns(self, module: str) -> TableColumns:
        """Return a module's records, column by column."""
        return TableColumns(self.tables[module])

    def height(self, module: str) -> int:
        """How many records a module has."""
        return self.tables[module].height

    def heat_maps(self) -> dict[str, list[HeatMap]]:
        """Return when each rank moved how many bytes, by layer."""
        maps: dict[str, list[HeatMap]] = {}
        if "HEATMAP" in self.tables:
            table = self.tables["HEATMAP"].filter(pl.col("layer").is_not_null())
            rows = table.select("layer", "rank", "bin_width", "read", "write").iter_rows()
            for layer, *values in rows:
                maps.setdefault(str(layer), []).append(HeatMap(*values))
        return maps


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The columns of one counter table."""

    table: pl.DataFrame

    @property
    def files(self) -> list[int]:
        """The row of each record's file."""
        return self.table["file"].cast(pl.Int64).fill_null(NAMELESS).to_list()

    @property
    def ranks(self) -> list[int]:
        """The rank of each record; -1 for all together."""
        return self.table["rank"].to_list()

    def column(self, name: str) -> list[Any] | None:
        """One value per record, or None where the counter is missing."""
        if name not in self.table.columns:
            return None
        values = self.table[name]
        return None if values.null_count() == len(values) and len(values) else values.to_list()


def event_usages(
    stitched: pl.DataFrame, touched: pl.DataFrame, *, without: Sequence[int]
) -> Iterator[Usage]:
    """Turn per-call data into columns: one usage per layer, without console streams."""
    known = stitched.with_columns(
        pl.col("file").cast(pl.Int64).fill_null(NAMELESS), pl.col("rank").fill_null(EVERYONE)
    )
    known = known.filter(~pl.col("file").is_in(list(without)))
    covered = (
        touched.with_columns(pl.col("file").cast(pl.Int64).fill_null(NAMELESS))
        .group_by("layer", "file", "operation")
        .agg((pl.col("high") - pl.col("low")).sum().alias("covered"))
    )
    for layer in known["layer"].unique().sort().to_list():
        yield _usage(str(layer), known.filter(layer=layer), covered.filter(layer=layer))


def _usage(layer: str, rows: pl.DataFrame, covered: pl.DataFrame) -> Usage:
    entries = rows.select(_ENTRY).unique(maintain_order=True)

    def of(operation: str) -> pl.DataFrame:
        chosen = rows.filter(operation=operation).drop("layer", "operation")
        return entries.join(chosen, on=_ENTRY, how="left", maintain_order="left")

    def counts(operation: str) -> list[int]:
        return of(operation)["operations"].fill_null(0).to_list()

    data = {d: of(d) for d in DIRECTIONS}
    syncs = of("sync")
    return Usage(
        layer=layer,
        file=entries["file"].to_list(),
        rank=entries["rank"].to_list(),
        moves={d: _moves(data[d], covered.filter(operation=d)) for d in DIRECTIONS},
        metadata_seconds=_metadata_seconds(entries, rows),
        opens=counts("open"),
        seeks=counts("seek"),
        stats=counts("stat"),
        syncs=syncs["operations"].fill_null(0).to_list(),
        sync_seconds=syncs["seconds"].fill_null(0.0).to_list(),
        misaligned=_count_misaligned(data["read"], data["write"]),
    )


def _metadata_seconds(entries: pl.DataFrame, rows: pl.DataFrame) -> list[float]:
    others = rows.filter(~pl.col("operation").is_in([*DIRECTIONS, "sync"]))
    sums = others.group_by(_ENTRY).agg(pl.col("seconds").sum())
    joined = entries.join(sums, on=_ENTRY, how="left", maintain_order="left")
    return joined["seconds"].fill_null(0.0).to_list()


def _count_misaligned(read: pl.DataFrame, write: pl.DataFrame) -> list[int] | None:
    if not _has_offsets(read) and not _has_offsets(write):
        return None
    return (read["misaligned"].fill_null(0) + write["misaligned"].fill_null(0)).to_list()


def _has_offsets(table: pl.DataFrame) -> bool:
    """Whether it is known for most calls where in the file they go."""
    operations, unplaced = int(table["operations"].sum()), int(table["unplaced"].sum())
    return operations > 0 and 2 * unplaced < operations


def _moves(table: pl.DataFrame, covered: pl.DataFrame) -> Moves:
    filled = table.with_columns(pl.exclude(*_ENTRY).fill_null(0))
    column = {name: filled[name].to_list() for name in filled.columns}
    placed = _has_offsets(table) or not table["operations"].sum()
    collective = table["uncollected"].sum() < table["operations"].sum()
    extent = filled.join(covered, on="file", how="left", maintain_order="left")["covered"]
    independent = filled["operations"] - filled["collective"] - filled["nonblocking"]
    return Moves(
        column["operations"],
        column["bytes"],
        column["seconds"],
        small=column["small"],
        forward=column["forward"] if placed else None,
        consecutive=column["consecutive"] if placed else None,
        first=column["first"] if placed else None,
        extent=extent.fill_null(0).to_list() if placed else None,
        collective=column["collective"] if collective else None,
        independent=independent.clip(0).to_list() if collective else None,
        nonblocking=column["nonblocking"] if collective else None,
        begin=column["begin"],
    )


def rank_loads(totals: pl.DataFrame) -> dict[str, RankLoad]:
    """Turn totals by layer, rank and operation into what each rank did."""
    loads = {}
    for layer in totals["layer"].unique().sort().to_list():
        moved: dict[int, dict[str, int]] = {}
        calls: dict[int, dict[str, int]] = {}
        seconds: dict[int, float] = {}
        rows = totals.filter(layer=layer).select(
            "rank", "operation", "operations", "bytes", "seconds"
        )
        rows = rows.sort("rank", "operation")  # ties between ranks go to the lowest
        for rank, operation, operations, size, time in rows.iter_rows():
            seconds[rank] = seconds.get(rank, 0.0) + time
            if operation in DIRECTIONS:
                moved.setdefault(rank, {})[operation] = size
                calls.setdefault(rank, {})[operation] = operations
        loads[str(layer)] = RankLoad(moved, calls, seconds)
    return loads


def target_bytes(load: pl.DataFrame) -> dict[str, dict[int, int]]:
    """Turn the load of storage targets into bytes by layer and target."""
    by_target: dict[str, dict[int, int]] = {}
    sums = load.group_by("layer", "target").agg(pl.col("bytes").sum())
    for layer, target, size in sums.iter_rows():
        by_target.setdefault(str(layer), {})[target] = size
    return by_target
