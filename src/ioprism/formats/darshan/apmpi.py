"""Darshan's APMPI module: how often each rank called MPI, and how long it was in it.

The module holds one header and a record for each rank. A record is {id, rank, counters,
times, synchronisation times, totals, name of the node}, in words of 8 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.formats.darshan.log import Log, Region, whole
from ioprism.model.trace import Warn
from ioprism.units import format_counted

VERSION = 1
HEADER_BYTES = 48  # id, rank, magic number, whether synchronisation was timed, two variances
NODE_BYTES = 128
MODULE_BYTES = 4 * 2**30


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Calls that send or move data have a histogram of sizes; the others are only counted.
_SIZES = ("0_256", "256_1K", "1K_8K", "8K_256K", "256K_1M", "1M_PLUS")
_MOVE_DATA = ("CALL_COUNT", "TOTAL_BYTES", *(f"MSG_SIZE_AGG_{size}" for size in _SIZES))
_POINT_TO_POINT = _words(
    "SEND SSEND RSEND BSEND RECV SENDRECV SENDRECV_REPLACE ISEND ISSEND IRSEND IBSEND IRECV"
)
_COMPLETE = _words(
    "PROBE IPROBE TEST TESTANY TESTALL TESTSOME WAIT WAITANY WAITALL WAITSOME BARRIER IBARRIER"
)
_COLLECTIVE = _words(
    "BCAST GATHER GATHERV SCATTER SCATTERV SCAN EXSCAN ALLGATHER ALLGATHERV REDUCE ALLREDUCE "
    "REDUCE_SCATTER ALLTOALL ALLTOALLV ALLTOALLW"
)
_ONE_SIDED = _words("PUT GET ACCUMULATE GET_ACCUMULATE")
_WINDOWS = _words(
    "FETCH_AND_OP COMPARE_AND_SWAP WIN_FENCE WIN_START WIN_COMPLETE WIN_POST WIN_WAIT WIN_TEST "
    "WIN_LOCK WIN_UNLOCK WIN_UNLOCK_ALL WIN_FLUSH WIN_FLUSH_ALL WIN_FLUSH_LOCAL "
    "WIN_FLUSH_LOCAL_ALL WIN_SYNC"
)
_WITHOUT_DATA = {*_COMPLETE, *_WINDOWS}

CALLS = (
    *_POINT_TO_POINT,
    *_COMPLETE,
    *_COLLECTIVE,
    *(f"I{name}" for name in _COLLECTIVE),
    *_ONE_SIDED,
    *_WINDOWS,
)
COUNTERS = tuple(
    f"MPI_{call}_{what}"
    for call in CALLS
    for what in (("CALL_COUNT",) if call in _WITHOUT_DATA else _MOVE_DATA)
)
TIMES = (
    *(f"MPI_{call}_{what}_TIME" for call in CALLS for what in ("TOTAL", "MIN", "MAX")),
    *(f"MPI_{call}_TOTAL_SYNC_TIME" for call in ("BARRIER", *_COLLECTIVE)),
    "MPI_TOTAL_COMM_TIME",
    "MPI_TOTAL_COMM_SYNC_TIME",
)


def decode_apmpi(log: Log, region: Region, *, ranks: int, warn: Warn) -> npt.NDArray[Any]:
    """Return one record per rank with the fields rank, counters, times and host."""
    order = log.byte_order
    layout = np.dtype(
        [("id", f"{order}u8"), ("rank", f"{order}i8"), ("counters", f"{order}i8", len(COUNTERS)),
         ("times", f"{order}f8", len(TIMES)), ("host", f"S{NODE_BYTES}")]
    )  # fmt: skip
    if region.version != VERSION:
        warn(f"{log.path.name}: APMPI has the unknown version {region.version} and is not read")
        return np.empty(0, layout)
    data = whole(log, region, warn, limit=MODULE_BYTES)[HEADER_BYTES:]
    if len(data) % layout.itemsize:
        warn(f"{log.path.name}: the last APMPI record is cut off")
    records = np.frombuffer(data, layout, len(data) // layout.itemsize)
    possible = records[(records["rank"] >= 0) & (records["rank"] < ranks)]
    if len(possible) < len(records):
        damaged = format_counted(len(records) - len(possible), "damaged APMPI record")
        warn(f"{log.path.name}: {damaged} left out")
    return possible
