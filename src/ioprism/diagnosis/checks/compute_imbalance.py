"""Ranks that compute longer than the others: all wait for them, but not for I/O.

Code: compute-imbalance. Reported so that readers do not search for the reason in I/O.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Proposal, contrast


def check(observed: Observed) -> Iterator[Proposal]:
    """Name the ranks that keep others waiting without any I/O."""
    late = observed.late
    if late is None:
        return
    theirs = np.isin(observed.rows.rank, late.ranks)
    yield Proposal(
        "compute-imbalance",
        {"ranks": observed.numbers(late.ranks)},
        theirs,
        None,
        late.p_value,
        contrast(observed, theirs, ~theirs, "compute-imbalance"),
        facts={"waited": late.waited, "meetings": late.meetings},
    )
