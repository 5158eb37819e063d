"""Operations, bytes and seconds by any key."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ioprism.model.sizes import LARGEST_IN_BIN

SUMS = ("operations", "bytes", "seconds")


@dataclass(frozen=True, slots=True)
class Totals:
    """How many calls, how many bytes moved, how many seconds spent, for each key."""

    by: tuple[str, ...]  # columns of the event table

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events."""
        return events.group_by(self.by).agg(
            pl.len().cast(pl.Int64).alias("operations"),
            pl.col("bytes").sum(),
            (pl.col("end") - pl.col("start")).sum().alias("seconds"),
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add sums of the same key."""
        return partials.group_by(self.by).agg(pl.col(SUMS).sum())


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """How many reads and writes fall into each size bin, for each key."""

    by: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        moves = events.filter(pl.col("operation").is_in(["read", "write"]))
        return moves.group_by(*self.by, size_bin(pl.col("bytes")).alias("bin")).agg(
            pl.len().cast(pl.Int64).alias("count")
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add counts of the same key and bin."""
        return partials.group_by(*self.by, "bin").agg(pl.col("count").sum())


NO_EXACT_SIZES = pl.DataFrame(schema={"layer": pl.String, "bytes": pl.Int64, "count": pl.Int64})


@dataclass(frozen=True, slots=True)
class ExactSizes:
    """How many reads and writes of each interface have exactly this size."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        moves = events.filter(pl.col("operation").is_in(["read", "write"]))
        sized = moves.select(pl.col("layer").cast(pl.String), "bytes").drop_nulls()
        return sized.group_by("layer", "bytes").agg(pl.len().cast(pl.Int64).alias("count"))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add counts of the same size."""
        return partials.group_by("layer", "bytes").agg(pl.col("count").sum())


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin that a size falls into, 0 for the smallest."""
    return pl.sum_horizontal([(size > largest).cast(pl.UInt8) for largest in LARGEST_IN_BIN])
