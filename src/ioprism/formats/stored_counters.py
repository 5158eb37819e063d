"""Check that the counters of a store have the columns of their modules.

Checksums say that a file is the one that was written, not that it was written by ioprism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.darshan.records import FIXED
from ioprism.formats.darshan.tables import HEATMAP, LUSTRE
from ioprism.model.trace import LazyTables, Trace


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
