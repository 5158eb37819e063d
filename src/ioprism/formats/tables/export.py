"""Write tables for other programs: CSV or Parquet, safe to open in a spreadsheet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ioprism.errors import EndingError
from ioprism.model.trace import Progress, Trace
from ioprism.storage.atomic import atomic_write
from ioprism.text import printable

# Spreadsheets take text that begins like this for a formula.
FORMULA = ("=", "+", "-", "@")
# What `printable` shows as an escape, or what begins like a formula.
ODD = r"^[=+\-@]|[\p{C}\p{Zl}\p{Zp}]"


def write_table(table: pl.DataFrame, target: Path, *, replace: bool = False) -> None:
    """Write a table as CSV or Parquet, by the target's ending.

    Raises:
        EndingError: the ending is neither.
        OutputError: the target exists and is not to be replaced.
    """
    if target.suffix not in (".csv", ".parquet"):
        raise EndingError(target, what="tables", known=(".csv", ".parquet"))
    with atomic_write(target, replace=replace) as temporary:
        if target.suffix == ".csv":
            harmless(table).write_csv(temporary)
        else:
            table.write_parquet(temporary)


def write_events(
    trace: Trace, path: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write one row per event: the columns of the event table, with paths instead of numbers."""
    paths = trace.files.select("file", "path").lazy()
    with atomic_write(path, replace=replace) as temporary, temporary.open("wb") as file:
        for number, batch in enumerate(trace.batches()):
            named = batch.join(paths, on="file", how="left", maintain_order="left")
            rows = named.with_columns(file=pl.col("path")).drop("path").collect()
            harmless(rows).write_csv(file, include_header=number == 0)
            if progress is not None:
                progress(number + 1)


def harmless(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose texts are neither formulas nor steer a terminal."""
    texts = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical)]
    return table.with_columns(_harmless(table[name].cast(pl.String)) for name in texts)


def _harmless(column: pl.Series) -> pl.Series:
    odd = column.filter(column.str.contains(ODD)).unique().to_list()
    return column.replace(odd, [_escape_formula(text) for text in odd]) if odd else column


def _escape_formula(text: str) -> str:
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
