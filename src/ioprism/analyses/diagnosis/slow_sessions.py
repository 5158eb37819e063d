"""Parts that are slower over all of a rank's calls in a phase, though most single calls are not.

Where writes are buffered, most return at once and a few wait for all that came before, or the
sync and the close do: single calls do not tell which target is slow, their sum does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.cells import Cells, explained
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.limits import FEWEST_PEERS, SLOWER, SPREAD
from ioprism.analyses.diagnosis.parts import (
    REPEATED,
    Part,
    in_turn,
    joint_culprit,
    kept_parts,
    number_of_parts,
    slowest_parts,
)
from ioprism.analyses.diagnosis.significance import outlier_test, rank_test
from ioprism.analyses.diagnosis.situation import Situation, medians_by
from ioprism.analyses.diagnosis.slow_parts import sound_cells

CHANCE = 0.01  # that a difference so large means nothing, after all parts were tried
MOST_PARTS = 8  # that may be slow together
MOST_CALLS = 100_000  # compared one by one
MOSTLY = 0.8  # of a part's cells
ALIKE = 4  # classes of work for each factor of two in bytes


def find(at: Situation) -> Iterator[Candidate]:
    """Find the targets, nodes or ranks whose ranks take longer for the same work."""
    seconds = at.by_rank(at.own)
    cells, work = session_cells(at, seconds)
    found: list[Part] = []
    tests: list[float] = []
    states, gains = [seconds], list[float]()
    for _ in range(MOST_PARTS):
        best = slowest_part(at, cells, found, states[-1])
        if best is None:
            break
        repaired = _mend(cells, work, best[0].member, states[-1])
        gain = float((states[-1].max(axis=1) - repaired.max(axis=1)).sum())
        if gain <= 0:
            break
        found.append(best[0])
        tests.append(best[1])
        gains.append(gain)
        states.append(repaired)
        cells, work = session_cells(at, repaired)
    if found:
        count = kept_parts(gains)
        yield _candidate(at, found[:count], seconds, states[count], max(tests[:count]))


def slowest_part(
    at: Situation, cells: Cells, found: list[Part], seconds: Floats
) -> tuple[Part, float] | None:
    """The part that explains most of what ranks differ in, if it is slower than chance."""
    known = [part.culprit for part in found]
    slower = [
        part
        for part in slowest_parts(at, cells, by_calls=False)
        if (not found or part.code == found[0].code)
        and part.culprit not in known
        and _step(cells, part.member) >= np.log(SLOWER)
        and in_turn(at, _calls_of(at, cells, part.member)) >= REPEATED
    ]
    # Ranks whose target only has more to do than others are no slower themselves.
    hot = [
        part.member
        for part in slower
        if part.code == "slow-target" and not _slow_by_bytes(at, cells, part.member, seconds)
    ]
    slower = [part for part in slower if not any(_lies_in(part.member, one) for one in hot)]
    shares = [explained(cells, part.member) for part in slower]
    if not any(shares):
        return None
    near = [p for p, e in zip(slower, shares, strict=True) if e >= 0.98 * max(shares)]
    part = min(near, key=lambda one: one.preference)
    chance = _chance(cells, part)
    if int(part.member.sum()) < REPEATED:
        chance = max(chance, _chance_of_calls(at, cells, part.member))
    p_value = min(1.0, chance * number_of_parts(at))
    return (part, p_value) if p_value <= CHANCE else None


def _chance(cells: Cells, part: Part) -> float:
    """The chance that a part stands out so far from others of its kind, and so often."""
    # Others that are as slow are no peers, as long as they are few.
    levels = part.peers[np.isfinite(part.peers)]
    as_slow = levels > part.level - np.log(SLOWER)
    levels = levels[~as_slow] if as_slow.sum() < len(levels) / 2 else levels
    enough = len(levels) >= FEWEST_PEERS
    alone = outlier_test(part.level, levels, floor=SPREAD) if enough else 0.0
    if int(part.member.sum()) < REPEATED:
        return alone if enough else 1.0
    return max(alone, rank_test(cells.level[part.member], cells.level[sound_cells(cells, part)]))


def _calls_of(at: Situation, cells: Cells, member: Flags) -> Flags:
    inside = np.zeros((at.phases, at.ranks), np.bool_)
    inside[cells.phase[member], cells.rank[member]] = True
    return inside[at.seen.phase, at.calls.rank]


def _chance_of_calls(at: Situation, cells: Cells, member: Flags) -> float:
    """Compare members' calls with others of the same phase, kind and size."""
    slow = _calls_of(at, cells, member)
    beside = np.isin(at.seen.phase, cells.phase[member])
    some = np.flatnonzero(beside)[:MOST_CALLS]
    kind = at.seen.phase[some] * 8192 + at.queues.classes[some]
    log = np.log(np.maximum(at.calls.duration[some], 1e-9))
    names, middle = medians_by(kind, log)
    level = log - middle[np.searchsorted(names, kind)]
    return rank_test(level[slow[some]], level[~slow[some]])


def _lies_in(member: Flags, whole: Flags) -> bool:
    return float((member & whole).sum()) >= MOSTLY * float(member.sum())


def _step(cells: Cells, member: Flags) -> float:
    """By how much members are above the others, as logarithm; nothing without others."""
    if member.all() or not member.any():
        return 0.0
    return float(np.median(cells.level[member]) - np.median(cells.level[~member]))


def _slow_by_bytes(at: Situation, cells: Cells, member: Flags, seconds: Floats) -> bool:
    """Whether members' targets need longer for each byte, and not only hold more of them."""
    moved = at.by_rank(at.calls.bytes.astype(np.float64))[cells.phase, cells.rank]
    # A set of targets is busy until the last of its ranks is done.
    groups = int(cells.group.max()) + 2
    names, place = np.unique(cells.phase * groups + cells.group + 1, return_inverse=True)
    busy, total = np.zeros(len(names)), np.bincount(place, moved)
    np.maximum.at(busy, place, seconds[cells.phase, cells.rank])
    cost = busy / np.maximum(total, 1.0)
    own = np.isin(np.arange(len(names)), place[member])
    some = total > 0
    if not (own & some).any() or not (~own & some).any():
        return True
    return float(np.median(cost[own & some])) >= SLOWER * float(np.median(cost[~own & some]))


def session_cells(at: Situation, seconds: Floats) -> tuple[Cells, Ints]:
    """What each rank took in each phase against others with the same work; and that work."""
    phase, rank = np.nonzero(seconds > 0)
    moved = at.by_rank(at.calls.bytes.astype(np.float64))[phase, rank]
    size = np.where(moved > 0, (ALIKE * np.log2(np.maximum(moved, 1))).round(), -1)
    # The same bytes in many more calls, or beside many opens, are other work.
    calls = at.by_rank(np.ones(len(at.calls)))[phase, rank]
    many = (0.5 * np.log2(np.maximum(calls, 1))).round().astype(np.int64)
    work = (phase * 1024 + size.astype(np.int64) + 1) * 32 + many
    log = np.log(seconds[phase, rank])
    names, middle = medians_by(work, log)
    level = log - middle[np.searchsorted(names, work)]
    group = _main_group(at)[phase, rank]
    nobody = np.full(len(at.calls), -1, np.int64)
    return Cells(phase, rank, group, level, nobody), work


def _main_group(at: Situation) -> Ints:
    """The set of targets that most bytes of each rank in each phase lie on; -1 unknown."""
    group = np.full((at.phases, at.ranks), -1, np.int64)
    known = np.flatnonzero(at.pieces.known)
    # Later assignments win: the largest sum comes last.
    key = (at.seen.phase[known] * at.ranks + at.calls.rank[known]).astype(np.int64)
    groups = int(at.pieces.group.max(initial=-1)) + 1
    pair = key * max(groups, 1) + at.pieces.group[known]
    names, inverse = np.unique(pair, return_inverse=True)
    moved = np.bincount(inverse, at.calls.bytes[known].astype(np.float64))
    order = np.argsort(moved, kind="stable")
    group.reshape(-1)[names[order] // max(groups, 1)] = names[order] % max(groups, 1)
    return group


def _mend(cells: Cells, work: Ints, member: Flags, seconds: Floats) -> Floats:
    """Let members take what the middle one of their peers with the same work takes."""
    own = seconds[cells.phase, cells.rank]
    names, middle = medians_by(work[~member], own[~member])
    place = np.minimum(np.searchsorted(names, work), len(names) - 1)
    has_peers = names[place] == work
    typical = np.exp(np.log(np.maximum(own, 1e-12)) - cells.level)
    peers = np.where(has_peers, middle[place], typical)
    mended = seconds.copy()
    mended[cells.phase[member], cells.rank[member]] = np.minimum(own, peers)[member]
    return mended


def _candidate(
    at: Situation, found: list[Part], seconds: Floats, mended: Floats, p_value: float
) -> Candidate:
    before = np.minimum(at.held, seconds.max(axis=1) + at.waiting)
    after = np.minimum(before, mended.max(axis=1) + at.waiting)
    # Peers wait behind the slow part as well: without it, the phase may end with the middle one.
    taking_part = np.where(mended > 0, mended, np.nan)
    middle = np.array([np.nanmedian(row) if (row > 0).any() else 0.0 for row in taking_part])
    shared = np.minimum(after, middle + at.waiting)
    saved = before - after
    changed = (mended < seconds)[at.seen.phase, at.calls.rank]
    code, culprit = joint_culprit(at, found)
    return Candidate(
        code=code,
        culprit=culprit | _own_files(at, changed) | at.task_of(changed),
        seconds=saved,
        low=0.9 * float(saved.sum()),
        high=float((before - shared).sum()),
        p_value=p_value,
        contrast=contrast_of(at, *_compared(at, changed), code),
    )


def _compared(at: Situation, changed: Flags) -> tuple[Flags, Flags]:
    """The calls concerned, and those of others in the same phases, of the same kind and size."""
    moves = changed & at.calls.moves_data
    slow = moves if moves.any() else changed
    alike = np.isin(at.seen.phase, at.seen.phase[slow])
    alike &= np.isin(at.queues.classes, at.queues.classes[slow])
    return slow, alike & ~changed


def _own_files(at: Situation, slow: Flags) -> dict[str, list[str]]:
    """Files that only the slow ranks use, where nobody says on which targets they lie."""
    if len(at.pieces.targets):
        return {}
    known = at.calls.file >= 0
    theirs = np.setdiff1d(at.calls.file[known & slow], at.calls.file[known & ~slow])
    return {"files": [at.path(int(file)) for file in theirs[:MOST_PARTS]]} if len(theirs) else {}
