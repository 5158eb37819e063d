"""The perspectives one can take: for each, the number of every main-view row in it.

A perspective numbers what it tells apart from 0 on, so that a set of its records is a plain
array of flags. Names are looked up at the very end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from ioprism.errors import UsageError
from ioprism.model.layers import LAYERS
from ioprism.model.schema import OPERATIONS
from ioprism.plugins import declared, load
from ioprism.views.calls.call_class import SIZE_NAMES, Codes, layer_of, operation_of, size_bin_of

GROUP = "ioprism.views"

MEANINGS: Mapping[str, str] = {
    "process": "one process, or thread where the trace distinguishes threads",
    "file": "one file",
    "time": "one time bucket",
    "rank": "one MPI rank",
    "host": "one node",
    "application": "one program of a workflow",
    "directory": "the folder of a file",
    "pattern": "files whose names differ in digits only",
    "extension": "what follows the last dot of a file's name",
    "depth": "how deep a file is in the folder tree",
    "mount": "a mounted file system",
    "filesystem": "a type of file system",
    "target": "the storage targets of a file",
    "layer": "an interface: posix, stdio, mpiio, …",
    "operation": "a kind of call: read, write, open, …",
    "function": "a call by its own name",
    "size": "a range of request sizes",
    "phase": "busy time buckets that follow each other without a pause",
}
OF_CALLS = ("layer", "operation", "function", "size")  # may differ within process, file and time
WIDEST = 2**20  # between integers that are numbered by distance, however many rows there are
_CLASSES: Mapping[str, tuple[Callable[[Codes], Codes], tuple[str, ...]]] = {
    "layer": (layer_of, LAYERS),
    "operation": (operation_of, OPERATIONS),
    "size": (size_bin_of, SIZE_NAMES),
}


@dataclass(frozen=True, slots=True, eq=False)
class TableView:
    """A view by a column of the table of files or processes. Plug-ins declare such views."""

    table: Literal["file", "process"]
    value: pl.Expr  # over the columns of that table: the same value, the same record
    meaning: str


_PROCESS_COLUMNS = ("rank", "host", "application")
_FILE_COLUMNS: Mapping[str, pl.Expr] = {
    **{n: pl.col(n) for n in ("directory", "pattern", "extension", "mount", "filesystem")},
    "depth": pl.col("directory").str.strip_chars_end("/").str.count_matches("/"),
    "target": pl.col("targets").list.eval(pl.element().cast(pl.String)).list.join(", "),
}
_TABLE_VIEWS: Mapping[str, TableView] = {
    **{n: TableView("process", pl.col(n), MEANINGS[n]) for n in _PROCESS_COLUMNS},
    **{n: TableView("file", value, MEANINGS[n]) for n, value in _FILE_COLUMNS.items()},
}


@dataclass(frozen=True, slots=True, eq=False)
class Perspective:
    """A way to look at the rows of the main view."""

    name: str
    codes: pl.Series  # of every row, from 0 on
    values: pl.Series  # what each code stands for; null where the trace does not say


def meanings() -> dict[str, str]:
    """Every view and what one of its records is, those of plug-ins last."""
    return {**MEANINGS, **{one.name: load(one).meaning for one in declared(GROUP)}}


def _table_view(name: str) -> TableView:
    if name in _TABLE_VIEWS:
        return _TABLE_VIEWS[name]
    view: TableView = next(load(one) for one in declared(GROUP) if one.name == name)
    return view


def check_views(names: tuple[str, ...]) -> None:
    """Refuse views that do not exist or come twice."""
    unknown = [name for name in names if name not in MEANINGS and name not in meanings()]
    if unknown or not names or len(set(names)) < len(names):
        what = f"there is no view {unknown[0]!r}" if unknown else "views must be named once each"
        raise UsageError(f"{what}.\nHint: views are {', '.join(meanings())}.")


def perspective(
    name: str, main: pl.DataFrame, *, files: pl.DataFrame, processes: pl.DataFrame
) -> Perspective:
    """Number the rows of the main view as this perspective sees them."""
    if name in ("process", "file"):
        return _number_rows(name, main[name])
    if name == "time":
        return _dense(name, main["time"])
    if name == "phase":
        return _phases(main["time"])
    if name == "function":
        return _dense(name, main["function"].cast(pl.String))
    if name in _CLASSES:
        decode, names = _CLASSES[name]
        codes = pl.Series(decode(main["class"].to_numpy().astype(np.int64)).astype(np.uint32))
        return Perspective(name, codes, pl.Series(names))
    view = _table_view(name)
    table = files if view.table == "file" else processes
    return _looked_up(name, main[view.table], table.select(view.table, view.value.alias(name)))


def _number_rows(name: str, rows: pl.Series) -> Perspective:
    """Numbers that already count from 0; null comes last."""
    highest = rows.max()
    size = highest + 1 if isinstance(highest, int) else 0
    values = pl.Series([*range(size), None], dtype=pl.UInt32)
    return Perspective(name, rows.fill_null(size), values)


def _dense(name: str, rows: pl.Series) -> Perspective:
    """Number different values from 0 on; null comes last."""
    if rows.dtype.is_integer() and (offset := _by_offset(name, rows.cast(pl.Int64))) is not None:
        return offset
    values = rows.unique().sort(nulls_last=True)
    numbers = pl.DataFrame({"value": values}).with_row_index("code")
    joined = pl.DataFrame({"value": rows}).join(
        numbers, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return Perspective(name, joined["code"], values)


def _by_offset(name: str, rows: pl.Series) -> Perspective | None:
    """Number integers by their distance from the least, unless they lie too far apart."""
    low, high = rows.min(), rows.max()
    if not isinstance(low, int) or not isinstance(high, int) or high - low > WIDEST:
        return None
    span = high - low + 1
    every = pl.int_range(low, high + 1, eager=True).extend(pl.Series([None], dtype=pl.Int64))
    return Perspective(name, (rows - low).fill_null(span).cast(pl.UInt32), every)


def _looked_up(name: str, rows: pl.Series, table: pl.DataFrame) -> Perspective:
    """Replace a row number by a column of the table it points into."""
    small = _dense(name, table[name])
    highest = max((int(s.max() or 0) for s in (rows, table.to_series(0)) if len(s)), default=0)  # type: ignore[arg-type]
    unknown = len(small.values)
    lookup = np.full(highest + 2, unknown, np.uint32)
    lookup[table.to_series(0).to_numpy()] = small.codes.to_numpy()
    codes = lookup[rows.fill_null(highest + 1).to_numpy()]
    values = pl.concat([small.values, pl.Series([None], dtype=small.values.dtype)])
    return Perspective(name, pl.Series(codes), values)


def _phases(time: pl.Series) -> Perspective:
    """Number the runs of busy buckets; a run's value is the bucket it begins with."""
    busy = time.unique().sort().drop_nulls()
    starts = (busy.diff() > 1).fill_null(True)
    table = pl.DataFrame({"time": busy, "phase": (starts.cum_sum() - 1).cast(pl.UInt32)})
    codes = pl.DataFrame({"time": time}).join(table, on="time", how="left", maintain_order="left")
    first = busy.filter(starts)
    values = pl.concat([first, pl.Series([None], dtype=first.dtype)])
    return Perspective("phase", codes["phase"].fill_null(len(first)), values)
