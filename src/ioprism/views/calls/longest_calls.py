"""The longest calls among those that are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import polars as pl

COLUMNS = ("start", "end", "process", "file", "layer", "operation", "function", "offset", "bytes")


class Calls(Protocol):
    """Which calls are asked for."""

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class CallsOfCells:
    """Calls that begin or end in one of some cells of the main view."""

    cells: pl.DataFrame  # process, file, time
    bucket: float  # seconds
    origin: float = 0.0

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        inside = pl.any_horizontal(self._inside(name) for name in ("start", "end"))
        timed = self.cells["time"].null_count() < self.cells.height
        wanted = self.cells.select("process", "file").unique().lazy()
        calls = events.join(wanted, on=["process", "file"], how="semi", nulls_equal=True)
        return calls.filter(inside) if timed else calls

    def _inside(self, name: str) -> pl.Expr:
        """Whether the call's process used its file in the bucket of this moment."""
        bucket = ((pl.col(name) - self.origin) / self.bucket).floor().cast(pl.Int64)
        keys = self.cells.select("process", "file", "time").unique()
        known = keys.select(pl.struct(keys.columns)).to_series()
        return pl.struct(
            pl.col("process"), pl.col("file"), bucket.alias("time")
        ).is_in(known.implode(), nulls_equal=True)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CallsWhere:
    """Calls for which something holds."""

    condition: pl.Expr

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        return events.filter(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class LongestCalls:
    """The longest of the calls, longest first."""

    calls: Calls
    most: int = 20

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Take the longest of some events."""
        return self.combine(self.calls.of(events).select(COLUMNS))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the longest of all; calls of equal length in the order of their start."""
        length = (pl.col("end") - pl.col("start")).round(9)
        order = [length, pl.col("start"), pl.col("process"), pl.col("file")]
        return partials.sort(order, descending=[True, False, False, False]).head(self.most)
