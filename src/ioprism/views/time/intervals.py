"""When a job does I/O: the union of all ranks' calls per layer, and who is busy when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from ioprism.model.intervals import Floats, unite
from ioprism.model.schema import Layer

_INTERVALS = pl.Schema({"layer": Layer, "start": pl.Float64(), "end": pl.Float64()})


@dataclass(frozen=True, slots=True)
class BusyIntervals:
    """Disjoint intervals in which at least one rank is in a call, per layer."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Unite the calls of some of the events."""
        chosen = events.select("layer", "start", "end")
        return chosen.map_batches(united_layers, schema=_INTERVALS, projection_pushdown=False)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Unite united intervals."""
        return self.partial(partials)


def united_layers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the disjoint intervals of each layer that rows of layer, start and end cover."""
    tables = [_INTERVALS.to_frame()]
    layers = frame["layer"].unique().sort().to_list()
    for layer in layers:
        rows = frame if len(layers) == 1 else frame.filter(layer=layer)
        starts, ends = unite(rows["start"].to_numpy(), rows["end"].to_numpy())
        tables.append(
            pl.DataFrame({"start": starts, "end": ends}).select(
                pl.lit(layer, dtype=Layer).alias("layer"), "start", "end"
            )
        )
    return pl.concat(tables)


@dataclass(frozen=True, slots=True)
class PhaseShares:
    """What each rank did in each phase of each layer; a call belongs where it starts."""

    borders: Mapping[str, tuple[Floats, Floats]]  # layer -> when its phases start, and end

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events by phase and rank."""
        return pl.concat(self._by_layer(events)) if self.borders else self._layer(events, "other")

    def _by_layer(self, events: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
        for layer in self.borders:
            yield self._layer(events, layer)

    def _layer(self, events: pl.LazyFrame, layer: str) -> pl.LazyFrame:
        starts, ends = self.borders.get(layer, (np.empty(0), np.empty(0)))
        phase = _place(starts, side="right") - 1
        # What starts behind the end of its phase goes on between phases and belongs to none.
        inside = (phase >= 0) & (_place(ends, side="left") <= phase)
        seconds = pl.col("end") - pl.col("start")
        chosen = events.filter((pl.col("layer") == layer) & inside).select(
            "layer", "rank", "operation", "bytes", phase=phase, seconds=seconds
        )
        moved = {
            d: pl.col("bytes").filter(pl.col("operation") == d).sum().alias(d)
            for d in ("read", "write")
        }
        return chosen.group_by("layer", "phase", "rank").agg(
            pl.len().cast(pl.Int64).alias("operations"), pl.col("seconds").sum(), *moved.values()
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the sums of the same phase and rank."""
        return partials.group_by("layer", "phase", "rank").agg(
            pl.col("operations", "seconds", "read", "write").sum()
        )


def _place(borders: Floats, *, side: Literal["left", "right"]) -> pl.Expr:
    """How many borders lie before the start of each call."""
    return (
        pl.lit(pl.Series(borders, dtype=pl.Float64))
        .search_sorted(pl.col("start"), side=side)
        .cast(pl.Int64)
    )
