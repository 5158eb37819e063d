"""Totals of calls: by any key, by storage target, and of what the application names."""

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


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin that a size falls into, 0 for the smallest."""
    return pl.sum_horizontal([(size > largest).cast(pl.UInt8) for largest in LARGEST_IN_BIN])


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


_SPREAD = ("layer", "target", "operation")


@dataclass(frozen=True, slots=True, eq=False)
class TargetLoad:
    """Requests, bytes and seconds per layer, storage target and direction.

    A request is cut at the ends of stripes: each target gets the bytes that it holds, and no
    target is touched by a request that ends where its stripe begins. A request counts once on
    every target that it touches; its time is shared among them as its bytes are.
    """

    files: pl.DataFrame  # file, stripe_size, targets

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Spread some of the events over their targets."""
        striped = self.files.lazy().filter(
            (pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0)
        )
        size, count = pl.col("stripe_size"), pl.col("targets").list.len().cast(pl.Int64)
        low, high = pl.col("offset"), pl.col("offset") + pl.col("bytes")
        requests = (
            events.filter(
                pl.col("operation").is_in(["read", "write"])
                & (pl.col("bytes") > 0)
                & (pl.col("offset") >= 0)
            )
            .select(
                "layer",
                "file",
                "operation",
                "offset",
                "bytes",
                seconds=pl.col("end") - pl.col("start"),
            )
            .join(striped.select("file", "stripe_size", "targets"), on="file")
            .with_columns(first=low // size, last=(high - 1) // size, count=count)
        )
        # At most one round over the targets is unrolled; whole rounds are added by arithmetic.
        turns = pl.min_horizontal(pl.col("last") - pl.col("first") + 1, pl.col("count"))
        steps = requests.with_columns(step=pl.int_ranges(0, turns)).explode("step")
        stripe = pl.col("first") + pl.col("step")
        rounds = (pl.col("last") - stripe) // pl.col("count") + 1  # stripes of it on this target
        held = (
            rounds * size
            - pl.when(pl.col("step") == 0).then(low - pl.col("first") * size).otherwise(0)
            - pl.when((pl.col("last") - stripe) % pl.col("count") == 0)
            .then((pl.col("last") + 1) * size - high)
            .otherwise(0)
        )
        target = pl.col("targets").list.get(stripe % pl.col("count"))
        return (
            steps.select(
                "layer",
                "operation",
                target=target,
                bytes=held,
                seconds=pl.col("seconds") * held / pl.col("bytes"),
            )
            .group_by(_SPREAD)
            .agg(pl.len().cast(pl.Int64).alias("operations"), pl.col("bytes", "seconds").sum())
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add the loads of the same target."""
        return partials.group_by(_SPREAD).agg(pl.col("operations", "bytes", "seconds").sum())
