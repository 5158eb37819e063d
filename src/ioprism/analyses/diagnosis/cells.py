"""Calls summed up by phase, rank and set of targets: what parts of a system consist of."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.situation import Situation, medians_by
from ioprism.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What one rank's calls to one set of targets took in one phase, against their class."""

    phase: Ints
    rank: Ints
    group: Ints  # set of targets; -1 unknown
    level: Floats  # median of log(seconds / median of the class)
    of_call: Ints  # cell of each data call; -1 for others


def make_cells(at: Situation, seconds: Floats) -> Cells | None:
    """Sum up data calls that take these seconds."""
    data = np.flatnonzero(at.calls.moves_data & (at.calls.bytes > 0) & _has_peers(at))
    if len(data) < 2:
        return None
    classes = at.queues.classes[data]
    log = np.log(np.maximum(seconds[data], 1e-9))
    names, middle = medians_by(classes, log)
    relative = log - middle[np.searchsorted(names, classes)]
    groups = int(at.pieces.group.max(initial=-1)) + 2
    key = (at.seen.phase[data] * at.ranks + at.calls.rank[data]) * groups
    key += at.pieces.group[data] + 1
    cells, level = medians_by(key, relative)
    of_call = np.full(len(at.calls), -1, np.int64)
    of_call[data] = np.searchsorted(cells, key)
    return Cells(
        phase=cells // groups // at.ranks,
        rank=cells // groups % at.ranks,
        group=cells % groups - 1,
        level=level,
        of_call=of_call,
    )


def _has_peers(at: Situation) -> Flags:
    """Calls of a kind and size that several ranks make: others cannot be compared."""
    names, place = np.unique(at.queues.classes, return_inverse=True)
    pairs = np.unique(place * at.ranks + at.calls.rank)
    return np.bincount(pairs // at.ranks, minlength=len(names))[place] > 1


def explained(cells: Cells, member: Flags) -> float:
    """How much of the cells' differences goes away when a part has a level of its own."""
    level = cells.level
    total = np.abs(level - np.median(level)).sum()
    rest = np.abs(level[member] - np.median(level[member])).sum()
    rest += np.abs(level[~member] - np.median(level[~member])).sum()
    return max(0.0, float(total - rest)) / max(float(total), 1e-12)  # below 0 by rounding


def mend(at: Situation, cells: Cells, member: Flags, seconds: Floats) -> Floats:
    """Let the calls of a part take what their peers take, class by class."""
    inside = (cells.of_call >= 0) & member[np.maximum(cells.of_call, 0)]
    peers = (cells.of_call >= 0) & ~inside
    mended = seconds.copy()
    classes = at.queues.classes
    overall = np.median(cells.level[member]) - np.median(cells.level[~member])
    for name in np.unique(classes[inside]):
        own, others = inside & (classes == name), peers & (classes == name)
        ratio = np.exp(-overall)
        if others.sum() >= 5:
            usual, spent = np.median(seconds[others]), np.median(seconds[own])
            ratio = usual / spent if spent > 0 else 1.0
        mended[own] = seconds[own] * min(1.0, ratio)
    return mended


def phase_seconds(at: Situation, seconds: Floats) -> Floats:
    """How long each phase lasts when calls take these seconds: as long as its slowest rank."""
    share = np.divide(
        seconds, at.calls.duration, out=np.zeros(len(at.calls)), where=at.calls.duration > 0
    )
    return np.minimum(at.held, at.busiest_rank(at.own * share) + at.waiting)
