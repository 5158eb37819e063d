"""Whether the times that counters report can be true."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CLOCKS_DIFFER = 1.01  # times the run time that a rank may spend in metadata calls


def believable_metadata(
    ranks: npt.ArrayLike, seconds: npt.ArrayLike, runtime: float | None
) -> bool:
    """Return whether no rank spends more time in metadata calls than the run lasts.

    Some Darshan versions count from the first open to the last. Records of all ranks (-1) do not
    count.
    """
    rank, spent = np.asarray(ranks, np.int64), np.asarray(seconds, np.float64)
    own = rank >= 0
    if not runtime or not own.any():
        return True
    return float(np.bincount(rank[own], spent[own]).max()) <= runtime * CLOCKS_DIFFER
