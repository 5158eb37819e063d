"""How many bytes go to each storage target, exactly, by stripe arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_SPREAD = ("layer", "target", "operation")


@dataclass(frozen=True, slots=True, eq=False)
class TargetLoad:
    """Requests, bytes and seconds per layer, storage target and direction.

    A request is cut at the ends of stripes: each target gets the bytes that lie on it, and no
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
