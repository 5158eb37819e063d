"""What each rank takes in each phase, compared with others that do the same work.

A session is one rank's I/O in one phase. Where writes are buffered, most return immediately and a
few wait for all that came before, or the sync and the close do: the sum of a session shows what
its parts do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rows import Flags, Floats, Ints, departures, medians_by

SIZE_STEPS = 4  # classes of work for each factor of two in bytes
MAIN_SHARE = 0.95  # of the stall time
MORE_CALLS = 2.0  # times as many calls for the same bytes are other work: a convention


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Groups of calls with one level each: how long they take against the same work elsewhere."""

    phase: Ints
    rank: Ints
    group: Ints  # set of targets; -1 unknown
    level: Floats  # log of seconds over those of peers
    work: Ints  # class of work
    of_call: Ints  # cell of each row; -1 for others


def session_seconds(observed: Observed) -> Floats:
    """Seconds of each phase and rank, without waiting for other ranks on shared files.

    Writers that queue on one file are not slow: each takes what its own request takes.
    """
    rows = observed.rows
    seconds = observed.own
    queued = observed.shared_file & rows.moves_data & (observed.pieces.group < 0)
    if observed.per_call and queued.any():
        served = departures(rows, np.where(queued, rows.file, -2 - rows.rank))
        seconds = np.where(queued, np.minimum(seconds, served), seconds)
    return observed.by_rank(seconds)


def main_phases(observed: Observed) -> Flags:
    """The phases that hold nearly all stall time: program start and small reads are left out."""
    order = np.argsort(-observed.stall)
    before = np.cumsum(observed.stall[order]) - observed.stall[order]
    main = np.zeros(len(order), np.bool_)
    main[order] = before < MAIN_SHARE * max(float(observed.stall.sum()), 1e-12)
    return main


def work_classes(observed: Observed, phase: Ints, rank: Ints) -> Ints:
    """A number for the amount of work of each session: its bytes and calls."""
    moved = observed.by_rank(observed.rows.bytes.astype(np.float64))[phase, rank]
    calls = observed.by_rank(observed.rows.count)[phase, rank]
    size = np.where(moved > 0, (SIZE_STEPS * np.log2(np.maximum(moved, 1))).round(), -1)
    return (size.astype(np.int64) + 1) * 64 + _call_classes(calls)


def _call_classes(calls: Floats) -> Ints:
    """Number sessions by how many calls they make; a new class begins at each wide gap.

    Fixed limits would part ranks that do the same but for a call or two.
    """
    order = np.argsort(calls, kind="stable")
    ordered = np.maximum(calls[order], 1.0)
    classes = np.zeros(len(order), np.int64)
    classes[order[1:]] = np.cumsum(ordered[1:] >= MORE_CALLS * ordered[:-1])
    return classes


def session_cells(observed: Observed, seconds: Floats) -> Cells:
    """What each rank takes in each phase against others of the phase with the same work."""
    phase, rank = np.nonzero((seconds > 0) & main_phases(observed)[:, None])
    work = phase * 65536 + work_classes(observed, phase, rank)
    log = np.log(seconds[phase, rank])
    names, middle = medians_by(work, log)
    level = log - middle[np.searchsorted(names, work)]
    none = np.full(len(observed.rows), -1, np.int64)
    return Cells(phase, rank, _main_group(observed)[phase, rank], level, work, none)


def _main_group(observed: Observed) -> Ints:
    """The set of targets that holds most bytes of each rank in each phase; -1 unknown."""
    pieces, ranks = observed.pieces, observed.io_ranks
    group = np.full((len(observed.phases), ranks), -1, np.int64)
    known = np.flatnonzero((pieces.group >= 0) & (observed.rows.rank >= 0))
    if not len(known):
        return group
    groups = int(pieces.group.max()) + 1
    key = observed.phase[known] * ranks + observed.rows.rank[known]
    names, inverse = np.unique(key * groups + pieces.group[known], return_inverse=True)
    moved = np.bincount(inverse, observed.rows.bytes[known].astype(np.float64))
    # Later assignments win: the largest sum comes last.
    order = np.argsort(moved, kind="stable")
    group.reshape(-1)[names[order] // groups] = names[order] % groups
    return group


def call_cells(observed: Observed, seconds: Floats) -> Cells | None:
    """What one rank's calls to one set of targets take in one phase, against their class."""
    rows, ranks = observed.rows, observed.io_ranks
    classes = observed.service.classes
    data = np.flatnonzero(
        rows.moves_data & (rows.bytes > 0) & (rows.rank >= 0) & _has_peers(observed, classes)
    )
    if len(data) < 2:
        return None
    log = np.log(np.maximum(seconds[data], 1e-9))
    names, middle = medians_by(classes[data], log)
    relative = log - middle[np.searchsorted(names, classes[data])]
    groups = int(observed.pieces.group.max(initial=-1)) + 2
    key = (observed.phase[data] * ranks + rows.rank[data]) * groups
    key += observed.pieces.group[data] + 1
    cells, level = medians_by(key, relative)
    of_call = np.full(len(rows), -1, np.int64)
    of_call[data] = np.searchsorted(cells, key)
    return Cells(
        phase=cells // groups // ranks,
        rank=cells // groups % ranks,
        group=cells % groups - 1,
        level=level,
        work=np.zeros(len(cells), np.int64),
        of_call=of_call,
    )


def _has_peers(observed: Observed, classes: Ints) -> Flags:
    """Calls of a kind and size that several ranks make: others cannot be compared."""
    names, place = np.unique(classes, return_inverse=True)
    pairs = np.unique(place * observed.io_ranks + np.maximum(observed.rows.rank, 0))
    count = np.bincount(pairs // observed.io_ranks, minlength=len(names))
    return np.asarray(count[place] > 1)
