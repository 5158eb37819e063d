"""What lies behind one bottleneck: its parts from other perspectives, and its longest calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from ioprism.analyses.bottlenecks.find import Found
from ioprism.analyses.bottlenecks.names import record_names
from ioprism.analyses.bottlenecks.result import Bottleneck
from ioprism.analyses.bottlenecks.settings import Settings
from ioprism.engine.base import Engine
from ioprism.errors import UsageError
from ioprism.model.trace import Trace
from ioprism.text import printable
from ioprism.views.codes import perspective
from ioprism.views.longest_calls import LongestCalls

PARTS = ("file", "process", "time", "function", "size")
MOST = 10  # parts of each perspective, and calls


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """A bottleneck, taken apart."""

    bottleneck: Bottleneck
    parts: Mapping[str, pl.DataFrame]  # perspective -> name, time, operations, bytes
    calls: pl.DataFrame  # the longest calls, with names

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return {
            "bottleneck": self.bottleneck.to_dict(),
            "parts": {name: table.to_dicts() for name, table in self.parts.items()},
            "calls": self.calls.to_dicts(),
        }


def rows_behind(found: Found, identifier: str) -> pl.DataFrame:
    """Return the main-view rows of one bottleneck.

    Raises:
        UsageError: there is none of this name.
    """
    row = found.table.filter(pl.col("id") == identifier)
    if row.is_empty():
        raise UsageError(
            f"there is no bottleneck {printable(identifier)[:40]!r} among the {found.table.height} "
            "found.\nHint: ids come from `ioprism bottlenecks` with the same options."
        )
    record = row.row(0, named=True)
    coded = found.rows.coded
    codes = {name: value for name, value in record.items() if name.endswith("_code")}
    keep = [f.keep(coded) for f in found.filters[record["view"]]]
    keep += [
        coded[name].to_numpy() == value
        for name, value in codes.items()
        if value is not None and name in coded.columns
    ]
    return found.rows.main.filter(pl.Series(reduce(and_, keep, np.ones(coded.height, bool))))


def inspected(
    bottleneck: Bottleneck, rows: pl.DataFrame, trace: Trace, engine: Engine, settings: Settings
) -> Inspection:
    """Take a bottleneck apart; its longest calls are looked for in the events."""
    parts = {
        name: _part(name, rows, trace, settings) for name in PARTS if name not in bottleneck.record
    }
    view = LongestCalls(rows.select("process", "file", "time"), settings.bucket, settings.origin,
                        most=MOST)  # fmt: skip
    (calls,) = engine.run(trace, view) if trace.partitions else (None,)
    named = pl.DataFrame() if calls is None else _named_calls(calls, trace, settings)
    return Inspection(bottleneck, parts, named)


def _part(name: str, rows: pl.DataFrame, trace: Trace, settings: Settings) -> pl.DataFrame:
    seen = perspective(name, rows, files=trace.files, processes=trace.processes)
    sums = (
        rows.with_columns(code=seen.codes)
        .group_by("code")
        .agg(
            time=pl.col("seconds").sum(),
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


def _named_calls(calls: pl.DataFrame, trace: Trace, settings: Settings) -> pl.DataFrame:
    names = {
        name: record_names(
            seen, seen.codes, files=trace.files, processes=trace.processes, bucket=settings.bucket
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
