"""A storage target, a node or ranks that do the same work slower than the others.

Codes: slow-target, slow-node, slow-rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

from ioprism.diagnosis.checks.sessions import (
    MAX_PARTS,
    Cells,
    Part,
    call_cells,
    cell_rows,
    joint_culprit,
    number_of_parts,
    session_cells,
    session_seconds,
    slowest_parts,
    worth_naming,
)
from ioprism.diagnosis.limits import DOMINANT, MAJORITY
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast
from ioprism.diagnosis.rows import (
    Flags,
    Floats,
    Ints,
    departures,
    medians_by,
    outlier_test,
    rank_test,
    unique,
)
from ioprism.diagnosis.targets import mean_service
from ioprism.model.arrays import median
from ioprism.model.verdict import Decision

RECORD = Decision(
    "record every call, so that ranks are compared request by request",
    "export DXT_ENABLE_IO_TRACE=1",
)
REPEAT = Decision(
    "run it three times: chance does not repeat",
    "ioprism record --repeat 3 -- COMMAND",
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Compare parts by call and by session.

    Where both name the same part, sessions count if syncs and closes wait for it as well.
    """
    by_session = _slow_sessions(observed)
    by_call = _slow_calls(observed) if observed.per_call else None
    if by_call is None or by_session is None:
        yield from (one for one in (by_call, by_session) if one is not None)
        return
    same = by_call.code == by_session.code and by_call.culprit.items() <= by_session.culprit.items()
    before = observed.busiest_rank(observed.own).sum()
    gain, of_sessions = (
        before - observed.busiest_rank(one.change.likely.chain).sum()
        for one in (by_call, by_session)
        if one.change is not None
    )
    needed = 1 + observed.limits.run_noise if same else 1.0
    yield by_session if of_sessions > needed * gain else by_call


def _repair_parts(
    seconds: Floats,
    cells_of: Callable[[Floats], Cells | None],
    slowest: Callable[[Cells, list[Part], Floats], tuple[Part, float] | None],
    repair: Callable[[Cells, Flags, Floats], Floats],
    length: Callable[[Floats], float],
) -> tuple[list[Part], float, Floats] | None:
    """Take the slowest part, repair it, look again, as long as phases become shorter.

    Returns the parts worth naming, the probability that they are chance, and the seconds of calls
    or sessions without them.
    """
    states, cells = [seconds], cells_of(seconds)
    parts: list[Part] = []
    tests: list[float] = []
    while cells is not None and len(parts) < MAX_PARTS:
        worst = slowest(cells, parts, states[-1])
        if worst is None:
            break
        parts.append(worst[0])
        tests.append(worst[1])
        states.append(repair(cells, worst[0].member, states[-1]))
        cells = cells_of(states[-1]) or cells
    gains = [before - after for before, after in pairwise(map(length, states))]
    if not parts or sum(gains) <= 0:
        return None
    count = worth_naming(gains)
    return parts[:count], max(tests[:count]), states[count]


def _slow_sessions(observed: Observed) -> Proposal | None:
    """Ranks, nodes or targets whose sessions take longer."""
    if not (observed.rows.rank >= 0).any():
        return None
    seconds = session_seconds(observed)
    repaired = _repair_parts(
        seconds,
        partial(session_cells, observed),
        partial(_slowest_session_part, observed),
        _repair_sessions,
        lambda state: float(state.max(axis=1).sum()),
    )
    if repaired is None:
        return None
    parts, test, after = repaired
    ratio = np.divide(after, seconds, out=np.ones_like(seconds), where=seconds > 0)
    if not _serves_slower(observed, np.flatnonzero((ratio < 1).any(axis=0))):
        return None
    factor = observed.of_sessions(ratio, 1.0)
    changed = factor < 1
    facts = _facts(observed, seconds, changed)
    usual = facts["peer_seconds"]
    return _proposal(
        observed,
        (parts, test),
        changed,
        _session_change(observed, observed.own * factor, changed, seconds, after),
        _comparison_rows(observed, changed),
        facts | ({"ratio": facts["slow_seconds"] / usual} if usual > 0 else {}),
    )


def _proposal(
    observed: Observed,
    slow: tuple[list[Part], float],
    changed: Flags,
    change: Change,
    compared: tuple[Flags, Flags],
    facts: dict[str, Any],
) -> Proposal:
    code, culprit = joint_culprit(observed, slow[0])
    culprit |= _own_place(observed, changed) | observed.task(changed)
    decide, both = REPEAT if observed.per_call else RECORD, contrast(observed, *compared, code)
    return Proposal(code, culprit, changed, change, slow[1], both, decide, facts)


def _serves_slower(observed: Observed, ranks: Ints) -> bool:
    """Whether some ranks are served slower, rather than being the last in a queue.

    Ranks that queue for one server end one service time after each other, also the last one.
    Counters do not show the queue: with few peers, it may explain the difference.
    """
    theirs = np.isin(observed.rows.rank, ranks)
    inferred = float(observed.own[theirs & observed.rows.inferred].sum())
    if not observed.per_call or inferred > 0.5 * float(observed.own[theirs].sum()):
        enough = observed.io_ranks - len(ranks) >= observed.limits.min_peers
        return enough or _slower_alone(observed, ranks)
    served = departures(observed.rows, np.zeros(len(observed.rows), np.int64))
    by_rank = observed.by_rank(served).sum(axis=0)
    others = np.delete(by_rank, ranks)
    others = others[others > 0]
    return not len(others) or by_rank[ranks].mean() >= observed.limits.slower * others.mean()


def _slower_alone(observed: Observed, ranks: Ints) -> bool:
    """Whether ranks need longer after all others are done than the quickest of those in all.

    The last ones in a queue are alone by then, and have at most their own work left.
    """
    seconds = session_seconds(observed)
    slow, others = seconds[:, ranks], np.delete(seconds, ranks, axis=1)
    together = np.flatnonzero((slow > 0).all(axis=1) & (others > 0).all(axis=1))
    if not others.shape[1] or not len(together):
        return False
    alone = slow[together].min(axis=1) - others[together].max(axis=1)
    left = len(ranks) * others[together].min(axis=1)
    return float(alone.sum()) >= observed.limits.slower * float(left.sum())


def _change(observed: Observed, chain: Floats, changed: Flags) -> Change:
    """Slow calls take what peers take; healthy targets may become the limit then."""
    occupied = observed.service.occupied
    work = np.where(changed, np.minimum(occupied, chain), occupied)
    work = _healthy_work(observed, work, changed)
    known = len(observed.pieces.targets) > 0
    likely = Scenario(chain, work * float(np.mean(observed.service.doubt)) if known else None)
    worst = Scenario(chain, work if known else None)
    return Change(likely, worst, Scenario(chain))


def _session_change(
    observed: Observed, chain: Floats, changed: Flags, before: Floats, after: Floats
) -> Change:
    """Slow sessions take what peers take, which includes waiting at healthy targets."""
    best = Scenario(np.minimum(chain, _shared_limit(after)[observed.phase]))
    if observed.per_call:
        change = _change(observed, chain, changed)
        return Change(change.likely, change.worst, best)
    # Without single calls, a repaired target that holds more bytes may finish after its peers.
    floor = _busiest_repaired_target(observed, before, after < before)
    return Change(Scenario(chain), Scenario(chain, floor=floor), best)


def _busiest_repaired_target(observed: Observed, seconds: Floats, slow: Flags) -> Floats:
    """Seconds of each phase in which repaired targets move their bytes as others do."""
    cells = session_cells(observed, seconds)
    work = _target_work(observed, cells, seconds, slow[cells.phase, cells.rank])
    floor = np.zeros(len(observed.phases))
    np.maximum.at(floor, work.phase[work.own], work.usual * work.bytes[work.own])
    return floor


def _shared_limit(after: Floats) -> Floats:
    """The middle rank's seconds of each phase: peers may wait behind the slow part as well."""
    taking_part = np.where(after > 0, after, np.nan)
    rows = [np.nanmedian(row) if (row > 0).any() else 0.0 for row in taking_part]
    return np.asarray(rows, np.float64)


def _healthy_work(observed: Observed, work: Floats, changed: Flags) -> Floats:
    """Seconds that rows occupy targets at the speed of healthy ones."""
    service, rows = observed.service, work.copy()
    healthy = ~changed & ~service.idle & np.isfinite(service.observed)
    for name in unique(service.classes[healthy]):
        some = service.classes == name
        chosen = some & healthy
        if chosen.sum() >= observed.limits.min_served:
            typical = mean_service(service.observed[chosen], observed.pieces.group[chosen])
            rows[some] = np.minimum(rows[some], typical)
    return rows


def _facts(observed: Observed, seconds: Floats, changed: Flags) -> dict[str, Any]:
    ranks = unique(observed.rows.rank[changed])
    total = seconds.sum(axis=0)
    others = np.setdiff1d(np.flatnonzero(total > 0), ranks)
    return {
        "targets": len(observed.pieces.targets),
        "nodes": len(observed.hosts),
        "slow_seconds": median(total[ranks]),
        "peer_seconds": median(total[others]) if len(others) else 0.0,
    }


def _slower_parts(observed: Observed, cells: Cells, named: list[Part]) -> list[Part]:
    """Parts that are slower than others; after a first one only further ones of its kind."""
    limits, known = observed.limits, [part.culprit for part in named]
    return [
        part
        for part in slowest_parts(observed, cells)
        if (not named or part.code == named[0].code)
        and part.culprit not in known
        and _step(cells, part.member) >= np.log(limits.slower)
        and _in_turn(observed, cell_rows(observed, cells, part.member)) >= limits.min_in_turn
    ]


def _slowest_session_part(
    observed: Observed, cells: Cells, named: list[Part], seconds: Floats
) -> tuple[Part, float] | None:
    """The part that explains most of what sessions differ in, if that is not chance."""
    limits, slower = observed.limits, _slower_parts(observed, cells, named)
    # Ranks whose target only has more to do than others are not slower themselves.
    busy = [
        part.member
        for part in slower
        if part.code == "slow-target" and not _slow_per_byte(observed, cells, part.member, seconds)
    ]
    slower = [
        part
        for part in slower
        if not any((part.member & one).sum() >= DOMINANT * part.member.sum() for one in busy)
    ]
    shares = [_explained_variance(cells, part.member) for part in slower]
    if not any(shares):
        return None
    near = [
        p for p, e in zip(slower, shares, strict=True) if e >= limits.same_explanation * max(shares)
    ]
    part = min(near, key=lambda one: (one.preference, -one.level))
    chance = _session_chance(observed, cells, part)
    if _is_incident(observed, cells, part.member):
        return None
    p_value = min(1.0, chance * number_of_parts(observed))
    return (part, p_value) if p_value <= limits.significance else None


def _session_chance(observed: Observed, cells: Cells, part: Part) -> float:
    """The probability that a part stands out this far from others, and this often."""
    limits = observed.limits
    levels = part.peers[np.isfinite(part.peers)]
    # Others that are as slow are not peers, as long as they are few.
    as_slow = levels > part.level - np.log(limits.slower)
    levels = levels[~as_slow] if as_slow.sum() < len(levels) / 2 else levels
    enough = len(levels) >= limits.min_peers
    alone = outlier_test(part.level, levels, min_spread=limits.part_spread) if enough else 0.0
    if int(part.member.sum()) < limits.min_in_turn:
        return alone if enough else 1.0
    healthy = _healthy_cells(observed, cells, part)
    least = number_of_parts(observed) / comb(len(cells.level), int(part.member.sum()))
    if least > limits.significance and healthy.sum() >= limits.min_peers:
        # So few sessions could never pass a test of ranks.
        others = cells.level[healthy]
        return max(alone, outlier_test(part.level, others, min_spread=limits.part_spread))
    return max(alone, rank_test(cells.level[part.member], cells.level[healthy]))


def _is_incident(observed: Observed, cells: Cells, member: Flags) -> bool:
    """Whether one call holds most of what members take longer: it may not happen again."""
    slow = cell_rows(observed, cells, member)
    spent = float(observed.own[slow].sum())
    usual = spent * float(np.exp(-median(cells.level[member])))
    longest = float(
        np.where(observed.rows.inferred, 0.0, observed.rows.longest)[slow].max(initial=0.0)
    )
    return longest > MAJORITY * (spent - usual)


def _step(cells: Cells, member: Flags) -> float:
    """By how much members are above the others, as logarithm; 0 without others."""
    if member.all() or not member.any():
        return 0.0
    return float(median(cells.level[member]) - median(cells.level[~member]))


@dataclass(frozen=True, slots=True, eq=False)
class TargetWork:
    """What each set of targets moves in each phase, and how long it is busy with it."""

    phase: Ints
    bytes: Floats
    seconds: Floats  # until the last of its ranks is done
    own: Flags  # whether it serves the members

    @property
    def cost(self) -> Floats:
        """Seconds per byte."""
        return self.seconds / np.maximum(self.bytes, 1.0)

    @property
    def usual(self) -> float:
        """Seconds per byte at the middle one of the other sets."""
        return median(self.cost[~self.own]) if (~self.own).any() else 0.0


def _target_work(observed: Observed, cells: Cells, seconds: Floats, member: Flags) -> TargetWork:
    moved = observed.by_rank(observed.rows.bytes.astype(np.float64))[cells.phase, cells.rank]
    groups = int(cells.group.max(initial=-1)) + 2
    names, place = np.unique(cells.phase * groups + cells.group + 1, return_inverse=True)
    busy, total = np.zeros(len(names)), np.bincount(place, moved, minlength=len(names))
    np.maximum.at(busy, place, seconds[cells.phase, cells.rank])
    own = np.isin(np.arange(len(names)), place[member])
    known = (total > 0) & (names % groups > 0)
    return TargetWork((names // groups)[known], total[known], busy[known], own[known])


def _slow_per_byte(observed: Observed, cells: Cells, member: Flags, seconds: Floats) -> bool:
    """Whether members' targets need longer for each byte, and do not only hold more of them."""
    work = _target_work(observed, cells, seconds, member)
    if work.own.all() or not work.own.any():
        return True
    return median(work.cost[work.own]) >= observed.limits.slower * work.usual


def _repair_sessions(cells: Cells, member: Flags, seconds: Floats) -> Floats:
    """Let members take what the middle one of their peers with the same work takes."""
    own = seconds[cells.phase, cells.rank]
    names, middle = medians_by(cells.work[~member], own[~member])
    place = np.minimum(np.searchsorted(names, cells.work), len(names) - 1)
    has_peers = names[place] == cells.work
    typical = np.exp(np.log(np.maximum(own, 1e-12)) - cells.level)
    peers = np.where(has_peers, middle[place], typical)
    repaired = seconds.copy()
    repaired[cells.phase[member], cells.rank[member]] = np.minimum(own, peers)[member]
    return repaired


def _comparison_rows(observed: Observed, changed: Flags) -> tuple[Flags, Flags]:
    """The affected calls, and those of others in the same phases, of the same kind and size."""
    moves = changed & observed.rows.moves_data
    slow = moves if moves.any() else changed
    same = np.isin(observed.phase, observed.phase[slow])
    same &= np.isin(observed.service.classes, observed.service.classes[slow])
    return slow, same & ~changed


def _own_place(observed: Observed, slow: Flags) -> dict[str, Any]:
    """The directory, or else the files, that only the slow ranks use, without a layout."""
    if len(observed.pieces.targets):
        return {}
    file = observed.rows.file
    known = (file >= 0) & ~observed.of_programs
    ranks = unique(observed.rows.rank[slow])
    theirs = known & np.isin(observed.rows.rank, ranks)
    mine, others = unique(file[theirs]), unique(file[known & ~theirs])
    only = np.setdiff1d(mine, others)
    if not len(only):
        return {}
    paths = [observed.files.path(int(f)) for f in only[:1000]]
    directories = {path.rpartition("/")[0] for path in paths}
    elsewhere = {observed.files.path(int(f)).rpartition("/")[0] for f in others[:5000]}
    if len(directories) == 1 and not directories & elsewhere:
        return {"directory": directories.pop()}
    return {"files": paths[:MAX_PARTS]}


def _slow_calls(observed: Observed) -> Proposal | None:
    """Targets, nodes or ranks whose calls take longer."""
    if not len(observed.pieces.targets) and (observed.shared_file & observed.rows.moves_data).any():
        return None  # calls may queue on the shared file: sessions are compared instead
    seconds = observed.rows.seconds.copy()
    repaired = _repair_parts(
        seconds,
        partial(call_cells, observed),
        partial(_slowest_call_part, observed),
        partial(_repair_calls, observed),
        lambda state: float(_phase_seconds(observed, state).sum()),
    )
    if repaired is None:
        return None
    parts, test, after = repaired
    changed = after < seconds
    share = np.divide(after, seconds, out=np.ones(len(seconds)), where=seconds > 0)
    change = _change(observed, observed.own * share, changed)
    compared = changed, ~changed & observed.rows.moves_data
    facts = _facts(observed, observed.by_rank(observed.own), changed)
    return _proposal(observed, (parts, test), changed, change, compared, facts)


def _phase_seconds(observed: Observed, seconds: Floats) -> Floats:
    """How long each phase lasts when calls take these seconds: as long as its slowest rank."""
    duration = observed.rows.seconds
    share = np.divide(seconds, duration, out=np.zeros(len(duration)), where=duration > 0)
    return np.minimum(
        observed.stall, observed.busiest_rank(observed.own * share) + observed.waiting
    )


def _slowest_call_part(
    observed: Observed, cells: Cells, named: list[Part], _: Floats
) -> tuple[Part, float] | None:
    """Of the parts that are slower than chance, the one that explains most."""
    limits, slower = observed.limits, _slower_parts(observed, cells, named)
    tested = [(part, _call_chance(observed, cells, part)) for part in slower]
    scored = [
        (_explained_variance(cells, p.member), p, x) for p, x in tested if x <= limits.significance
    ]
    if not scored:
        return None
    most = max(score for score, _, _ in scored)
    near = [entry for entry in scored if entry[0] >= limits.same_explanation * most]
    return max(near, key=lambda entry: (-entry[1].preference, entry[0]))[1:]


def _call_chance(observed: Observed, cells: Cells, part: Part) -> float:
    """The likelier of two: chance between cells, chance between parts of this kind."""
    limits = observed.limits
    if part.code == "slow-target" and len(part.peers):
        few = _few_as_slow(observed, part)
        peers = part.peers[part.peers < part.level - np.log(limits.slower)] if few else part.peers
        if not len(peers) or part.level < median(peers) + np.log(limits.slower):
            return 1.0  # its calls only wait longer: more data is on it
    test = rank_test(cells.level[part.member], cells.level[_healthy_cells(observed, cells, part)])
    test *= number_of_parts(observed)
    if len(part.peers) < limits.min_peers:
        return min(1.0, test)
    outlier = outlier_test(part.level, part.peers, min_spread=limits.part_spread)
    return min(1.0, max(test, outlier * (len(part.peers) + 1)))


def _few_as_slow(observed: Observed, part: Part) -> bool:
    """Whether at most half of the parts of this kind are as slow as this one."""
    as_slow = int((part.peers > part.level - np.log(observed.limits.slower)).sum())
    return as_slow + 1 <= 0.5 * (len(part.peers) + 1)


def _healthy_cells(observed: Observed, cells: Cells, part: Part) -> Flags:
    """Cells to compare with: not of the part, nor of others as slow where those are few."""
    outside = ~part.member
    if not _few_as_slow(observed, part):
        return outside
    level = median(cells.level[part.member]) - np.log(observed.limits.slower)
    healthy = outside & (cells.level < level)
    return healthy if healthy.sum() >= 0.5 * outside.sum() else outside


def _explained_variance(cells: Cells, member: Flags) -> float:
    """How much of the cells' differences disappears when a part has a separate level."""
    level = cells.level
    total = np.abs(level - median(level)).sum()
    rest = np.abs(level[member] - median(level[member])).sum()
    rest += np.abs(level[~member] - median(level[~member])).sum()
    return max(0.0, float(total - rest)) / max(float(total), 1e-12)


def _repair_calls(observed: Observed, cells: Cells, member: Flags, seconds: Floats) -> Floats:
    """Let the calls of a part take what their peers take, class by class."""
    inside = cell_rows(observed, cells, member)
    peers = (cells.of_call >= 0) & ~inside
    repaired, classes = seconds.copy(), observed.service.classes
    overall = median(cells.level[member]) - median(cells.level[~member])
    for name in unique(classes[inside]):
        own, others = inside & (classes == name), peers & (classes == name)
        ratio = np.exp(-overall)
        if others.sum() >= 5:
            usual, spent = median(seconds[others]), median(seconds[own])
            ratio = usual / spent if spent > 0 else 1.0
        repaired[own] = seconds[own] * min(1.0, ratio)
    return repaired


def _in_turn(observed: Observed, slow: Flags) -> float:
    """How many requests the middle one of the affected ranks had served one after the other.

    Ranks that wait for one part at the same moment, once, saw one incident: it may not last.
    """
    rows = observed.rows
    slow = slow & (rows.rank >= 0)
    requests = np.maximum(rows.count[slow], rows.bytes[slow] / observed.limits.block)
    served = np.bincount(rows.rank[slow], requests)
    return median(served[served > 0]) if slow.any() else 0.0
