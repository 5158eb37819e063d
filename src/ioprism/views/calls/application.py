"""The events that an application tells of itself: epochs, batches, computing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class ApplicationEvents:
    """All events of the application's layer, with the names of their functions."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep those of some of the events."""
        return events.filter(pl.col("layer") == "application").select(
            "start", "end", "rank", "process", pl.col("function").cast(pl.String)
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join kept events."""
        return partials
