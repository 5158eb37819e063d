"""What lies behind one bottleneck: its parts from other perspectives, and its longest calls."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from ioprism.bottleneck_search.cross_view import record_names
from ioprism.bottleneck_search.find import Found
from ioprism.bottleneck_search.result import Bottleneck
from ioprism.bottleneck_search.settings import Settings
from ioprism.engine.base import Engine
from ioprism.errors import UsageError
from ioprism.model.result import Result, whole_numbers
from ioprism.model.trace import Trace
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.calls.longest_calls import CallsOfCells, LongestCalls
from ioprism.views.perspectives.codes import perspective
from ioprism.views.perspectives.records import PER_SECOND

PARTS = ("file", "process", "time", "function", "size")
MOST = 10  # parts of each perspective, and calls


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TakenApart(Result):
    """A finding or bottleneck, and the calls that cause it."""

    parts: Mapping[str, pl.DataFrame]  # perspective -> name, time, operations, bytes
    calls: pl.DataFrame  # the longest calls, with names

    def _with_parts(self, **subject: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the JSON holds: the subject under its name, and its parts."""
        plain: dict[str, Any] = whole_numbers(
            {
                **subject,
                "parts": {name: table.to_dicts() for name, table in self.parts.items()},
                "calls": self.calls.to_dicts(),
            }
        )
        return plain

    def to_frame(self) -> pl.DataFrame:
        """Return the longest calls."""
        return self.calls


def parts(
    rows: pl.DataFrame, trace: Trace, settings: Settings, *, without: Container[str] = ()
) -> dict[str, pl.DataFrame]:
    """Return name, time, operations and bytes of the largest parts from each perspective."""
    return {name: _part(name, rows, trace, settings) for name in PARTS if name not in without}


def longest_calls(view: LongestCalls, trace: Trace, engine: Engine) -> pl.DataFrame:
    """Look for the longest calls in the events; an empty table where there are none."""
    if not trace.partitions:
        return pl.DataFrame()
    (calls,) = engine.run(trace, view)
    return _named_calls(calls, trace)


def _part(name: str, rows: pl.DataFrame, trace: Trace, settings: Settings) -> pl.DataFrame:
    seen = perspective(name, rows, files=trace.files, processes=trace.processes)
    sums = (
        rows.with_columns(code=seen.codes)
        .group_by("code")
        .agg(
            time=pl.col("nanoseconds").sum() / PER_SECOND,
            operations=pl.col("count").sum().round(9),
            bytes=pl.col("bytes").sum(),
        )
        .sort("time", "code", descending=[True, False])
        .head(MOST)
    )
    names = record_names(
        seen, sums["code"], files=trace.files, processes=trace.processes,
        bucket=settings.bucket, origin=settings.origin,
    )  # fmt: skip
    return sums.drop("code").insert_column(0, names.alias("name"))


def _named_calls(calls: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    names = {
        name: record_names(
            seen, seen.codes, files=trace.files, processes=trace.processes, bucket=1.0
        )
        for name in ("process", "file")
        for seen in [perspective(name, calls, files=trace.files, processes=trace.processes)]
    }
    return calls.with_columns(
        pl.col("layer", "operation", "function").cast(pl.String),
        process=names["process"],
        file=names["file"],
        seconds=pl.col("end") - pl.col("start"),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inspection(TakenApart):
    """A bottleneck, taken apart."""

    bottleneck: Bottleneck

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return self._with_parts(bottleneck=self.bottleneck.to_dict())

    def summary(self) -> str:
        """Return the answer in one line."""
        return f"{self.bottleneck.id}: {format_seconds(self.bottleneck.time)}"


def rows_behind(bottlenecks: Found, identifier: str) -> pl.DataFrame:
    """Return the main-view rows of one bottleneck.

    Raises:
        UsageError: there is none of this name.
    """
    row = bottlenecks.table.filter(pl.col("id") == identifier)
    if row.is_empty():
        raise UsageError(
            f"unknown bottleneck {printable(identifier)[:40]!r} among the "
            f"{bottlenecks.table.height}.\nHint: ids come from `ioprism bottlenecks` with the "
            "same options, codes of findings from `ioprism insights`."
        )
    record = row.row(0, named=True)
    coded = bottlenecks.rows.code_table
    codes = {name: value for name, value in record.items() if name.endswith("_code")}
    keep = [f.keep(coded) for f in bottlenecks.filters[record["view"]]]
    keep += [
        coded[name].to_numpy() == value
        for name, value in codes.items()
        if value is not None and name in coded.columns
    ]
    return bottlenecks.rows.main.filter(pl.Series(reduce(and_, keep, np.ones(coded.height, bool))))


def inspect_bottleneck(
    bottleneck: Bottleneck, rows: pl.DataFrame, trace: Trace, engine: Engine, settings: Settings
) -> Inspection:
    """Take a bottleneck apart; its longest calls are looked for in the events."""
    cells = CallsOfCells(rows.select("process", "file", "time"), settings.bucket, settings.origin)
    return Inspection(
        bottleneck,
        parts=parts(rows, trace, settings, without=bottleneck.record),
        calls=longest_calls(LongestCalls(cells, most=MOST), trace, engine),
    )
