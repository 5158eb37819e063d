"""Totals of calls: by any key, by storage target, and of what the application names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ioprism.engine.base import KeptView, SummedView
from ioprism.model.trace import HEIGHT, LARGEST_IN_BIN, LAYERS, LEAST_SEEN, Trace
from ioprism.units import format_counted

_MOVES = pl.col("operation").is_in(["read", "write"])


@dataclass(frozen=True, slots=True)
class Totals(SummedView):
    """How many calls, how many bytes moved, how many seconds spent, for each key."""

    sums: ClassVar = ("operations", "bytes", "seconds")
    by: tuple[str, ...]  # columns of the event table

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events."""
        return events.group_by(self.by).agg(
            pl.len().cast(pl.Int64).alias("operations"),
            pl.col("bytes").sum(),
            (pl.col("end") - pl.col("start")).sum().alias("seconds"),
        )


@dataclass(frozen=True, slots=True)
class RequestSizes(SummedView):
    """How many reads and writes fall into each size bin, for each key."""

    sums: ClassVar = ("count",)
    by: tuple[str, ...]

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        bins = events.filter(_MOVES).group_by(*self.by, size_bin(pl.col("bytes")).alias("bin"))
        return bins.agg(pl.len().cast(pl.Int64).alias("count"))


NO_EXACT_SIZES = pl.DataFrame(schema={"layer": pl.String, "bytes": pl.Int64, "count": pl.Int64})


@dataclass(frozen=True, slots=True)
class ExactSizes(SummedView):
    """How many reads and writes of each interface have exactly this size."""

    sums: ClassVar = ("count",)

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Count some of the events."""
        sized = events.filter(_MOVES).select(pl.col("layer").cast(pl.String), "bytes").drop_nulls()
        return sized.group_by("layer", "bytes").agg(pl.len().cast(pl.Int64).alias("count"))


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin that a size falls into, 0 for the smallest."""
    return pl.sum_horizontal([(size > largest).cast(pl.UInt8) for largest in LARGEST_IN_BIN])


@dataclass(frozen=True, slots=True)
class ApplicationEvents(KeptView):
    """All events of the application's layer, with the names of their functions."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Keep those of some of the events."""
        return events.filter(pl.col("layer") == "application").select(
            "start", "end", "rank", "process", pl.col("function").cast(pl.String)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TargetLoad(SummedView):
    """Requests, bytes and seconds per layer, storage target and direction.

    A request is cut at the ends of stripes: each target gets the bytes that it holds, and no
    target is touched by a request that ends where its stripe begins. A request counts once on
    every target that it touches; its time is shared among them as its bytes are.
    """

    sums: ClassVar = Totals.sums
    files: pl.DataFrame  # file, stripe_size, targets

    def __eq__(self, other: object) -> bool:
        """Whether the same files have the same targets."""
        return isinstance(other, TargetLoad) and self.files.equals(other.files)

    def __hash__(self) -> int:
        """Of the number of files: tables have no hash."""
        return hash(self.files.height)

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Spread some of the events over their targets."""
        striped = self.files.lazy().filter(
            (pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0)
        )
        size, count = pl.col("stripe_size"), pl.col("targets").list.len().cast(pl.Int64)
        low, high = pl.col("offset"), pl.col("offset") + pl.col("bytes")
        requests = (
            events.filter(_MOVES & (pl.col("bytes") > 0) & (pl.col("offset") >= 0))
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
            .group_by("layer", "target", "operation")
            .agg(pl.len().cast(pl.Int64).alias("operations"), pl.col("bytes", "seconds").sum())
        )


KEYS = ("file", "kind")

_HEIGHTS = pl.Series([HEIGHT[name] for name in LAYERS], dtype=pl.Int8)


def height_of(layer: pl.Expr) -> pl.Expr:
    """How far an interface is above the system."""
    return pl.lit(_HEIGHTS).gather(layer.to_physical())


# Reads, writes, and all others together.
_NAME = pl.col("operation").cast(pl.String)
_KIND = pl.when(_NAME.is_in(["read", "write"])).then(_NAME).otherwise(pl.lit("metadata"))
_LOST = (pl.col("kind") == "dataset") & pl.col("parent").is_null()
_ROOT = pl.when(~_LOST).then(pl.coalesce("parent", "file"))
# Calls of a library on no known file may be those that deeper layers show on any file.
_LOWEST = (
    pl.when(pl.col("root").is_null())
    .then(pl.col("height").min().over("kind"))
    .otherwise(pl.col("height").min().over("root", "kind"))
)
_MOST = pl.col("bytes").max().over("root", "kind")


def deepest_layers(totals: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Return file, kind and layer of the calls that count.

    Args:
        totals: operations and bytes by file, layer and operation.
        trace: hears where layers cannot be reconciled; data sets count with their file.
    """
    roots = trace.files.select("file", root=_ROOT)
    shown = (
        totals.filter(pl.col("operations") > 0)
        .group_by("file", "layer", _KIND.alias("kind"))
        .agg(pl.col("bytes").sum())
        .join(roots, on="file", how="left", nulls_equal=True)
        .with_columns(height=height_of(pl.col("layer")))
    )
    known = _without_incomplete(shown, trace)
    return known.filter(pl.col("height") == _LOWEST).select(*KEYS, "layer")


def _without_incomplete(shown: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Leave out layers that show too little of what was written above them."""
    moved = shown.group_by("root", "kind", "height").agg(pl.col("bytes").sum())
    short = moved.filter(
        (pl.col("kind") == "write") & (pl.col("bytes") < LEAST_SEEN * _MOST)
    ).select("root", "kind", "height")
    if not short.height:
        return shown
    # What a layer above the others shows too little of need not be said: it does not count.
    below = short.join(
        moved.filter(pl.col("bytes") >= LEAST_SEEN * _MOST), on=("root", "kind"), suffix="_above"
    ).filter(pl.col("height") < pl.col("height_above"))
    if below.height:
        files = below["root"].n_unique()
        trace.completeness.warn(
            f"{format_counted(files, 'file')} with fewer bytes written at the lowest "
            "interface than above it: calls are missing there, and the upper interface is counted"
        )
    keys = ("root", "kind", "height")
    return shown.join(short, on=keys, how="anti", nulls_equal=True)


def at_deepest(calls: pl.DataFrame, deepest: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of these files, kinds of calls and layers."""
    return (
        calls.with_columns(kind=_KIND)
        .join(deepest, on=[*KEYS, "layer"], how="semi", nulls_equal=True)
        .drop("kind")
    )
