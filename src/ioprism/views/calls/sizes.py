"""The request-size bin of each call."""

from __future__ import annotations

import polars as pl

from ioprism.model.sizes import LARGEST_IN_BIN


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin that a size falls into, 0 for the smallest."""
    return pl.sum_horizontal([(size > largest).cast(pl.UInt8) for largest in LARGEST_IN_BIN])
