"""Rows of the main view from other perspectives, and the longest of the calls behind them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.bottleneck_search.names import record_names
from ioprism.bottleneck_search.settings import Settings
from ioprism.engine.base import Engine
from ioprism.model.result import Result, whole_numbers
from ioprism.model.trace import Trace
from ioprism.views.calls.longest_calls import LongestCalls
from ioprism.views.perspectives.codes import perspective
from ioprism.views.perspectives.records import PER_SECOND

PARTS = ("file", "process", "time", "function", "size")
MOST = 10  # parts of each perspective, and calls


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TakenApart(Result):
    """A finding or bottleneck, and what is behind it."""

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
