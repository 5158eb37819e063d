"""A storage target, a node or ranks that do the same work slower than the others.

Codes: slow-target, slow-node, slow-rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ioprism.diagnosis.checks.sessions import (
    MAX_PARTS,
    Cells,
    Part,
    call_cells,
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
)
from ioprism.diagnosis.targets import MIN_CALLS, mean_service
from ioprism.model.verdict import Decision

SAME_EXPLANATION = 0.98  # of the explained differences: parts that coincide
CLEARLY_MORE = 1.15  # times another saving
RECORD = Decision(
    "record every call, so that ranks are compared request by request",
    "export DXT_ENABLE_IO_TRACE=1",
)
REPEAT = Decision(
    "run it three times: what was chance does not come again",
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
    gains = [_gain(observed, one) for one in (by_call, by_session)]
    yield by_session if gains[1] > (CLEARLY_MORE if same else 1.0) * gains[0] else by_call


def _gain(observed: Observed, proposal: Proposal) -> float:
    chain = observed.own if proposal.change is None else proposal.change.likely.chain
    return float((observed.busiest_rank(observed.own) - observed.busiest_rank(chain)).sum())


def _slow_sessions(observed: Observed) -> Proposal | None:
    """Ranks, nodes or targets whose sessions take longer."""
    if not (observed.rows.rank >= 0).any():
        return None
    seconds = session_seconds(observed)
    repaired, cells = [seconds], session_cells(observed, seconds)
    parts: list[Part] = []
    tests: list[float] = []
    for _ in range(MAX_PARTS):
        worst = _slowest_session_part(observed, cells, parts, repaired[-1])
        if worst is None:
            break
        parts.append(worst[0])
        tests.append(worst[1])
        repaired.append(_repair_sessions(cells, worst[0].member, repaired[-1]))
        cells = session_cells(observed, repaired[-1])
    gains = [float((a.max(axis=1) - b.max(axis=1)).sum()) for a, b in pairwise(repaired)]
    if not parts or sum(gains) <= 0:
        return None
    count = worth_naming(gains)
    after = repaired[count]
    ratio = np.divide(after, seconds, out=np.ones_like(seconds), where=seconds > 0)
    if not _serves_slower(observed, np.flatnonzero((ratio < 1).any(axis=0))):
        return None
    own = observed.rows.rank >= 0
    factor = np.where(own, ratio[observed.phase, np.maximum(observed.rows.rank, 0)], 1.0)
    changed = factor < 1
    code, culprit = joint_culprit(observed, parts[:count])
    culprit |= _own_place(observed, changed) | observed.task(changed)
    slow, peers = _comparison_rows(observed, changed)
    facts = _facts(observed, seconds, changed)
    usual = facts["peer_seconds"]
    return Proposal(
        code,
        culprit,
        changed,
        _change(observed, observed.own * factor, changed, _shared_limit(after)),
        max(tests[:count]),
        contrast(observed, slow, peers, code),
        REPEAT if observed.per_call else RECORD,
        facts | ({"ratio": facts["slow_seconds"] / usual} if usual > 0 else {}),
    )


def _serves_slower(observed: Observed, ranks: Ints) -> bool:
    """Whether some ranks are served slower, rather than being the last in a queue.

    Ranks that queue for one server end one service time after each other, also the last one.
    Counters do not show the queue: with few peers, it may explain the difference.
    """
    theirs = np.isin(observed.rows.rank, ranks)
    inferred = float(observed.own[theirs & observed.rows.inferred].sum())
    if not observed.per_call or inferred > 0.5 * float(observed.own[theirs].sum()):
        return observed.io_ranks - len(ranks) >= observed.limits.min_peers
    served = departures(observed.rows, np.zeros(len(observed.rows), np.int64))
    by_rank = observed.by_rank(served).sum(axis=0)
    others = np.delete(by_rank, ranks)
    others = others[others > 0]
    return not len(others) or by_rank[ranks].mean() >= observed.limits.slower * others.mean()


def _change(observed: Observed, chain: Floats, changed: Flags, best_floor: Floats | None) -> Change:
    """Slow calls take what peers take; healthy targets may become the limit then."""
    occupied, own = observed.service.occupied, observed.own
    if observed.per_call:
        work = np.where(changed, np.minimum(occupied, chain), occupied)
        work = _healthy_work(observed, work, changed)
    else:  # a target is busy for as much less as its calls take less
        work = occupied * np.divide(chain, own, out=np.ones(len(own)), where=own > 0)
    known = len(observed.pieces.targets) > 0
    likely = Scenario(chain, work * float(np.mean(observed.service.doubt)) if known else None)
    worst = Scenario(chain, work if known else None)
    best = (
        Scenario(chain)
        if best_floor is None
        else Scenario(np.minimum(chain, best_floor[observed.phase]))
    )
    return Change(likely, worst, best)


def _shared_limit(after: Floats) -> Floats:
    """The middle rank's seconds of each phase: peers may wait behind the slow part as well."""
    taking_part = np.where(after > 0, after, np.nan)
    rows = [np.nanmedian(row) if (row > 0).any() else 0.0 for row in taking_part]
    return np.asarray(rows, np.float64)


def _healthy_work(observed: Observed, work: Floats, changed: Flags) -> Floats:
    """Seconds that rows occupy targets at the speed of healthy ones."""
    service, rows = observed.service, work.copy()
    healthy = ~changed & ~service.idle & np.isfinite(service.observed)
    for name in np.unique(service.classes[healthy]):
        some = service.classes == name
        chosen = some & healthy
        if chosen.sum() >= MIN_CALLS:
            typical = mean_service(service.observed[chosen], observed.pieces.group[chosen])
            rows[some] = np.minimum(rows[some], typical)
    return rows


def _facts(observed: Observed, seconds: Floats, changed: Flags) -> dict[str, Any]:
    ranks = np.unique(observed.rows.rank[changed])
    total = seconds.sum(axis=0)
    others = np.setdiff1d(np.flatnonzero(total > 0), ranks)
    return {
        "targets": len(observed.pieces.targets),
        "nodes": len(observed.hosts),
        "slow_seconds": float(np.median(total[ranks])),
        "peer_seconds": float(np.median(total[others])) if len(others) else 0.0,
    }


def _slowest_session_part(
    observed: Observed, cells: Cells, named: list[Part], seconds: Floats
) -> tuple[Part, float] | None:
    """The part that explains most of what sessions differ in, if that is not chance."""
    limits, known = observed.limits, [part.culprit for part in named]
    slower = [
        part
        for part in slowest_parts(observed, cells, by_calls=False)
        if (not named or part.code == named[0].code)
        and part.culprit not in known
        and _step(cells, part.member) >= np.log(limits.slower)
        and _in_turn(observed, _rows_of(observed, cells, part.member)) >= limits.min_in_turn
    ]
    # Ranks whose target only has more to do than others are not slower themselves.
    busy = [
        part.member
        for part in slower
        if part.code == "slow-target" and not _slow_per_byte(observed, cells, part.member, seconds)
    ]
    slower = [part for part in slower if not any(_is_inside(part.member, one) for one in busy)]
    shares = [_explained_variance(cells, part.member) for part in slower]
    if not any(shares):
        return None
    near = [p for p, e in zip(slower, shares, strict=True) if e >= SAME_EXPLANATION * max(shares)]
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
    return max(alone, rank_test(cells.level[part.member], cells.level[healthy]))


def _rows_of(observed: Observed, cells: Cells, member: Flags) -> Flags:
    """The rows of some sessions."""
    inside = np.zeros((len(observed.phases), observed.io_ranks), np.bool_)
    inside[cells.phase[member], cells.rank[member]] = True
    own = observed.rows.rank >= 0
    return own & inside[observed.phase, np.maximum(observed.rows.rank, 0)]


def _is_incident(observed: Observed, cells: Cells, member: Flags) -> bool:
    """Whether one call holds most of what members take longer: it may not happen again."""
    slow = _rows_of(observed, cells, member)
    spent = float(observed.own[slow].sum())
    usual = spent * float(np.exp(-np.median(cells.level[member])))
    longest = float(
        np.where(observed.rows.inferred, 0.0, observed.rows.longest)[slow].max(initial=0.0)
    )
    return longest > MAJORITY * (spent - usual)


def _is_inside(member: Flags, whole: Flags) -> bool:
    return float((member & whole).sum()) >= DOMINANT * float(member.sum())


def _step(cells: Cells, member: Flags) -> float:
    """By how much members are above the others, as logarithm; 0 without others."""
    if member.all() or not member.any():
        return 0.0
    return float(np.median(cells.level[member]) - np.median(cells.level[~member]))


def _slow_per_byte(observed: Observed, cells: Cells, member: Flags, seconds: Floats) -> bool:
    """Whether members' targets need longer for each byte, and do not only hold more of them."""
    moved = observed.by_rank(observed.rows.bytes.astype(np.float64))[cells.phase, cells.rank]
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
    usual = float(np.median(cost[~own & some]))
    return float(np.median(cost[own & some])) >= observed.limits.slower * usual


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
    ranks = np.unique(observed.rows.rank[slow])
    theirs = known & np.isin(observed.rows.rank, ranks)
    mine, others = np.unique(file[theirs]), np.unique(file[known & ~theirs])
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
    """Take the slowest part by call, repair it, look again."""
    seconds = observed.rows.seconds.copy()
    cells = call_cells(observed, seconds)
    if cells is None:
        return None
    if not len(observed.pieces.targets) and (observed.shared_file & observed.rows.moves_data).any():
        return None  # calls may queue on the shared file: sessions are compared instead
    parts: list[Part] = []
    tests: list[float] = []
    states = [seconds]
    for _ in range(MAX_PARTS):
        worst = _slowest_call_part(observed, cells, parts)
        if worst is None:
            break
        parts.append(worst[0])
        tests.append(worst[1])
        states.append(_repair_calls(observed, cells, worst[0].member, states[-1]))
        cells = call_cells(observed, states[-1]) or cells
    totals = [float(_phase_seconds(observed, state).sum()) for state in states]
    gains = [before - after for before, after in pairwise(totals)]
    if not parts or sum(gains) <= 0:
        return None
    count = worth_naming(gains)
    changed = states[count] < seconds
    code, culprit = joint_culprit(observed, parts[:count])
    culprit |= _own_place(observed, changed) | observed.task(changed)
    share = np.divide(states[count], seconds, out=np.ones(len(seconds)), where=seconds > 0)
    return Proposal(
        code,
        culprit,
        changed,
        _change(observed, observed.own * share, changed, None),
        max(tests[:count]),
        contrast(observed, changed, ~changed & observed.rows.moves_data, code),
        REPEAT if observed.per_call else RECORD,
        _facts(observed, observed.by_rank(observed.own), changed),
    )


def _phase_seconds(observed: Observed, seconds: Floats) -> Floats:
    """How long each phase lasts when calls take these seconds: as long as its slowest rank."""
    duration = observed.rows.seconds
    share = np.divide(seconds, duration, out=np.zeros(len(duration)), where=duration > 0)
    return np.minimum(
        observed.stall, observed.busiest_rank(observed.own * share) + observed.waiting
    )


def _slowest_call_part(
    observed: Observed, cells: Cells, named: list[Part]
) -> tuple[Part, float] | None:
    """Of the parts that are slower than chance, the one that explains most.

    After a first part only further ones of its kind are considered.
    """
    limits, known = observed.limits, [part.culprit for part in named]
    tested = [
        (part, _call_chance(observed, cells, part))
        for part in slowest_parts(observed, cells, by_calls=True)
        if (not named or part.code == named[0].code)
        and part.culprit not in known
        and _step(cells, part.member) >= np.log(limits.slower)
        and _in_turn(observed, (cells.of_call >= 0) & part.member[np.maximum(cells.of_call, 0)])
        >= limits.min_in_turn
    ]
    scored = [
        (_explained_variance(cells, p.member), p, x) for p, x in tested if x <= limits.significance
    ]
    if not scored:
        return None
    most = max(score for score, _, _ in scored)
    near = [entry for entry in scored if entry[0] >= SAME_EXPLANATION * most]
    _, part, p_value = max(near, key=lambda entry: (-entry[1].preference, entry[0]))
    return part, p_value


def _call_chance(observed: Observed, cells: Cells, part: Part) -> float:
    """The likelier of two: chance between cells, chance between parts of this kind."""
    limits = observed.limits
    if part.code == "slow-target" and len(part.peers):
        few = _few_as_slow(observed, part)
        peers = part.peers[part.peers < part.level - np.log(limits.slower)] if few else part.peers
        if not len(peers) or part.level < np.median(peers) + np.log(limits.slower):
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
    level = float(np.median(cells.level[part.member])) - np.log(observed.limits.slower)
    healthy = outside & (cells.level < level)
    return healthy if healthy.sum() >= 0.5 * outside.sum() else outside


def _explained_variance(cells: Cells, member: Flags) -> float:
    """How much of the cells' differences disappears when a part has a separate level."""
    level = cells.level
    total = np.abs(level - np.median(level)).sum()
    rest = np.abs(level[member] - np.median(level[member])).sum()
    rest += np.abs(level[~member] - np.median(level[~member])).sum()
    return max(0.0, float(total - rest)) / max(float(total), 1e-12)


def _repair_calls(observed: Observed, cells: Cells, member: Flags, seconds: Floats) -> Floats:
    """Let the calls of a part take what their peers take, class by class."""
    inside = (cells.of_call >= 0) & member[np.maximum(cells.of_call, 0)]
    peers = (cells.of_call >= 0) & ~inside
    repaired, classes = seconds.copy(), observed.service.classes
    overall = np.median(cells.level[member]) - np.median(cells.level[~member])
    for name in np.unique(classes[inside]):
        own, others = inside & (classes == name), peers & (classes == name)
        ratio = np.exp(-overall)
        if others.sum() >= 5:
            usual, spent = np.median(seconds[others]), np.median(seconds[own])
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
    return float(np.median(served[served > 0])) if slow.any() else 0.0
