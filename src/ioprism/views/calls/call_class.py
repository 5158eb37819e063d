"""What kind of call an event is, as one small number: layer, operation, size bin, pattern."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.layers import KIB, LAYERS, MIB
from ioprism.model.schema import OPERATIONS

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


Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """How requests follow each other; flags of all calls, in their own order."""

    random: Flags
    undecided: Flags  # what came before the piece has to be known
    last: Flags  # of its stream
    rows: Whole  # of the requests, stream after stream
    gap: Whole  # of the requests: bytes from the end of the one before
    known: Flags  # whether the gap is

    def gaps(self, wanted: Flags) -> pl.Series:
        """Return the gaps of some requests, in the calls' order; null where unknown."""
        chosen = wanted[self.rows] & self.known
        known, gap = np.zeros(len(wanted), bool), np.zeros(len(wanted), np.int64)
        rows = self.rows[chosen]
        known[rows], gap[rows] = True, self.gap[chosen]
        return pl.Series(gap[wanted]).set(pl.Series(~known[wanted], dtype=pl.Boolean), None)


def walk(calls: pl.DataFrame, requests: Whole) -> Walk:
    """Follow every stream through its requests.

    Args:
        calls: calls with process, file, class, start, end, bytes and reach (the byte behind
            the last one touched); `gap` where it is known already.
        requests: the rows of reads and writes whose place in the file is known.
    """
    stream, rows = _stream_after_stream(calls, requests)
    follows = np.zeros(len(rows), bool)
    follows[1:] = stream[1:] == stream[:-1]
    gap, known = _gaps(calls, rows, follows)
    same_gap, known_before = np.zeros_like(follows), np.zeros_like(follows)
    same_gap[1:] = gap[1:] == gap[:-1]
    known_before[1:] = follows[1:] & known[:-1]
    jumps = known & (gap != 0)
    random, undecided, last = np.zeros((3, calls.height), bool)
    random[rows] = jumps & known_before & ~same_gap
    undecided[rows] = ~known | (jumps & ~known_before)
    last[rows] = np.append(~follows[1:], True)[: len(rows)]
    return Walk(random, undecided, last, rows, gap, known)


def _gaps(calls: pl.DataFrame, rows: Whole, follows: Flags) -> tuple[Whole, Flags]:
    """Return the bytes between each request and the one before, and whether they are known."""
    reach, size = (calls[name].fill_null(0).to_numpy()[rows] for name in ("reach", "bytes"))
    gap = np.zeros(len(rows), np.int64)
    gap[1:] = reach[1:] - size[1:] - reach[:-1]
    if "gap" not in calls.columns:
        return gap, follows
    known = calls["gap"].is_not_null().to_numpy()[rows]
    earlier = calls["gap"].fill_null(0).to_numpy()[rows]
    return np.where(known, earlier, gap), follows | known


def _stream_after_stream(calls: pl.DataFrame, requests: Whole) -> tuple[Numbers, Whole]:
    """Bring the rows of each stream together, by start; calls that begin together stay as are."""
    streams = _streams(calls)[requests]
    stream, rows = _group_streams(streams, requests)
    start = calls["start"].to_numpy()
    if _ascending(start) or _ascending(start[rows], within=stream):
        return stream, rows
    # A trace that is out of order says nothing about calls that begin together.
    keys = (calls[name].to_numpy()[requests] for name in ("reach", "end", "start"))
    order = np.lexsort((*keys, streams))
    return streams[order], requests[order]


def _ascending(values: npt.NDArray[np.float64], *, within: Numbers | None = None) -> bool:
    rises = values[1:] >= values[:-1]
    return bool(np.all(rises if within is None else rises | (within[1:] != within[:-1])))


def _group_streams(streams: Numbers, rows: Whole) -> tuple[Numbers, Whole]:
    bits = int(rows[-1]).bit_length() if len(rows) else 0
    if len(rows) and int(streams.max()).bit_length() + bits > 64:
        order = np.argsort(streams, kind="stable")
        return streams[order], rows[order]
    # Sorting plain numbers is several times faster than sorting positions.
    packed = (streams << np.uint64(bits)) | rows.astype(np.uint64)
    packed.sort()
    return packed >> np.uint64(bits), (packed & np.uint64(2**bits - 1)).astype(np.int64)


def _streams(calls: pl.DataFrame) -> Numbers:
    """Number the streams: one per process, file, layer and direction."""
    files = calls["file"].max()
    width = (files if isinstance(files, int) else 0) + 2
    file = pl.col("file").cast(pl.UInt64).fill_null(width - 1)
    kind = pl.col("class").cast(pl.UInt64) // SLOTS
    direction = kind // len(OPERATIONS) * 2 + kind % len(OPERATIONS)
    used = pl.col("process").cast(pl.UInt64).fill_null(2**32) * width + file
    return calls.select(used * (2 * len(LAYERS)) + direction).to_series().to_numpy()
