"""What `decode` reads, as polars tables: counters, stripe layouts, heat maps, files, processes.

The counters of a store are checked to have the same columns: checksums say that a file is the
one that was written, not that it was written by ioprism.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.darshan import decode
from ioprism.formats.darshan.decode import FileCodes, HeatRecord, ModuleRecords, Rows
from ioprism.formats.darshan.meaning import FIXED, HEATMAP_LAYERS, LUSTRE_COMPONENT, PADDING, Layout
from ioprism.model.schema import Kind, Layer
from ioprism.model.trace import LazyTables, Trace
from ioprism.model.usage import NAMELESS

TIMES = pl.col(pl.Float64)

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
HEATMAP = pl.Schema(
    {
        "id": pl.UInt64(),
        "rank": pl.Int32(),
        "bin_width": pl.Float64(),
        "write": pl.List(pl.Int64()),
        "read": pl.List(pl.Int64()),
    }
)


def file_column(name: str, rows: Rows) -> pl.Series:
    """Return rows of the file table as a column; null for files without a name."""
    known = rows != NAMELESS
    column = pl.Series(name, np.where(known, rows, 0).astype(np.uint32))
    if known.all():
        return column
    return column.zip_with(pl.Series(known), pl.Series([None], dtype=pl.UInt32))


def counter_table(records: ModuleRecords, module: str, newest: Layout) -> pl.DataFrame:
    """Return a module's records as a table with the columns of its newest version.

    Columns that this version lacks are null, and so are times that are not numbers.
    """
    words, layout = records.words, records.layout
    keys = [
        file_column("file", records.file_rows),
        pl.Series("rank", words[:, 1].astype(np.int32)),
    ]
    if layout.has_parent:
        keys.append(file_column("parent", records.codes.rows(words[:, 2])))
    first, last = records.first_time, records.first_time + len(layout.times)
    parts = [
        pl.DataFrame(keys),
        _name_columns(words[:, len(keys) : first].view(np.int64), layout.counters),
        _name_columns(words[:, first:last].view(np.float64), layout.times),
        pl.DataFrame(_tail(words[:, last:].T, layout, records.byte_order)),
    ]
    table = pl.concat([part for part in parts if part.width], how="horizontal")
    table = _modernise(table, module, newest)
    if np.isfinite(records.times).all():
        return table
    return table.with_columns(pl.when(TIMES.is_finite()).then(TIMES).name.keep())


def _name_columns(values: npt.NDArray[np.generic], names: Sequence[str]) -> pl.DataFrame:
    """Name all columns in one step: one by one takes longer than reading a small log."""
    if not names:
        return pl.DataFrame()
    table = pl.Series(np.ascontiguousarray(values)).arr.to_struct(names).struct.unnest()
    return table.drop(PADDING) if PADDING in names else table


def _tail(columns: npt.NDArray[np.uint64], layout: Layout, byte_order: str) -> Iterator[pl.Series]:
    position = 0
    for name in layout.tail:
        if name.endswith("_UUID"):
            # These are bytes, not numbers: undo what the byte order did to them.
            pairs = columns[position : position + 2].T.astype(f"{byte_order}u8").tobytes()
            texts = [str(uuid.UUID(bytes=pairs[i : i + 16])) for i in range(0, len(pairs), 16)]
            yield pl.Series(name, texts, dtype=pl.String)
            position += 2
        else:
            yield pl.Series(name, columns[position])
            position += 1


def _modernise(table: pl.DataFrame, module: str, newest: Layout) -> pl.DataFrame:
    """Give an older version's table the newest columns; counters it alone has stay at the end."""
    if module == "PNETCDF_FILE" and "PNETCDF_FILE_INDEP_OPENS" in table.columns:
        opens = pl.col("PNETCDF_FILE_INDEP_OPENS") + pl.col("PNETCDF_FILE_COLL_OPENS")
        table = table.with_columns(opens.alias("PNETCDF_FILE_OPENS"))
    wanted = {
        **({"parent": pl.UInt32} if newest.has_parent else {}),
        **dict.fromkeys(newest.counters, pl.Int64),
        **dict.fromkeys(newest.times, pl.Float64),
    }
    ordered, present = ["file", "rank", *wanted], table.columns
    if present[: len(ordered)] == ordered:
        return table
    missing = [
        pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in wanted.items()
        if name not in present
    ]
    return table.with_columns(missing).select(
        *ordered, *(name for name in present if name not in ordered)
    )


def lustre_table(components: Sequence[Mapping[str, Any]], codes: FileCodes) -> pl.DataFrame:
    """Return one row per layout component of each file."""
    table = pl.DataFrame(components, schema=LUSTRE)
    file = file_column("file", codes.rows(table["id"].to_numpy().astype(np.uint64)))
    return table.drop("id").insert_column(0, file)


def heat_map_table(records: Iterable[HeatRecord], names: Mapping[int, str]) -> pl.DataFrame:
    """Return one row per interface and rank: bin width in seconds, bytes per bin by direction."""
    rows = list(records)
    layers = [HEATMAP_LAYERS.get(names.get(record.id, "")) for record in rows]
    table = pl.DataFrame(rows, schema=HEATMAP, orient="row")
    return table.drop("id").insert_column(0, pl.Series("layer", layers, dtype=Layer))


def apmpi_table(records: npt.NDArray[Any]) -> pl.DataFrame:
    """Return one row per rank; times that are not numbers are null."""
    hosts = [host.decode("utf-8", "backslashreplace") or None for host in records["host"]]
    keys = [
        pl.Series("rank", records["rank"].astype(np.int32)),
        pl.Series("host", hosts, dtype=pl.String),
    ]
    parts = [
        pl.DataFrame(keys),
        _name_columns(records["counters"].astype(np.int64), decode.COUNTERS),
        _name_columns(records["times"].astype(np.float64), decode.TIMES),
    ]
    table = pl.concat(parts, how="horizontal")
    return table.with_columns(pl.when(TIMES.is_finite() & (TIMES >= 0)).then(TIMES).name.keep())


def with_layouts(files: pl.DataFrame, layouts: Mapping[int, Mapping[str, Any]]) -> pl.DataFrame:
    """Add the stripe layouts of files."""
    names = ("stripe_size", "stripe_count", "targets")
    rows = [(row, *(layout[name] for name in names)) for row, layout in layouts.items()]
    schema = pl.Schema({"file": pl.UInt32()} | {name: LUSTRE[name] for name in names})
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return files.drop(names).join(table, on="file", how="left", maintain_order="left")


def with_datasets(files: pl.DataFrame, datasets: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Mark data sets, and the file each is in."""
    if not datasets:
        return files
    parents = (
        pl.concat(table.select("file", "parent") for table in datasets)
        .drop_nulls("file")
        .unique("file", keep="first", maintain_order=True)
        .with_columns(kind=pl.lit("dataset", dtype=Kind))
    )
    files = files.update(parents, on="file", how="left")
    # Old logs do not name the file of a data set, but its name does: `file:data set`.
    orphans = (
        files.filter((pl.col("kind") == "dataset") & pl.col("parent").is_null())
        .select("file", parent_path=pl.col("path").str.extract(r"^(.*):[^:]*$", 1))
        .join(files.select(parent="file", parent_path="path"), on="parent_path")
        .select("file", "parent")
    )
    return files.update(orphans, on="file", how="left") if orphans.height else files


def check_counters(trace: Trace) -> Trace:
    """Return the trace with tables that are checked when they are asked for."""
    source = trace.paths[0]
    tables = trace.counters
    checked = {name: partial(_check_columns, tables, name, source) for name in tables}
    return replace(trace, counters=LazyTables(checked))


def _check_columns(tables: Mapping[str, pl.DataFrame], name: str, source: Path) -> pl.DataFrame:
    table = tables[name]
    for column, dtype in _columns(name).items():
        stored = table.schema.get(column)
        if stored is None or not (stored == dtype or (dtype.is_numeric() and stored.is_numeric())):
            raise BrokenTraceError(
                f"the store is damaged: its table of {name} has no column {column} of numbers.\n"
                "Hint: convert the original trace again.",
                source=source,
            )
    return table


def _columns(name: str) -> dict[str, pl.DataType]:
    """The columns that a module's table must have, and their types; none of unknown modules."""
    keys: dict[str, pl.DataType] = {"file": pl.UInt32(), "rank": pl.Int32()}
    if name in FIXED:
        newest = FIXED[name][max(FIXED[name])]
        counters = dict.fromkeys(newest.counters, pl.Int64())
        return keys | counters | dict.fromkeys(newest.times, pl.Float64())
    others: dict[str, Mapping[str, pl.DataType]] = {"HEATMAP": HEATMAP, "LUSTRE": keys | LUSTRE}
    variable = others.get(name, {})
    return {column: dtype for column, dtype in variable.items() if column != "id"}
