"""How long each rank is in calls of several kinds: one pass over the events for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

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
        known = self._ordered(events) if self.with_order else events
        seconds = pl.col("end") - pl.col("start")
        return known.group_by("rank").agg(
            column
            for number, kind in enumerate(self.kinds)
            for column in (
                seconds.filter(kind).sum().alias(str(number)),
                pl.col("bytes").filter(kind).sum().alias(f"{number} bytes"),
            )
        )

    def _ordered(self, events: pl.LazyFrame) -> pl.LazyFrame:
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
