"""What does the same work slower than the rest: a stretch of time, a target, a node or a rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.cells import Cells, explained, make_cells, mend, phase_seconds
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.limits import FEWEST_PEERS, FEWEST_PHASES, SLOWER, SPREAD
from ioprism.analyses.diagnosis.parts import (
    REPEATED,
    Part,
    in_turn,
    joint_culprit,
    kept_parts,
    number_of_parts,
    slowest_parts,
)
from ioprism.analyses.diagnosis.queues import ENOUGH, service_seconds
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test, rank_test
from ioprism.analyses.diagnosis.situation import Situation, medians_by
from ioprism.analyses.diagnosis.stretches import best_run

MOST_PARTS = 8  # that may be slow together


def find(at: Situation) -> Iterator[Candidate]:
    """Find the stretch of time, and the parts of the system, that are slower than others."""
    cells = make_cells(at, at.calls.duration)
    if cells is None:
        return
    seconds = at.calls.duration.copy()
    stretch = _slow_stretch(at, cells, seconds)
    if stretch is not None:
        candidate, seconds = stretch
        yield candidate
        cells = make_cells(at, seconds) or cells
    yield from _slow_parts(at, cells, seconds)


def _slow_stretch(at: Situation, cells: Cells, seconds: Floats) -> tuple[Candidate, Floats] | None:
    """Return the neighbouring phases that are slower than all others, and the mended seconds."""
    present, level = _phase_levels(at, seconds)
    if len(present) < FEWEST_PHASES:
        return None
    best = best_run(level.tolist())
    if best is None:
        return None
    inside = np.zeros(len(present), np.bool_)
    inside[best[0] : best[1] + 1] = True
    tried = len(present) * (len(present) + 1) / 2
    p_value = tried * outlier_test(float(np.median(level[inside])), level[~inside], floor=SPREAD)
    member = np.isin(cells.phase, present[inside])
    if p_value > SIGNIFICANT or not _everywhere(cells, member):
        return None
    slow = np.isin(np.arange(at.phases), present[inside])
    mended = mend(at, cells, member, seconds)
    return _interference(at, seconds, mended, slow, p_value), mended


def _interference(
    at: Situation, seconds: Floats, mended: Floats, slow: Flags, p_value: float
) -> Candidate:
    before = phase_seconds(at, seconds)
    after = np.minimum(before, phase_seconds(at, mended))
    sound = np.median(before[~slow & (before > 0)])
    saved = np.where(slow, before - np.minimum(after, sound), 0.0)
    changed = slow[at.seen.phase] & at.calls.moves_data
    return Candidate(
        "interference",
        _span(at, slow),
        saved,
        0.93 * float(saved.sum()),
        min(float(before[slow].sum()), 1.05 * float(saved.sum())),
        p_value,
        contrast_of(at, changed, ~changed & at.calls.moves_data, "interference"),
    )


def _span(at: Situation, slow: Flags) -> dict[str, float]:
    """From when to when: in the middle between slow phases and their neighbours."""
    phases, places = at.seen.phases, np.flatnonzero(slow)
    first, last = int(places[0]), int(places[-1])
    begin = (phases.end[first - 1] + phases.start[first]) / 2 if first else 0.0
    after = phases.start[last + 1] if last + 1 < at.phases else at.seen.runtime
    return {"from": float(begin), "to": float((phases.end[last] + after) / 2)}


def _phase_levels(at: Situation, seconds: Floats) -> tuple[Ints, Floats]:
    """Phases that move data, and how long their calls take against their class, as logarithm."""
    data = at.calls.moves_data & (at.calls.bytes > 0)
    names, middle = medians_by(at.queues.classes[data], seconds[data])
    expected = middle[np.searchsorted(names, at.queues.classes[data])]
    phase = at.seen.phase[data]
    spent = np.bincount(phase, seconds[data], minlength=at.phases)
    usual = np.bincount(phase, expected, minlength=at.phases)
    known = usual[usual > 0]  # none where the clock is too coarse for most calls
    least = 0.1 * float(np.median(known)) if len(known) else np.inf
    present = np.flatnonzero((usual > least) & (spent > 0))
    return present, np.log(spent[present] / usual[present])


def _everywhere(cells: Cells, member: Flags) -> bool:
    """Whether most ranks are slower then, not only one part of the system."""
    ranks, then = medians_by(cells.rank[member], cells.level[member])
    others, usual = medians_by(cells.rank[~member], cells.level[~member])
    both, mine, theirs = np.intersect1d(ranks, others, return_indices=True)
    slower = then[mine] > usual[theirs] + np.log(SLOWER) / 2
    return len(both) > 0 and bool(slower.mean() >= 0.6)


def _slow_parts(at: Situation, cells: Cells, seconds: Floats) -> Iterator[Candidate]:
    """Take the slowest part, mend it, look again; parts of one kind become one cause."""
    found: list[Part] = []
    tests: list[float] = []
    states, gains = [seconds], list[float]()
    for _ in range(MOST_PARTS):
        best = _slowest_part(at, cells, found)
        if best is None:
            break
        part, p_value = best
        repaired = mend(at, cells, part.member, states[-1])
        gain = float(phase_seconds(at, states[-1]).sum() - phase_seconds(at, repaired).sum())
        if gain <= 0:
            break
        found.append(part)
        tests.append(p_value)
        gains.append(gain)
        states.append(repaired)
        cells = make_cells(at, repaired) or cells
    if found:
        count = kept_parts(gains)
        yield _candidate(at, found[:count], seconds, states[count], max(tests[:count]))


def _slowest_part(
    at: Situation, cells: Cells, found: list[Part]
) -> tuple[Part, float] | None:  # fmt: skip
    """Of the parts that are slower than chance, the one that explains most of what cells differ in.

    After a first part only further ones of its kind are looked for.
    """
    known = [part.culprit for part in found]
    tested = [
        (part, _chance(at, cells, part))
        for part in slowest_parts(at, cells)
        if (not found or part.code == found[0].code)
        and part.culprit not in known
        and _slower(cells, part.member)
        and in_turn(at, (cells.of_call >= 0) & part.member[np.maximum(cells.of_call, 0)])
        >= REPEATED
    ]
    scored = [
        (explained(cells, p.member), p, chance) for p, chance in tested if chance <= SIGNIFICANT
    ]
    if not scored:
        return None
    most = max(score for score, _, _ in scored)
    near = [entry for entry in scored if entry[0] >= most - 0.02 * abs(most)]
    _, part, p_value = max(near, key=lambda entry: (-entry[1].preference, entry[0]))
    return part, p_value


def _slower(cells: Cells, member: Flags) -> bool:
    inside, outside = cells.level[member], cells.level[~member]
    return len(outside) > 0 and bool(np.median(inside) - np.median(outside) >= np.log(SLOWER))


def _chance(at: Situation, cells: Cells, part: Part) -> float:
    """The likelier of two: chance between cells, chance between parts of this kind."""
    if part.code == "slow-target" and len(part.peers):
        few = _few_as_slow(part)
        peers = part.peers[part.peers < part.level - np.log(SLOWER)] if few else part.peers
        if not len(peers) or part.level < np.median(peers) + np.log(SLOWER):
            return 1.0  # its calls only wait longer: more lies on it
    test = rank_test(cells.level[part.member], cells.level[sound_cells(cells, part)])
    test *= number_of_parts(at)
    if len(part.peers) < FEWEST_PEERS:
        return min(1.0, test)
    outlier = outlier_test(part.level, part.peers, floor=SPREAD) * (len(part.peers) + 1)
    return min(1.0, max(test, outlier))


def _few_as_slow(part: Part) -> bool:
    """Whether at most half of the parts of this kind are as slow as this one."""
    as_slow = int((part.peers > part.level - np.log(SLOWER)).sum())
    return as_slow + 1 <= 0.5 * (len(part.peers) + 1)


def sound_cells(cells: Cells, part: Part) -> Flags:
    """Cells to compare with: not of the part, nor of others as slow where those are few."""
    outside = ~part.member
    if not _few_as_slow(part):
        return outside
    level = float(np.median(cells.level[part.member])) - np.log(SLOWER)
    sound = outside & (cells.level < level)
    return sound if sound.sum() >= 0.5 * outside.sum() else outside


def _candidate(
    at: Situation, found: list[Part], seconds: Floats, mended: Floats, p_value: float
) -> Candidate:
    before, after = phase_seconds(at, seconds), phase_seconds(at, mended)
    changed = mended < seconds
    # Sound targets may become the limit once nobody waits for the slow part.
    work = _work(at, mended, changed)
    likely = np.maximum(after, np.minimum(before, work * np.mean(at.queues.doubt)))
    low = np.maximum(after, np.minimum(before, work * at.queues.doubt[1]))
    code, culprit = joint_culprit(at, found)
    return Candidate(
        code=code,
        culprit=culprit | at.task_of(changed),
        seconds=np.maximum(0.0, before - likely),
        low=float(np.maximum(0, before - low).sum()) * 0.93,
        high=float((before - after).sum()) * 1.03,
        p_value=p_value,
        contrast=contrast_of(at, changed, ~changed & at.calls.moves_data, code),
        facts={"targets": len(at.pieces.targets), "nodes": len(at.seen.hosts)},
    )


def _work(at: Situation, mended: Floats, changed: Flags) -> Floats:
    """The most that any one target must work in each phase, at the speed of sound ones."""
    held = np.minimum(at.queues.held, mended)
    sound = ~changed & ~at.queues.idle & np.isfinite(at.queues.service)
    for name in np.unique(at.queues.classes[sound]):
        some = at.queues.classes == name
        if (some & sound).sum() >= ENOUGH:
            chosen = some & sound
            typical = service_seconds(at.queues.service[chosen], at.pieces.group[chosen])
            held[some] = np.minimum(held[some], typical)
    return at.busiest_target(held)
