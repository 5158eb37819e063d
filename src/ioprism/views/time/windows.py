"""How many calls start in each of some windows of time, and the calls of a few of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]


def window_of(starts: Floats) -> pl.Expr:
    """The last window that begins at or before a call's start."""
    borders = pl.lit(pl.Series(starts, dtype=pl.Float64))
    return borders.search_sorted(pl.col("start"), side="right").cast(pl.Int64) - 1


@dataclass(frozen=True, slots=True)
class CallsPerWindow:
    """The number of calls in each window."""

    starts: Floats  # when windows begin, in order

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        return events.select(window=window_of(self.starts)).group_by("window").agg(
            pl.len().cast(pl.Int64).alias("calls")
        )  # fmt: skip

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the counts of the same window."""
        return partials.group_by("window").agg(pl.col("calls").sum())


@dataclass(frozen=True, slots=True)
class CallsInWindows:
    """The calls of the chosen windows, as they are."""

    starts: Floats
    chosen: tuple[int, ...]
    columns: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep those of the events that lie in the windows."""
        inside = window_of(self.starts).is_in(list(self.chosen))
        return events.filter(inside).select(self.columns)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join kept events."""
        return partials
