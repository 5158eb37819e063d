"""Write tables for other programs: CSV or Parquet, safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from ioprism.errors import EndingError
from ioprism.model.trace import Progress, Trace
from ioprism.storage.atomic import atomic_write, refuse_unless_file, refuse_unless_text
from ioprism.text import printable

# Spreadsheets take text that begins like this for a formula.
FORMULA = ("=", "+", "-", "@")
# What `printable` shows as an escape, or what begins like a formula.
ODD = r"^[=+\-@]|[\p{C}\p{Zl}\p{Zp}]"
# Darshan's names of what the tables of these modules call otherwise. It numbers the components
# of a layout and the bins of a heat map in its names; here, each has a row.
DARSHAN_NAMES: Mapping[str, Mapping[str, str]] = {
    "LUSTRE": {
        "system_targets": "LUSTRE_OSTS",
        "stripe_size": "LUSTRE_STRIPE_SIZE",
        "stripe_count": "LUSTRE_STRIPE_COUNT",
        "pattern": "LUSTRE_STRIPE_PATTERN",
        "flags": "LUSTRE_FLAGS",
        "extent_start": "LUSTRE_EXT_START",
        "extent_end": "LUSTRE_EXT_END",
        "mirror": "LUSTRE_MIRROR_ID",
        "pool": "LUSTRE_POOL_NAME",
        "targets": "LUSTRE_OST_IDS",
    },
    "HEATMAP": {
        "bin_width": "HEATMAP_F_BIN_WIDTH_SECONDS",
        "write": "HEATMAP_WRITE_BIN",
        "read": "HEATMAP_READ_BIN",
    },
}


def write_table(table: pl.DataFrame, target: Path, *, replace: bool = False) -> None:
    """Write a table as CSV or Parquet, by the target's ending.

    Raises:
        EndingError: the ending is neither.
        OutputError: the target exists and is not to be replaced.
    """
    if target.suffix.lower() not in (".csv", ".parquet"):
        raise EndingError(target, what="tables", known=(".csv", ".parquet"))
    refuse_unless_text(target)
    with atomic_write(target, replace=replace) as temporary:
        if target.suffix.lower() == ".csv":
            harmless(table).write_csv(temporary)
        else:
            table.write_parquet(temporary)


def write_events(
    trace: Trace, path: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write one row per event: the columns of the event table, with paths instead of numbers."""
    refuse_unless_text(path)
    rows = _named_events(trace, progress)
    with atomic_write(path, replace=replace) as temporary:
        if path.suffix.lower() == ".csv":
            with temporary.open("wb") as file:
                for number, some in enumerate(rows):
                    harmless(some).write_csv(file, include_header=number == 0)
            return
        # Parts beside the file: together they need not fit into memory.
        with TemporaryDirectory(dir=temporary.parent, prefix=f"{temporary.name}.") as parts:
            for number, some in enumerate(rows):
                some.write_parquet(Path(parts, f"{number:08}.parquet"))
            pl.scan_parquet(parts).sink_parquet(temporary, mkdir=False)


def _named_events(trace: Trace, progress: Progress | None) -> Iterator[pl.DataFrame]:
    paths = trace.files.select("file", "path").lazy()
    for number, batch in enumerate(trace.batches()):
        named = batch.join(paths, on="file", how="left", maintain_order="left")
        yield named.with_columns(file=pl.col("path")).drop("path").collect()
        if progress is not None:
            progress(number + 1)


def counter_targets(trace: Trace, target: Path) -> dict[str, Path]:
    """Return the file that the counters of each module go to."""
    return {
        module: target.with_name(f"{target.stem}-{module.replace('/', '')}{target.suffix}")
        for module in trace.counters
    }


def write_counters(trace: Trace, target: Path, *, replace: bool = False) -> list[Path]:
    """Write one table per module, named after the target and the module; return their paths.

    Columns are named as Darshan names its counters, after the record's path and rank.
    """
    targets = counter_targets(trace, target)
    for path in targets.values():
        refuse_unless_file(path, replace=replace)
    for module, path in targets.items():
        write_table(named_counters(trace, module), path, replace=replace)
    return list(targets.values())


def named_counters(trace: Trace, module: str) -> pl.DataFrame:
    """Return the counters of one module with paths instead of numbers."""
    table = trace.counters[module]
    if module == "HEATMAP":
        bins = pl.int_ranges(pl.col("read").list.len()).alias("bin")
        table = table.with_columns(bins).explode("bin", "read", "write")
    if module == "LUSTRE":
        table = table.with_columns(pl.col("targets").cast(pl.List(pl.String)).list.join(" "))
    paths = trace.files.select("file", "path")
    for column in ("parent", "file"):
        if column in table.columns:
            table = table.join(
                paths.rename({"file": column}), on=column, how="left", maintain_order="left"
            ).select(pl.col("path").alias(column), pl.exclude("path", column))
    return table.rename(dict(DARSHAN_NAMES.get(module, {})))


def harmless(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose texts are neither formulas nor steer a terminal."""
    texts = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical)]
    return table.with_columns(_harmless(table[name].cast(pl.String)) for name in texts)


def _harmless(column: pl.Series) -> pl.Series:
    odd = column.filter(column.str.contains(ODD)).unique().to_list()
    shown = map(printable, odd)
    return column.replace(odd, [f"'{one}" if one.startswith(FORMULA) else one for one in shown])
