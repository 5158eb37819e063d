"""Parts that do the same work slower than others: a target, a node, a rank, a stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.queues import ENOUGH, service_seconds
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test, rank_test
from ioprism.analyses.diagnosis.situation import Candidate, Situation, medians_by

SLOWER = 1.25  # a part that takes less than this many times its peers' time is one of them
SPREAD = 0.05  # parts of a sound system differ at least so much, as logarithm of seconds
MOST_PARTS = 8  # that may be slow together
HOLDS = 2.5  # times the others' seconds, for one rank to be what a node waits for
FEWEST_PEERS = 4  # parts of a kind, for their own differences to be known


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What one rank's calls to one set of targets took in one phase, against their class."""

    phase: Ints
    rank: Ints
    group: Ints  # set of targets; -1 unknown
    level: Floats  # median of log(seconds / median of the class)
    weight: Floats  # seconds
    of_call: Ints  # cell of each data call; -1 for others


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Cells that share a target, a host or a rank."""

    code: str
    culprit: dict[str, Any]
    member: Flags  # by cell
    preference: int  # which name to take where parts coincide: lowest


def find(at: Situation) -> Iterator[Candidate]:
    """Find the parts of the system, and the stretch of time, that are slower than others."""
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


def make_cells(at: Situation, seconds: Floats) -> Cells | None:
    """Sum up data calls by phase, rank and set of targets."""
    data = np.flatnonzero(at.calls.moves_data & (at.calls.bytes > 0))
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
    place = np.searchsorted(cells, key)
    of_call = np.full(len(at.calls), -1, np.int64)
    of_call[data] = place
    return Cells(
        phase=cells // groups // at.ranks,
        rank=cells // groups % at.ranks,
        group=cells % groups - 1,
        level=level,
        weight=np.bincount(place, seconds[data], minlength=len(cells)),
        of_call=of_call,
    )


def _slow_parts(at: Situation, cells: Cells, seconds: Floats) -> Iterator[Candidate]:
    """Take the slowest part, mend it, look again; parts of one kind become one cause."""
    found: list[Part] = []
    mended = seconds
    tests: list[float] = []
    for _ in range(MOST_PARTS):
        best = _slowest_part(at, cells, found[0].code if found else None)
        if best is None:
            break
        part, p_value = best
        repaired = _mend(at, cells, part.member, mended)
        if not _held(at, mended) - _held(at, repaired) > 0:
            break
        found.append(part)
        tests.append(p_value)
        mended = repaired
        cells = make_cells(at, mended) or cells
    if found:
        yield _candidate(at, found, seconds, mended, max(tests))


def _slowest_part(at: Situation, cells: Cells, code: str | None) -> tuple[Part, float] | None:
    """The part that explains most of what cells differ in, if it is slower than chance."""
    parts = [part for part in _parts(at, cells) if code in (None, part.code)]
    scored = []
    for part in parts:
        inside, outside = cells.level[part.member], cells.level[~part.member]
        if not len(inside) or not len(outside):
            continue
        ratio = float(np.median(inside) - np.median(outside))
        if ratio < np.log(SLOWER):
            continue
        scored.append((_explained(cells, part.member), -part.preference, part))
    if not scored:
        return None
    most = max(score for score, _, _ in scored)
    near = [entry for entry in scored if entry[0] >= most - 0.02 * abs(most)]
    part = max(near, key=lambda entry: (entry[1], entry[0]))[2]
    p_value = _chance(at, cells, part, parts)
    if p_value > SIGNIFICANT:
        return None
    return (_holder(at, part) if part.code == "slow-node" else part), p_value


def _explained(cells: Cells, member: Flags) -> float:
    """How much of the cells' differences goes away when the part has a level of its own."""
    level = cells.level
    total = np.abs(level - np.median(level)).sum()
    rest = np.abs(level[member] - np.median(level[member])).sum()
    rest += np.abs(level[~member] - np.median(level[~member])).sum()
    return float(total - rest) / max(float(total), 1e-12)


def _chance(at: Situation, cells: Cells, part: Part, parts: list[Part]) -> float:
    """The likelier of two: chance between cells, chance between parts of this kind."""
    alike = [o for o in parts if o.code == part.code and not (o.member & part.member).any()]
    peers = ~part.member & ~_equally_slow(cells, part, alike)
    test = rank_test(cells.level[part.member], cells.level[peers]) * len(parts)
    if part.code == "slow-target":
        own, levels = _target_levels(at, part)
        if own < np.median(levels) + np.log(SLOWER):
            return 1.0  # its calls only wait longer: more lies on it
    else:
        own = float(np.median(cells.level[part.member]))
        levels = np.array([float(np.median(cells.level[o.member])) for o in alike])
    if len(levels) < FEWEST_PEERS:
        return min(1.0, test)
    return min(1.0, max(test, outlier_test(own, levels, floor=SPREAD) * (len(alike) + 1)))


def _equally_slow(cells: Cells, part: Part, alike: list[Part]) -> Flags:
    """Cells of other parts that are as slow: no peers to compare with, as long as they are few."""
    level = float(np.median(cells.level[part.member])) - np.log(SLOWER)
    found = np.zeros(len(cells.level), np.bool_)
    slow = [other for other in alike if float(np.median(cells.level[other.member])) > level]
    if len(slow) + 1 <= 0.5 * (len(alike) + 1):
        for other in slow:
            found |= other.member
    return found


def _target_levels(at: Situation, part: Part) -> tuple[float, Floats]:
    """How long targets are busy for a byte, as logarithm: the part's, and the others'.

    Work is conserved whatever the order in which a target serves: the time that it is busy over
    what it does there tells its speed, and does not depend on how many calls wait.
    """
    pieces = at.pieces
    order = np.lexsort((at.calls.end[pieces.call], pieces.target))
    call, target = pieces.call[order], pieces.target[order]
    before = np.concatenate(([-np.inf], at.calls.end[call][:-1]))
    before[np.concatenate(([True], target[1:] != target[:-1]))] = -np.inf
    busy = at.calls.end[call] - np.maximum(at.calls.start[call], before)
    count = len(pieces.targets)
    seconds = np.bincount(target, np.maximum(busy, 0.0), minlength=count)
    expected = np.bincount(target, at.queues.held[call], minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log(seconds / expected)
    mine = [pieces.targets.index(name) for name in _target_names(part)]
    return float(np.max(level[mine])), np.delete(level, mine)


def _parts(at: Situation, cells: Cells) -> list[Part]:
    return [*_targets(at, cells), *_nodes(at, cells), *_single_ranks(at, cells)]


def _targets(at: Situation, cells: Cells) -> Iterator[Part]:
    """Targets; those that are always used together cannot be told apart and are one part."""
    pieces = at.pieces
    if len(pieces.targets) < 2:
        return
    groups = int(pieces.group.max()) + 1
    touches = np.zeros((len(pieces.targets), groups), np.bool_)
    touches[pieces.target, pieces.group[pieces.call]] = True
    leads = np.zeros((len(pieces.targets), groups), np.bool_)
    known = pieces.known
    leads[pieces.first[known], pieces.group[known]] = True
    seen: set[bytes] = set()
    # A target that holds the first byte of calls comes first among those used together.
    order = sorted(range(len(pieces.targets)), key=lambda t: (not leads[t].any(), t))
    for target in order:
        if not touches[target].any() or touches[target].tobytes() in seen:
            continue
        seen.add(touches[target].tobytes())
        together = np.flatnonzero((touches == touches[target]).all(axis=1))
        culprit: dict[str, Any] = {"target": pieces.targets[target]}
        if len(together) > 1:
            culprit["targets"] = [pieces.targets[other] for other in together]
        member = (cells.group >= 0) & touches[target][np.maximum(cells.group, 0)]
        yield Part("slow-target", culprit, member, 0)


def _nodes(at: Situation, cells: Cells) -> Iterator[Part]:
    host = at.seen.host_of[cells.rank]
    for number in np.unique(host[host >= 0]):
        culprit = {"host": at.seen.hosts[int(number)]}
        yield Part("slow-node", culprit, host == number, 1)


def _single_ranks(at: Situation, cells: Cells) -> Iterator[Part]:
    for number in np.unique(cells.rank):
        culprit = {"ranks": [int(at.seen.rank_numbers[number])]}
        yield Part("slow-rank", culprit, cells.rank == number, 2)


def _holder(at: Situation, node: Part) -> Part:
    """The one rank for which all others of a slow node wait, if there is one.

    Ranks of a node share its way to storage: a call that holds it makes the others wait. Who is
    served while others wait is told by the order in which calls of the node end.
    """
    host = at.seen.hosts.index(node.culprit["host"])
    some = np.flatnonzero((at.seen.host_of[at.calls.rank] == host) & at.calls.moves_data)
    order = some[np.argsort(at.calls.end[some], kind="stable")]
    before = np.concatenate(([-np.inf], at.calls.end[order][:-1]))
    alone = at.calls.end[order] - np.maximum(at.calls.start[order], before)
    ranks, place = np.unique(at.calls.rank[order], return_inverse=True)
    each = np.bincount(place, alone) / np.bincount(place, at.queues.lone[order])
    if len(ranks) < 2:
        return node
    first = int(np.argmax(each))
    if each[first] < HOLDS * np.max(np.delete(each, first)):
        return node
    culprit = {"ranks": [int(at.seen.rank_numbers[ranks[first]])], "host": node.culprit["host"]}
    return Part("slow-rank", culprit, node.member, node.preference)


def _target_names(part: Part) -> list[Any]:
    return list(part.culprit.get("targets", [part.culprit["target"]]))


def _mend(at: Situation, cells: Cells, member: Flags, seconds: Floats) -> Floats:
    """Let the part's calls take what their peers take, class by class."""
    inside = (cells.of_call >= 0) & member[np.maximum(cells.of_call, 0)]
    peers = (cells.of_call >= 0) & ~inside
    mended = seconds.copy()
    classes = at.queues.classes
    overall = np.median(cells.level[member]) - np.median(cells.level[~member])
    for name in np.unique(classes[inside]):
        own, others = inside & (classes == name), peers & (classes == name)
        ratio = np.exp(-overall)
        if others.sum() >= 5:
            ratio = np.median(seconds[others]) / np.median(seconds[own])
        mended[own] = seconds[own] * min(1.0, ratio)
    return mended


def _phase_seconds(at: Situation, seconds: Floats) -> Floats:
    """How long each phase lasts when calls take these seconds: as long as its slowest rank."""
    own = np.where(at.calls.duration > 0, at.own * seconds / np.maximum(at.calls.duration, 1e-12), 0)
    chain = at.by_rank(own).max(axis=1)
    return np.minimum(at.held, chain + at.waiting)


def _held(at: Situation, seconds: Floats) -> float:
    return float(_phase_seconds(at, seconds).sum())


def _candidate(
    at: Situation, found: list[Part], seconds: Floats, mended: Floats, p_value: float
) -> Candidate:
    before, after = _phase_seconds(at, seconds), _phase_seconds(at, mended)
    # Sound targets may become the limit once nobody waits for the slow part.
    work = _work(at, mended, mended < seconds)
    likely = np.maximum(after, np.minimum(before, work * np.mean(at.queues.doubt)))
    low = np.maximum(after, np.minimum(before, work * at.queues.doubt[1]))
    saved = np.maximum(0.0, before - likely)
    changed = mended < seconds
    return Candidate(
        code=found[0].code,
        culprit=_joint_culprit(found),
        seconds=saved,
        low=float(np.maximum(0, before - low).sum()) * 0.93,
        high=float((before - after).sum()) * 1.03,
        p_value=p_value,
        contrast=contrast_of(at, changed, ~changed & at.calls.moves_data, found[0].code),
    )


def _work(at: Situation, mended: Floats, changed: Flags) -> Floats:
    """The most that any one target must work in each phase, at the speed of sound ones."""
    if not len(at.pieces.targets):
        return np.zeros(at.phases)
    held = np.minimum(at.queues.held, mended)
    sound = ~changed & ~at.queues.idle & np.isfinite(at.queues.service)
    for name in np.unique(at.queues.classes[sound]):
        some = at.queues.classes == name
        if (some & sound).sum() >= ENOUGH:
            typical = service_seconds(at.queues.service[some & sound], at.pieces.group[some & sound])
            held[some] = np.minimum(held[some], typical)
    return at.by_target(held).max(axis=1)


def _joint_culprit(found: list[Part]) -> dict[str, Any]:
    culprit = dict(found[0].culprit)
    if len(found) == 1:
        return culprit
    if found[0].code == "slow-target":
        culprit["targets"] = sorted({name for part in found for name in _target_names(part)})
    elif found[0].code == "slow-node":
        culprit["hosts"] = sorted(part.culprit["host"] for part in found)
    else:
        culprit["ranks"] = sorted(rank for part in found for rank in part.culprit["ranks"])
    return culprit


def _slow_stretch(
    at: Situation, cells: Cells, seconds: Floats
) -> tuple[Candidate, Floats] | None:
    """The neighbouring phases that are slower than all others, for all ranks alike."""
    present, level = _phase_levels(at, seconds)
    if len(present) < 4:
        return None
    best = _best_run(level)
    if best is None:
        return None
    first, last = best
    inside = np.zeros(len(present), np.bool_)
    inside[first : last + 1] = True
    tried = len(present) * (len(present) + 1) / 2
    p_value = tried * outlier_test(
        float(np.median(level[inside])), level[~inside], floor=SPREAD
    )
    member = np.isin(cells.phase, present[inside])
    if p_value > 0.01 or not _everywhere(at, cells, member):
        return None
    mended = _mend(at, cells, member, seconds)
    before = _phase_seconds(at, seconds)
    after = np.minimum(before, _phase_seconds(at, mended))
    slow = np.isin(np.arange(at.phases), present[inside])
    sound = np.median(before[~slow & (before > 0)])
    after = np.where(slow, np.minimum(before, np.minimum(after, sound)), before)
    changed = np.isin(at.seen.phase, present[inside]) & at.calls.moves_data
    saved = before - after
    phases = at.seen.phases
    low, high = int(present[first]), int(present[last])
    candidate = Candidate(
        "interference",
        {
            "from": float((phases.end[low - 1] + phases.start[low]) / 2 if low else 0.0),
            "to": float(
                (phases.end[high] + phases.start[high + 1]) / 2
                if high + 1 < at.phases
                else at.seen.runtime
            ),
        },
        saved,
        0.93 * float(saved.sum()),
        min(float(before[slow].sum()), 1.05 * float(saved.sum())),
        p_value,
        contrast_of(at, changed, ~changed & at.calls.moves_data, "interference"),
    )
    return candidate, mended


def _phase_levels(at: Situation, seconds: Floats) -> tuple[Ints, Floats]:
    """Phases that move data, and how long their calls take against their class, as logarithm."""
    data = at.calls.moves_data & (at.calls.bytes > 0)
    names, middle = medians_by(at.queues.classes[data], seconds[data])
    expected = middle[np.searchsorted(names, at.queues.classes[data])]
    phase = at.seen.phase[data]
    spent = np.bincount(phase, seconds[data], minlength=at.phases)
    usual = np.bincount(phase, expected, minlength=at.phases)
    present = np.flatnonzero((usual > 0.1 * np.median(usual[usual > 0])) & (spent > 0))
    return present, np.log(spent[present] / usual[present])


def _best_run(level: Floats) -> tuple[int, int] | None:
    """The run of neighbours, less than half of all, that stands out most."""
    best, most = None, 0.0
    for first in range(len(level)):
        for last in range(first, min(len(level), first + (len(level) - 1) // 2)):
            inside = level[first : last + 1]
            outside = np.concatenate((level[:first], level[last + 1 :]))
            steps = inside - max(float(np.quantile(outside, 0.9)), float(np.median(outside)))
            if steps.min() > np.log(SLOWER) and float(steps.sum()) > most:
                best, most = (first, last), float(steps.sum())
    return best


def _everywhere(at: Situation, cells: Cells, member: Flags) -> bool:
    """Whether most ranks are slower then, not only one part of the system."""
    slower = 0
    ranks = np.unique(cells.rank)
    for rank in ranks:
        own = cells.rank == rank
        then, else_ = cells.level[own & member], cells.level[own & ~member]
        if len(then) and len(else_) and np.median(then) > np.median(else_) + np.log(SLOWER) / 2:
            slower += 1
    return slower >= 0.6 * len(ranks)
