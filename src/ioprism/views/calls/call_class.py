"""What kind of call an event is, as one small number: layer, operation, size bin, pattern."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.layers import LAYERS
from ioprism.model.schema import OPERATIONS
from ioprism.model.sizes import KIB, MIB

# Where the bins of request sizes begin: < 4 KiB, 4–16, 16–64, 64–256 KiB, … , > 64 MiB.
SIZE_EDGES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
SIZE_NAMES = (
    "below 4 KiB", "4 to 16 KiB", "16 to 64 KiB", "64 to 256 KiB", "256 KiB to 1 MiB",
    "1 to 4 MiB", "4 to 16 MiB", "16 to 64 MiB", "64 MiB and more", "no data",
)  # fmt: skip
NO_SIZE = len(SIZE_NAMES) - 1
SMALL_BINS = SIZE_EDGES.index(MIB) + 1  # bins of requests below 1 MiB
SLOTS = len(SIZE_NAMES) * 2
CLASSES = len(LAYERS) * len(OPERATIONS) * SLOTS
READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")

Codes = npt.NDArray[np.int64]


def call_class(random: pl.Expr) -> pl.Expr:
    """The class of a call from its layer, operation and bytes, and whether it is random."""
    size = pl.col("bytes")
    operation = pl.col("operation").to_physical().cast(pl.UInt16)
    layer = pl.col("layer").to_physical().cast(pl.UInt16)
    moves = (operation <= WRITE) & size.is_not_null()
    # Read and write are the first two operations, so one comparison finds both.
    bin_of_size = pl.when(moves).then(size_bin(size)).otherwise(NO_SIZE)
    slot = bin_of_size * 2 + random.cast(pl.UInt16)
    return ((layer * len(OPERATIONS) + operation) * SLOTS + slot).cast(pl.UInt16)


def size_bin(size: pl.Expr) -> pl.Expr:
    """The number of the bin of a size in `SIZE_NAMES`."""
    # All edges are powers of four from 4 KiB on, so the length in bits tells the bin.
    bits = 64 - size.clip(lower_bound=0).bitwise_leading_zeros().cast(pl.Int16)
    return ((bits - 11) // 2).clip(0, len(SIZE_EDGES)).cast(pl.UInt16)


def layer_of(classes: Codes) -> Codes:
    """The number of each class's layer in `LAYERS`."""
    return classes // (SLOTS * len(OPERATIONS))


def operation_of(classes: Codes) -> Codes:
    """The number of each class's operation in `OPERATIONS`."""
    return classes // SLOTS % len(OPERATIONS)


def size_bin_of(classes: Codes) -> Codes:
    """The number of each class's size bin in `SIZE_NAMES`."""
    return classes % SLOTS // 2


def random_of(classes: Codes) -> npt.NDArray[np.bool_]:
    """Whether the calls of each class are random."""
    is_random: npt.NDArray[np.bool_] = classes % 2 == 1
    return is_random
