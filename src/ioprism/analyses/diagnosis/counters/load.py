"""Targets and ranks in counters: slow ones, and those with more than their share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.counters.counted import LEAST_SECONDS, Counted
from ioprism.analyses.diagnosis.counters.heat import totals
from ioprism.analyses.diagnosis.counters.records import Record
from ioprism.analyses.diagnosis.limits import (
    FAST,
    FEWEST_PEERS,
    HEAVY,
    LEAST,
    LIKELY,
    MANY,
    MOST,
    SERIAL,
    SLOWER,
    SPREAD,
    UNEVEN,
    even_placement,
    useful_targets,
)
from ioprism.analyses.diagnosis.middle import median
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test, rank_test

FEWEST_FILES = 4  # on targets, for one target to stand out


def find(at: Counted) -> Iterator[Candidate]:
    """Find slow and busy targets, and ranks with more than their share."""
    serial = list(_serial(at))
    yield from serial
    if serial:
        return
    slow = [one for one in _slow_target(at) if one.p_value <= SIGNIFICANT]
    uneven = list(_imbalance(at))
    yield from (*slow, *uneven)
    if not slow and not uneven:
        yield from _hot_target(at)


def _serial(at: Counted) -> Iterator[Candidate]:
    """One rank moves the data of all."""
    moving = [one for one in at.records if one.moved]
    if at.ranks < MANY or not moving or any(one.shared for one in moving):
        return
    moved = at.by_rank(lambda one: one.moved, moving)
    rank = moved.index(max(moved))
    if moved[rank] < SERIAL * sum(moved):
        return
    mine = [one for one in moving if one.rank == rank]
    seconds = sum(one.seconds for one in mine)
    rest = max(0.0, at.held - seconds)
    likely, least, most = (
        rest + seconds * max(1 / at.ranks, at.even_part(mine) * share)
        for share in (LIKELY, LEAST, MOST)
    )
    # Forcing data to storage counts as writing; where storage is the limit, it does not shrink.
    forced = sum(one.write_seconds for one in mine if one.syncs)
    after = (likely, least, max(most, rest + forced))
    yield at.candidate("serial-io", {"rank": rank}, after, mine, ranks=at.ranks)


def _level(one: Record) -> float:
    """The logarithm of the seconds per request."""
    return math.log(max(one.busy, 1e-9) / max(1, one.requests))


def _slow_target(at: Counted) -> Iterator[Candidate]:
    """Files on one target take longer for the same work than files on others."""
    files: dict[int, list[Record]] = {}  # by their first target
    for one in at.records:
        if (target := _placed(one)) is not None:
            files.setdefault(target, []).append(one)
    if len(files) < 2 or sum(map(len, files.values())) < FEWEST_FILES:
        return
    waits = _waits({name: sum(one.moved for one in some) for name, some in files.items()})
    levels = {name: median(map(_level, files[name])) - waits[name] for name in sorted(files)}
    slow = max(levels, key=lambda name: levels[name])
    others = [level for name, level in levels.items() if name != slow]
    excess = levels[slow] - median(others)
    inside = files[slow]
    outside = [one for name, some in files.items() if name != slow for one in some]
    if excess < math.log(SLOWER):
        return
    test = len(files) * (
        outlier_test(levels[slow], others, floor=SPREAD)
        if len(others) >= FEWEST_PEERS
        else _few_targets_test(
            [_level(one) - waits[slow] for one in inside], list(map(_level, outside)), len(others)
        )
    )
    after = _slowest_without(at, slow, math.exp(-excess))
    yield at.candidate(
        "slow-target", _targets_culprit(inside[0]), (after, 0.6 * after, 1.4 * after), inside,
        outside, p_value=min(1.0, test),
    )  # fmt: skip


def _placed(one: Record) -> int | None:
    """The first target of a file that one rank reads or writes, where it is known."""
    timed = not one.shared and one.requests and one.busy > 0
    return one.striping.targets[0] if timed and one.striping.targets else None


def _waits(loads: dict[int, int]) -> dict[int, float]:
    """How much longer calls wait at each target for its load alone: no slowness of the target."""
    usual = {name: median(load for other, load in loads.items() if other != name) for name in loads}
    return {name: math.log(max(1.0, load / max(usual[name], 1.0))) for name, load in loads.items()}


def _few_targets_test(slow: list[float], peers: list[float], others: int) -> float:
    """How likely chance makes all files of one of few targets so much slower than other files."""
    ranked = rank_test(slow, peers)
    if others < 2 or len(peers) < FEWEST_PEERS:
        return ranked
    return min(ranked, outlier_test(min(slow), peers, floor=SPREAD))


def _targets_culprit(one: Record) -> dict[str, object]:
    first, *others = one.striping.targets
    return {"target": first, "targets": [first, *others]} if others else {"target": first}


def _slowest_without(at: Counted, target: int, factor: float) -> float:
    """Seconds of the slowest rank when files of a target take a part of their time."""

    def mended(one: Record) -> float:
        return one.seconds * factor if _placed(one) == target else one.seconds

    whole = max(at.by_rank(lambda one: one.seconds))
    return max(at.by_rank(mended)) * at.held / max(whole, LEAST_SECONDS)


def _imbalance(at: Counted) -> Iterator[Candidate]:
    """Some ranks move much more."""
    moved, seconds = _rank_loads(at)
    active = [rank for rank, size in enumerate(moved) if size > 0]
    if len(active) < MANY:
        return
    usual = median(moved[rank] for rank in active)
    heavy = [rank for rank in active if moved[rank] > HEAVY * usual]
    light = [rank for rank in active if moved[rank] <= HEAVY * usual]
    theirs = [moved[rank] for rank in heavy]
    if not 0 < len(heavy) <= 0.5 * len(active) or sum(theirs) < 0.1 * sum(moved):
        return
    if max(seconds[rank] for rank in heavy) < 0.8 * max(seconds):
        return
    cost = median(seconds[rank] / moved[rank] for rank in light)
    bare = min(seconds[rank] / moved[rank] for rank in active)
    worst = max(1.5 * cost, *(seconds[rank] / moved[rank] for rank in heavy))
    even = sum(moved) / len(active)
    named = set(heavy)
    mine = [one for one in at.records if one.rank in named]
    peers = [one for one in at.records if not one.shared and one.rank not in named]
    yield at.candidate(
        "data-imbalance", {"ranks": heavy}, (even * cost, even * bare, even * worst),
        mine or [one for one in at.records if one.shared], peers,
        bytes=sum(theirs) / len(heavy), even_bytes=even,
    )  # fmt: skip


def _rank_loads(at: Counted) -> tuple[Sequence[float], Sequence[float]]:
    """Bytes and seconds of each rank; for shared files, only heat maps tell whose they are.

    The ranks that a library makes its aggregators move the data of all: they are no imbalance.
    """
    own = [one for one in at.records if not one.shared]
    seconds = at.by_rank(lambda one: one.seconds)
    if 2 * sum(one.moved for one in own) >= sum(one.moved for one in at.records):
        return at.by_rank(lambda one: one.moved, own), seconds
    if at.heat is None or at.mpiio is not None:
        return [], seconds
    busy, moved = totals(at.heat.busy, at.ranks), totals(at.heat.moved, at.ranks)
    # Bins round short times up: bytes tell at most how long a rank took beside the busiest.
    most_busy, most_moved = (max(*one, LEAST_SECONDS) for one in (busy, moved))
    parts = zip(busy, moved, strict=True)
    return moved, [at.held * min(b / most_busy, m / most_moved) for b, m in parts]


def _hot_target(at: Counted) -> Iterator[Candidate]:
    """More single-rank files lie on one target than on others."""
    some = [one for one in at.records if not one.shared and one.moved]
    load: dict[int, float] = {}
    single = 0.0
    for one in some:
        for name in one.striping.targets:
            part = one.moved / len(one.striping.targets)
            load[name] = load.get(name, 0.0) + part
            single = max(single, part)
    if len(load) < 2:
        return
    hot = max(sorted(load), key=lambda name: load[name])
    ideal = even_placement(sum(load.values()), single, at.targets_known)
    inside = [one for one in some if hot in one.striping.targets]
    outside = [one for one in some if hot not in one.striping.targets]
    if load[hot] < UNEVEN * ideal or not outside:
        return
    slow, peers = list(map(_level, inside)), list(map(_level, outside))
    if median(slow) - median(peers) < math.log(SLOWER):  # more lies there, and nobody waits for it
        return
    by_rank = at.by_rank(lambda one: one.seconds)
    chain = min(by_rank[one.rank] for one in some)
    after = max(max(by_rank) * ideal / load[hot], chain)
    yield at.candidate(
        "hot-target", {"target": hot}, (after, 0.8 * after, 1.3 * after), inside, outside,
        p_value=rank_test(slow, peers), targets=len(load),
    )  # fmt: skip


def few_targets(at: Counted) -> Iterator[Candidate]:
    """A file that all ranks share lies on fewer targets than there are."""
    shared = [one for one in at.records if one.shared and one.moved]
    if not shared or at.ranks < MANY:
        return
    longest = max(shared, key=lambda one: one.seconds)
    used, available = len(longest.striping.targets), at.targets_known
    wanted = useful_targets(available, at.ranks, longest.moved, longest.striping.size)
    rate = longest.moved / max(longest.slowest, 1e-9)
    if not used or wanted < 2 * used or rate > FAST * used:
        return
    seconds = at.slowest_seconds(longest)
    rest = max(0.0, at.held - seconds)
    after = seconds * used / wanted
    culprit = {"file": at.path(longest.file), "target": longest.striping.targets[0]}
    yield at.candidate(
        "few-targets", culprit, (rest + after, rest + after / 4, rest + 2 * after), [longest],
        stripe_count=used, targets=available, wanted=wanted, ranks=at.ranks,
    )  # fmt: skip
