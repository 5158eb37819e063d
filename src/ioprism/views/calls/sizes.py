"""The request-size bins that every histogram uses; they are Darshan's."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

KIB, MIB, GIB = 2**10, 2**20, 2**30
_LARGEST = (100, KIB, 10 * KIB, 100 * KIB, MIB, 4 * MIB, 10 * MIB, 100 * MIB, GIB)


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Sizes from `low` to `high`, both included; the last bin has no upper end."""

    low: int
    high: int | None


SIZE_BINS = tuple(
    SizeBin(low, high)
    for low, high in zip((0, *(n + 1 for n in _LARGEST)), (*_LARGEST, None), strict=True)
)


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin that a size falls into, 0 for the smallest."""
    return pl.sum_horizontal([(size > largest).cast(pl.UInt8) for largest in _LARGEST])
