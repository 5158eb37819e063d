"""Write the table of bottlenecks for other tools."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ioprism.errors import UsageError
from ioprism.storage.atomic import atomic_write
from ioprism.text import printable

# Spreadsheets take text that begins like this for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(table: pl.DataFrame, target: Path) -> None:
    """Write a table as CSV or Parquet, by the target's ending.

    Raises:
        UsageError: the ending is neither.
    """
    if target.suffix not in (".csv", ".parquet"):
        raise UsageError(
            f"{printable(target.name)}: tables are written as .csv or .parquet.\n"
            "Hint: give the file one of these endings."
        )
    with atomic_write(target, replace=True) as aside:
        if target.suffix == ".csv":
            table.with_columns(pl.col(pl.String).map_elements(_harmless, pl.String)).write_csv(
                aside
            )
        else:
            table.write_parquet(aside)


def _harmless(text: str) -> str:
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
