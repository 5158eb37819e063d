"""The calls concerned beside their peers, as numbers."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.analyses.diagnosis.situation import Situation


def contrast_of(at: Situation, slow: Flags, peers: Flags | None, what: str) -> Contrast:
    """Compare two groups of calls."""
    group = None if peers is None or not peers.any() else call_group(at, peers)
    return Contrast(what, call_group(at, slow), group)


def call_group(at: Situation, some: Flags) -> CallGroup:
    """Count calls and what they take."""
    seconds = at.calls.duration[some]
    moved = int(at.calls.bytes[some].sum())
    spent = float(seconds.sum())
    return CallGroup(
        count=int(some.sum()),
        bytes=moved or None,
        median_seconds=float(np.median(seconds)) if len(seconds) else None,
        rate=moved / spent if moved and spent > 0 else None,
    )
