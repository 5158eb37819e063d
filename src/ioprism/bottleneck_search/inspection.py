"""What lies behind one bottleneck: its parts from other perspectives, and its longest calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from ioprism.bottleneck_search.find import Found
from ioprism.bottleneck_search.parts import MOST, TakenApart, longest_calls, parts
from ioprism.bottleneck_search.result import Bottleneck
from ioprism.bottleneck_search.settings import Settings
from ioprism.engine.base import Engine
from ioprism.errors import UsageError
from ioprism.model.trace import Trace
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.calls.longest_calls import CallsOfCells, LongestCalls


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


def rows_behind(found: Found, identifier: str) -> pl.DataFrame:
    """Return the main-view rows of one bottleneck.

    Raises:
        UsageError: there is none of this name.
    """
    row = found.table.filter(pl.col("id") == identifier)
    if row.is_empty():
        raise UsageError(
            f"there is no bottleneck {printable(identifier)[:40]!r} among the {found.table.height} "
            "found.\nHint: ids come from `ioprism bottlenecks` with the same options, codes of "
            "findings from `ioprism insights`."
        )
    record = row.row(0, named=True)
    coded = found.rows.code_table
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
    cells = CallsOfCells(rows.select("process", "file", "time"), settings.bucket, settings.origin)
    return Inspection(
        bottleneck,
        parts=parts(rows, trace, settings, without=bottleneck.record),
        calls=longest_calls(LongestCalls(cells, most=MOST), trace, engine),
    )
