"""At which layer each file's calls are counted, so that no byte is counted twice.

The deepest layer is chosen for each file and each kind of call by itself: a tracer may show
the reads of a file in POSIX, but its writes in MPI-IO alone (see `model/layers.py`).
"""

from __future__ import annotations

import polars as pl

from ioprism.model.layers import HEIGHT, LAYERS, LEAST_SEEN
from ioprism.model.trace import Trace
from ioprism.units import format_counted

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
