"""The longest calls among those that are asked for, and how long each rank is in some kinds."""

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


_STREAM = ("layer", "file", "rank", "operation")
_REACHED = pl.col("offset") + pl.col("bytes")
# Whether a request begins before the end of the one before it, of the same rank and file.
BACKWARD = pl.col("backward")
# Whether an earlier request of any rank began at the same place.
REPEATED = pl.col("repeated")


@dataclass(frozen=True, slots=True)
class TimeOfCalls:
    """Seconds and bytes by rank: columns `0`, `0 bytes`, `1`, … for each kind."""

    kinds: tuple[pl.Expr, ...]
    with_order: bool = False  # some kind asks for `BACKWARD` or `REPEATED`

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Add up some of the events."""
        known = self._with_order(events) if self.with_order else events
        seconds = pl.col("end") - pl.col("start")
        return known.group_by("rank").agg(
            column
            for number, kind in enumerate(self.kinds)
            for column in (
                seconds.filter(kind).sum().alias(str(number)),
                pl.col("bytes").filter(kind).sum().alias(f"{number} bytes"),
            )
        )

    def _with_order(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Where one piece of the events follows another, one request of each stream is missed."""
        before = _REACHED.shift(1).over(_STREAM)
        place = ("layer", "file", "operation", "offset")
        first = pl.col("start").min().over(place)
        return events.sort(*_STREAM, "start", maintain_order=True).with_columns(
            backward=(pl.col("offset") < before).fill_null(value=False),
            repeated=((pl.col("start") > first) & pl.col("offset").is_not_null()),
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add up sums."""
        return partials.group_by("rank").agg(pl.exclude("rank").sum())
