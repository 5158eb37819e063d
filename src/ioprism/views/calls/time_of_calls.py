"""How long each rank is in calls of several kinds: one pass over the events for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_STREAM = ("layer", "file", "rank", "operation")
_REACHED = pl.col("offset") + pl.col("bytes")
# Whether a request begins before the end of the one before it, of the same rank and file.
BACKWARD = pl.col("backward")


@dataclass(frozen=True, slots=True)
class TimeOfCalls:
    """Seconds by rank, one column for each kind, named by its number."""

    kinds: tuple[pl.Expr, ...]
    with_order: bool = False  # some kind asks for `BACKWARD`

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Add up some of the events."""
        known = self._ordered(events) if self.with_order else events
        seconds = pl.col("end") - pl.col("start")
        return known.group_by("rank").agg(
            seconds.filter(kind).sum().alias(str(number)) for number, kind in enumerate(self.kinds)
        )

    def _ordered(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Where one piece of the events follows another, one request of each stream is missed."""
        before = _REACHED.shift(1).over(_STREAM)
        return events.sort(*_STREAM, "start", maintain_order=True).with_columns(
            backward=(pl.col("offset") < before).fill_null(value=False)
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add up sums."""
        return partials.group_by("rank").agg(pl.exclude("rank").sum())
