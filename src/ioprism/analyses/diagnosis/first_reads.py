"""Data that is read for the first time comes from storage; read again, it may come from memory."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import READ
from ioprism.analyses.diagnosis.situation import Situation

ENOUGH = 20  # reads of each kind
FASTER = 3.0  # times as many bytes a second, for memory to be the reason


def first_read_seconds(at: Situation) -> float:
    """Return the held-up seconds by which first reads are slower than reads of the same again.

    The rate that a trace reaches at best is then that of the page cache, which no first read can
    have: without this, the difference would look like lost time.
    """
    calls = at.calls
    reads = np.flatnonzero((calls.kind == READ) & (calls.offset >= 0) & (calls.bytes > 0))
    rows = reads[np.lexsort((calls.start[reads], calls.offset[reads], calls.file[reads]))]
    file, offset = calls.file[rows], calls.offset[rows]
    again = np.zeros(len(rows), np.bool_)
    again[1:] = (file[1:] == file[:-1]) & (offset[1:] == offset[:-1])
    if min(again.sum(), (~again).sum()) < ENOUGH:
        return 0.0
    seconds, moved = at.own[rows], calls.bytes[rows].astype(np.float64)
    as_fast = moved[~again].sum() * seconds[again].sum() / moved[again].sum()
    first = float(seconds[~again].sum())
    if first < FASTER * as_fast:
        return 0.0
    return float(at.held.sum() * (first - as_fast) / max(float(at.own.sum()), 1e-12))
