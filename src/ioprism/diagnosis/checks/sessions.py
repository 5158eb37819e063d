"""What each rank takes in each phase, compared with others that do the same work.

A session is one rank's I/O in one phase. Where writes are buffered, most return immediately and a
few wait for all that came before, or the sync and the close do: the sum of a session shows what
its parts do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.diagnosis.limits import MINOR, NEGLIGIBLE
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rows import (
    Flags,
    Floats,
    Ints,
    departures,
    first_of_each,
    medians_by,
    unique,
)
from ioprism.diagnosis.targets import TargetPieces
from ioprism.model.arrays import median

SIZE_STEPS = 4  # classes of work for each factor of two in bytes


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Groups of calls with one level each: how long they take against the same work elsewhere."""

    phase: Ints
    rank: Ints
    group: Ints  # set of targets; -1 unknown
    level: Floats  # log of seconds over those of peers
    work: Ints  # class of work
    of_call: Ints  # cell of each row; -1 for others
    by_calls: bool = True  # else by session


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
    main[order] = before < (1 - NEGLIGIBLE) * max(float(observed.stall.sum()), 1e-12)
    return main


def work_classes(observed: Observed, phase: Ints, rank: Ints) -> Ints:
    """A number for the amount of work of each session: its bytes and calls."""
    moved = observed.by_rank(observed.rows.bytes.astype(np.float64))[phase, rank]
    calls = observed.by_rank(observed.rows.count)[phase, rank]
    size = np.where(moved > 0, (SIZE_STEPS * np.log2(np.maximum(moved, 1))).round(), -1)
    return (size.astype(np.int64) + 1) * 64 + _call_classes(calls)


def _call_classes(calls: Floats) -> Ints:
    """Number sessions by how many calls they make; a new class begins at each wide gap.

    That is twice as many. Fixed limits would part ranks that do the same but for a call or two.
    """
    order = np.argsort(calls, kind="stable")
    ordered = np.maximum(calls[order], 1.0)
    classes = np.zeros(len(order), np.int64)
    classes[order[1:]] = np.cumsum(ordered[1:] >= 2 * ordered[:-1])
    return classes


def session_cells(observed: Observed, seconds: Floats) -> Cells:
    """What each rank takes in each phase against others of the phase with the same work."""
    phase, rank = np.nonzero((seconds > 0) & main_phases(observed)[:, None])
    work = phase * 65536 + work_classes(observed, phase, rank)
    log = np.log(seconds[phase, rank])
    names, middle = medians_by(work, log)
    level = log - middle[np.searchsorted(names, work)]
    none = np.full(len(observed.rows), -1, np.int64)
    return Cells(phase, rank, _main_group(observed)[phase, rank], level, work, none, by_calls=False)


def cell_rows(observed: Observed, cells: Cells, member: Flags) -> Flags:
    """The rows of some cells: of calls, or of sessions."""
    if cells.by_calls:
        return (cells.of_call >= 0) & member[np.maximum(cells.of_call, 0)]
    inside = np.zeros((len(observed.phases), observed.io_ranks))
    inside[cells.phase[member], cells.rank[member]] = 1.0
    return observed.of_sessions(inside, 0.0) > 0


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
    pairs = unique(place * observed.io_ranks + np.maximum(observed.rows.rank, 0))
    count = np.bincount(pairs // observed.io_ranks, minlength=len(names))
    return np.asarray(count[place] > 1)


MAX_PARTS = 8  # of each kind that are compared closely, and that may be slow together


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Cells that share a target, a host or a rank."""

    code: str
    culprit: dict[str, Any]
    member: Flags  # by cell
    preference: int  # which name to take where parts coincide: lowest
    level: float  # median of its cells
    peers: Floats  # levels of the other parts of its kind


def slowest_parts(observed: Observed, cells: Cells) -> list[Part]:
    """Return the slowest targets, nodes and ranks."""
    host = observed.host_of[cells.rank]
    return [
        *_target_parts(observed, cells),
        *_partition(cells, host, "slow-node", 1, lambda n: {"host": observed.hosts[n]}),
        *_partition(
            cells,
            cells.rank,
            "slow-rank",
            2,
            lambda n: {"ranks": [int(observed.rank_numbers[n])]},
        ),
    ]


def _partition(
    cells: Cells,
    key: Ints,
    code: str,
    preference: int,
    culprit: Any,  # noqa: ANN401
) -> Iterator[Part]:
    known = key >= 0
    if not known.any():
        return
    names, levels = medians_by(key[known], cells.level[known])
    if len(names) < 2:
        return
    for place in np.argsort(-levels)[:MAX_PARTS]:
        member = key == names[place]
        others = np.delete(levels, place)
        yield Part(code, culprit(int(names[place])), member, preference, levels[place], others)


def _target_parts(observed: Observed, cells: Cells) -> Iterator[Part]:
    """Targets; those that are always used together cannot be told apart and are one part."""
    pieces = observed.pieces
    if len(pieces.targets) < 2 or not len(pieces.call):
        return
    touches, leads = _targets_of_pieces(pieces)
    busy = _busy_levels(observed) if cells.by_calls else _cell_levels(cells, touches)
    seen: set[bytes] = set()
    # A target that holds the first byte of calls comes first among those used together.
    for target in sorted(
        range(len(busy)), key=lambda t: (-round(float(busy[t]), 2), not leads[t], t)
    ):
        pattern = touches[target].tobytes()
        if not touches[target].any() or pattern in seen or len(seen) >= MAX_PARTS:
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


def _targets_of_pieces(pieces: TargetPieces) -> tuple[Flags, Flags]:
    """Which sets of targets each target belongs to, and whether it holds calls' first bytes."""
    touches = np.zeros((len(pieces.targets), int(pieces.group.max()) + 1), np.bool_)
    touches[pieces.target, pieces.group[pieces.call]] = True
    leads = np.zeros(len(pieces.targets), np.bool_)
    leads[pieces.first[pieces.group >= 0]] = True
    return touches, leads


def _cell_levels(cells: Cells, touches: Flags) -> Floats:
    """The median of the cells that use each target; minus infinity where none does."""
    levels = np.full(len(touches), -np.inf)
    for target, groups in enumerate(touches):
        member = (cells.group >= 0) & groups[np.maximum(cells.group, 0)]
        if member.any():
            levels[target] = median(cells.level[member])
    return levels


def _busy_levels(observed: Observed) -> Floats:
    """How long each target is busy for what it has to do, as logarithm.

    Work is conserved whatever the order in which a target serves: the time that it is busy over
    what it does shows its speed, and does not depend on how many calls wait. A call is as slow
    as its slowest target: of the sets of targets that it is used in, the quickest counts.
    """
    pieces, rows, count = observed.pieces, observed.rows, len(observed.pieces.targets)
    groups = int(pieces.group.max()) + 1
    order = np.lexsort((rows.end[pieces.call], pieces.target))
    call, target = pieces.call[order], pieces.target[order]
    before = np.concatenate(([-np.inf], rows.end[call][:-1]))
    before[first_of_each(target)] = -np.inf
    busy = np.maximum(0.0, rows.end[call] - np.maximum(rows.start[call], before))
    pair, size = target * groups + pieces.group[call], count * groups
    seconds = np.bincount(pair, busy, minlength=size).reshape(count, groups)
    expected = np.bincount(pair, observed.service.occupied[call], minlength=size).reshape(
        count, groups
    )
    enough = expected >= observed.limits.few * expected.max(axis=1, keepdims=True)
    ratio = np.where(enough, np.maximum(seconds, 1e-9) / np.maximum(expected, 1e-9), np.inf)
    return np.asarray(np.log(ratio.min(axis=1)), np.float64)


def number_of_parts(observed: Observed) -> int:
    """How many parts there are to suspect."""
    return len(observed.pieces.targets) + len(observed.hosts) + observed.io_ranks


def worth_naming(gains: list[float]) -> int:
    """How many of the parts, repaired one after the other, are worth naming.

    Of several equally slow parts, repairing all but the last saves nothing.
    """
    total, count = sum(gains), len(gains)
    while count > 1 and gains[count - 1] < MINOR * total:
        count -= 1
    return count


def joint_culprit(observed: Observed, parts: list[Part]) -> tuple[str, dict[str, Any]]:
    """Return the code and the name of several slow parts of one kind."""
    code, culprit = parts[0].code, dict(parts[0].culprit)
    if len(parts) == 1:
        return code, culprit
    if code == "slow-target":
        names = (part.culprit.get("targets", [part.culprit["target"]]) for part in parts)
        culprit["targets"] = sorted({name for some in names for name in some})
    elif code == "slow-node":
        culprit["hosts"] = sorted(part.culprit["host"] for part in parts)
    else:
        culprit["ranks"] = sorted(rank for part in parts for rank in part.culprit["ranks"])
        host = _only_host(observed, culprit["ranks"])
        return ("slow-node", {"host": host, **culprit}) if host is not None else (code, culprit)
    return code, culprit


def _only_host(observed: Observed, ranks: list[int]) -> str | None:
    """The node whose ranks these are, all that their applications have there and no others.

    A workflow's node may be slow while one application runs: its other ranks do not show it.
    """
    slow = np.isin(observed.rank_numbers, ranks)
    names = np.array(observed.applications or [""] * observed.io_ranks)
    peers = np.isin(names, names[slow])
    hosts = unique(observed.host_of[slow])
    there = peers & np.isin(observed.host_of, hosts)
    if len(hosts) != 1 or hosts[0] < 0 or not (there == slow).all() or not (peers & ~slow).any():
        return None
    return observed.hosts[int(hosts[0])]
