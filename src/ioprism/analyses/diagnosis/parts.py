"""The parts of a system that calls pass: storage targets, nodes, ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.cells import Cells
from ioprism.analyses.diagnosis.situation import Situation, medians_by
from ioprism.analyses.diagnosis.target_pieces import TargetPieces
from ioprism.records import dataclass

ENOUGH_WORK = 0.2  # of a target's largest share of work, for a set of targets to tell of it
MINOR = 0.1  # of what mending all slow parts saves
REPEATED = 4  # requests one after the other: what is slow only once may not be a part
REQUEST = 2**20  # bytes: file systems cut larger calls into such requests
SUSPECTS = 8  # parts of each kind that are looked at closely: the slowest


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Cells that share a target, a host or a rank."""

    code: str
    culprit: dict[str, Any]
    member: Flags  # by cell
    preference: int  # which name to take where parts coincide: lowest
    level: float  # median of its cells
    peers: Floats  # levels of the other parts of its kind

    @property
    def targets(self) -> list[Any]:
        """The targets, for a part of storage."""
        return list(self.culprit.get("targets", [self.culprit["target"]]))


def slowest_parts(at: Situation, cells: Cells, *, by_calls: bool = True) -> list[Part]:
    """Return the slowest targets, nodes and ranks.

    Targets are ordered by how long they are busy for their calls, or else by their cells.
    """
    host = at.seen.host_of[cells.rank]
    return [
        *_targets(at, cells, by_calls=by_calls),
        *_partition(cells, host, "slow-node", 1, lambda n: {"host": at.seen.hosts[n]}),
        *_partition(
            cells, cells.rank, "slow-rank", 2,
            lambda n: {"ranks": [int(at.seen.rank_numbers[n])]},
        ),
    ]  # fmt: skip


def in_turn(at: Situation, slow: Flags) -> float:
    """How many requests the middle one of the ranks concerned had served one after the other.

    Ranks that wait for one part at the same moment, once, saw one incident: it may not last.
    """
    requests = np.maximum(1.0, at.calls.bytes[slow] / REQUEST)
    served = np.bincount(at.calls.rank[slow], requests)
    return float(np.median(served[served > 0])) if slow.any() else 0.0


def number_of_parts(at: Situation) -> int:
    """How many parts there are to suspect."""
    return len(at.pieces.targets) + len(at.seen.hosts) + at.ranks


def _partition(
    cells: Cells, key: Ints, code: str, preference: int, culprit: Any  # noqa: ANN401
) -> Iterator[Part]:  # fmt: skip
    known = key >= 0
    if not known.any():
        return
    names, levels = medians_by(key[known], cells.level[known])
    if len(names) < 2:
        return
    for place in np.argsort(-levels)[:SUSPECTS]:
        member = key == names[place]
        others = np.delete(levels, place)
        yield Part(code, culprit(int(names[place])), member, preference, levels[place], others)


def _targets(at: Situation, cells: Cells, *, by_calls: bool) -> Iterator[Part]:
    """Targets; those that are always used together cannot be told apart and are one part."""
    pieces = at.pieces
    if len(pieces.targets) < 2 or not len(pieces.call):
        return
    touches, leads = _touched(pieces)
    busy = busy_levels(at) if by_calls else _cell_levels(cells, touches)
    seen: set[bytes] = set()
    # A target that holds the first byte of calls comes first among those used together.
    for target in sorted(
        range(len(busy)), key=lambda t: (-round(float(busy[t]), 2), not leads[t], t)
    ):
        pattern = touches[target].tobytes()
        if not touches[target].any() or pattern in seen or len(seen) >= SUSPECTS:
            continue
        seen.add(pattern)
        together = np.flatnonzero((touches == touches[target]).all(axis=1))
        first = min(together, key=lambda t: (not leads[t], t))
        culprit: dict[str, Any] = {"target": pieces.targets[first]}
        if len(together) > 1:
            culprit["targets"] = [pieces.targets[other] for other in together]
        member = (cells.group >= 0) & touches[target][np.maximum(cells.group, 0)]
        if member.any() and not member.all():
            level = float(busy[together].max())
            yield Part("slow-target", culprit, member, 0, level, np.delete(busy, together))


def _touched(pieces: TargetPieces) -> tuple[Flags, Flags]:
    """Which sets of targets each target belongs to, and whether it holds calls' first bytes."""
    touches = np.zeros((len(pieces.targets), int(pieces.group.max()) + 1), np.bool_)
    touches[pieces.target, pieces.group[pieces.call]] = True
    leads = np.zeros(len(pieces.targets), np.bool_)
    leads[pieces.first[pieces.known]] = True
    return touches, leads


def _cell_levels(cells: Cells, touches: Flags) -> Floats:
    """The median of the cells that use each target; minus infinity where none does."""
    levels = np.full(len(touches), -np.inf)
    for target, groups in enumerate(touches):
        member = (cells.group >= 0) & groups[np.maximum(cells.group, 0)]
        if member.any():
            levels[target] = np.median(cells.level[member])
    return levels


def busy_levels(at: Situation) -> Floats:
    """How long each target is busy for what it has to do, as logarithm.

    Work is conserved whatever the order in which a target serves: the time that it is busy over
    what it does then tells its speed, and does not depend on how many calls wait. A call is as
    slow as its slowest target: of the sets of targets that it is used in, the quickest counts.
    """
    pieces, count = at.pieces, len(at.pieces.targets)
    groups = int(pieces.group.max()) + 1
    order = np.lexsort((at.calls.end[pieces.call], pieces.target))
    call, target = pieces.call[order], pieces.target[order]
    before = np.concatenate(([-np.inf], at.calls.end[call][:-1]))
    before[np.concatenate(([True], target[1:] != target[:-1]))] = -np.inf
    busy = np.maximum(0.0, at.calls.end[call] - np.maximum(at.calls.start[call], before))
    pair, size = target * groups + pieces.group[call], count * groups
    seconds = np.bincount(pair, busy, minlength=size).reshape(count, groups)
    expected = np.bincount(pair, at.queues.held[call], minlength=size).reshape(count, groups)
    enough = expected >= ENOUGH_WORK * expected.max(axis=1, keepdims=True)
    ratio = np.where(enough, np.maximum(seconds, 1e-9) / np.maximum(expected, 1e-9), np.inf)
    return np.asarray(np.log(ratio.min(axis=1)), np.float64)


def kept_parts(gains: list[float]) -> int:
    """How many of the parts, mended one after the other, are worth naming.

    The last ones are not if they save next to nothing; the first ones are: of two parts that are
    equally slow, mending one alone saves nothing.
    """
    total, count = sum(gains), len(gains)
    while count > 1 and gains[count - 1] < MINOR * total:
        count -= 1
    return count


def joint_culprit(at: Situation, found: list[Part]) -> tuple[str, dict[str, Any]]:
    """Return the code and the name of several slow parts of one kind."""
    code, culprit = found[0].code, dict(found[0].culprit)
    if len(found) == 1:
        return code, culprit
    if code == "slow-target":
        culprit["targets"] = sorted({name for part in found for name in part.targets})
    elif code == "slow-node":
        culprit["hosts"] = sorted(part.culprit["host"] for part in found)
    else:
        culprit["ranks"] = sorted(rank for part in found for rank in part.culprit["ranks"])
        host = _only_host(at, culprit["ranks"])
        return ("slow-node", {"host": host, **culprit}) if host is not None else (code, culprit)
    return code, culprit


def _only_host(at: Situation, ranks: list[int]) -> str | None:
    """The node whose ranks these are, all that their applications have there and no others.

    A workflow's node may be slow while one application runs: its other ranks show nothing of it.
    """
    slow = np.isin(at.seen.rank_numbers, ranks)
    names = np.array(at.seen.applications or [""] * at.ranks)
    peers = np.isin(names, names[slow])
    hosts = np.unique(at.seen.host_of[slow])
    there = peers & np.isin(at.seen.host_of, hosts)
    if len(hosts) != 1 or hosts[0] < 0 or not (there == slow).all() or not (peers & ~slow).any():
        return None
    return at.seen.hosts[int(hosts[0])]
