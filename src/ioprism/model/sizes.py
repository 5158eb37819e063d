"""Classes of request sizes, which are Darshan's, and the largest number that can be true."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 2**10, 2**20, 2**30
MOST_RANKS = 2**24  # more than any machine has cores; beyond it the number is damage
LARGEST_PLAUSIBLE = 2**60  # an exbibyte, and more calls than any job makes: beyond it is damage


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Sizes from `low` to `high`, both included; the last bin has no upper end."""

    low: int
    high: int | None
    counter: str  # how the names of Darshan's counters end


_NAMES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M",
          "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")  # fmt: skip
LARGEST_IN_BIN = (100, KIB, 10 * KIB, 100 * KIB, MIB, 4 * MIB, 10 * MIB, 100 * MIB, GIB)
SIZE_BINS = tuple(
    SizeBin(low, high, name)
    for low, high, name in zip(
        (0, *(size + 1 for size in LARGEST_IN_BIN)), (*LARGEST_IN_BIN, None), _NAMES, strict=True
    )
)
