"""Files that take far longer than others with the same work, on ranks that change.

The cause is a slow-target that the log does not name. Where files are placed by chance, a slow
storage target meets other ranks in each phase: no rank is slow, but in each phase the sessions
of a few ranks stand apart from those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from ioprism.diagnosis.checks.sessions import (
    MAX_PARTS,
    Cells,
    cell_rows,
    session_cells,
    session_seconds,
)
from ioprism.diagnosis.limits import DOMINANT, MAJORITY
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast
from ioprism.diagnosis.rows import SYNC, Flags, Floats, unique
from ioprism.model.arrays import median
from ioprism.model.verdict import Decision

DECIDE = Decision(
    "compare the files' storage targets",
    "ioprism diagnose LOG --layout layout.csv   # columns path,targets",
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Find sessions that stand apart in most phases, on ranks that change."""
    if len(observed.pieces.targets) or not (observed.rows.rank >= 0).any():
        return
    seconds = session_seconds(observed)
    cells = session_cells(observed, seconds)
    slow, compared = _slow_sessions(observed, cells, seconds)
    split = unique(cells.phase[slow])
    if not len(split) or _one_rank(cells, slow) or _on_shared_files(observed, cells, slow):
        return
    after, crowded = _as_peers(cells, slow, seconds)
    ratio, worst = (
        observed.of_sessions(s / np.maximum(seconds, 1e-12), 1.0) for s in (after, crowded)
    )
    changed = ratio < 1
    if not _durable(observed, changed):
        worst = np.ones(len(worst))
    peers = (observed.rows.rank >= 0) & ~changed & np.isin(observed.phase, split)
    yield Proposal(
        "slow-target",
        {**observed.file_culprit(changed), "files": _files(observed, changed)},
        changed,
        Change(
            Scenario(observed.own * ratio),
            Scenario(observed.own * worst),
            Scenario(observed.own * ratio),
        ),
        _chance(len(split), compared, observed.limits.split_by_chance),
        contrast(observed, changed, peers, "slow-target"),
        DECIDE,
        {
            "slow_seconds": median(seconds[cells.phase, cells.rank][slow]),
            "peer_seconds": median(after[cells.phase, cells.rank][slow]),
        },
    )


def _slow_sessions(observed: Observed, cells: Cells, seconds: Floats) -> tuple[Flags, int]:
    """Sessions above the largest step among the slower half of the same work; phases compared."""
    slow = np.zeros(len(cells.rank), np.bool_)
    spent = seconds[cells.phase, cells.rank]
    compared = set()
    for work in unique(cells.work):
        group = np.flatnonzero(cells.work == work)
        if len(group) <= observed.limits.min_peers:
            continue
        compared.add(int(cells.phase[group[0]]))
        order = group[np.argsort(spent[group])]
        half = (len(order) - 1) // 2
        steps = spent[order[half + 1 :]] / np.maximum(spent[order[half:-1]], 1e-9)
        if steps.max() >= observed.limits.two_groups:
            slow[order[half + 1 + int(steps.argmax()) :]] = True
    return slow, len(compared)


def _one_rank(cells: Cells, slow: Flags) -> bool:
    """Whether one rank is slow in nearly all of these phases: the rank is the part to name."""
    phases = len(unique(cells.phase[slow]))
    return bool(np.bincount(cells.rank[slow]).max() >= max(2, DOMINANT * phases))


def _on_shared_files(observed: Observed, cells: Cells, slow: Flags) -> bool:
    rows = cell_rows(observed, cells, slow)
    moved = observed.rows.bytes
    return float(moved[rows & observed.shared_file].sum()) > MAJORITY * float(moved[rows].sum())


def _as_peers(cells: Cells, slow: Flags, seconds: Floats) -> tuple[Floats, Floats]:
    """Slow sessions last as long as the longest of their peers, at worst with their work added."""
    after, crowded = seconds.copy(), seconds.copy()
    for work in unique(cells.work[slow]):
        group = cells.work == work
        peers = group & ~slow
        usual = float(seconds[cells.phase[peers], cells.rank[peers]].max())
        place = cells.phase[group & slow], cells.rank[group & slow]
        after[place] = np.minimum(after[place], usual)
        more = usual * group.sum() / peers.sum()
        crowded[place] = np.minimum(crowded[place], more)
    return after, crowded


def _durable(observed: Observed, changed: Flags) -> bool:
    """Whether the seconds are spent in syncs, which peers did as well.

    Writes that return early may only have met a cache with room, and prove nothing of a target.
    """
    spent = observed.own * changed
    return float(spent[observed.rows.kind == SYNC].sum()) >= MAJORITY * float(spent.sum())


def _files(observed: Observed, changed: Flags) -> list[str]:
    """The files of the slow sessions on which most seconds are spent."""
    spent = observed.by_file(observed.own, changed)
    most = np.argsort(-spent, kind="stable")[: min(MAX_PARTS, int((spent > 0).sum()))]
    return [observed.files.path(int(file)) for file in most]


def _chance(split: int, compared: int, share: float) -> float:
    """The probability that this many phases are split in a healthy run."""
    return float(
        sum(
            comb(compared, k) * share**k * (1 - share) ** (compared - k)
            for k in range(split, compared + 1)
        )
    )
