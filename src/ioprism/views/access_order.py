"""Does a process walk through a file step by step, or jump about in it?

A request is sequential if it begins where the process's last request on the file ended, or as
far from there as the last one did (a stride). Everything else is random. The first two
requests of a stream show nothing and count as sequential, in every piece of the events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.views.call_class import WRITE

Flags = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]


def random_requests(events: pl.DataFrame, streams: npt.NDArray[np.uint64]) -> pl.Series:
    """Mark the reads and writes that jump about in their file.

    Args:
        events: calls with start, operation, offset and bytes.
        streams: a number for each call that calls of one process, file and direction share.
    """
    flags = np.zeros(events.height, np.uint8)
    rows = _data_requests(events)
    if len(rows) > 2:
        stream, rows = _stream_after_stream(streams[rows], rows)
        offset, size = (events[name].fill_null(0).to_numpy()[rows] for name in ("offset", "bytes"))
        flags[rows] = _jumps(stream, offset, size)
    return pl.Series("random", flags)


def _data_requests(events: pl.DataFrame) -> Rows:
    """Return the rows of reads and writes whose place in the file is known, by start."""
    moves = pl.col("operation").to_physical() <= WRITE
    known = moves & pl.col("offset").is_not_null() & pl.col("bytes").is_not_null()
    rows = np.flatnonzero(events.select(known).to_series().to_numpy())
    start = events["start"].to_numpy()
    if bool(np.all(start[1:] >= start[:-1])):
        return rows
    # Calls that begin together are put in the order of their places, whatever order they came in.
    keys = (events[name].to_numpy()[rows] for name in ("offset", "end", "start"))
    return rows[np.lexsort(tuple(keys))]


def _stream_after_stream(streams: Numbers, rows: Rows) -> tuple[Numbers, Rows]:
    """Bring the rows of each stream together and keep their order."""
    bits = len(rows).bit_length()
    if int(streams.max()).bit_length() + bits > 64:
        order = np.argsort(streams, kind="stable")
        return streams[order], rows[order]
    # Sorting plain numbers is several times faster than sorting positions.
    packed = (streams << np.uint64(bits)) | np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64(2**bits - 1)).astype(np.int64)
    return packed >> np.uint64(bits), rows[order]


def _jumps(stream: Numbers, offset: Rows, size: Rows) -> Flags:
    gap = offset[1:] - (offset + size)[:-1]
    same = stream[1:] == stream[:-1]
    flags = np.zeros(len(stream), np.uint8)
    flags[2:] = same[1:] & same[:-1] & (gap[1:] != 0) & (gap[1:] != gap[:-1])
    return flags
