"""Targets and ranks in counters: slow ones, and those with more than their share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.counted import Counted, even_part
from ioprism.analyses.diagnosis.queues import LEAST, LIKELY, MOST
from ioprism.analyses.diagnosis.request_cost import FAST
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test, rank_test
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.slow_parts import FEWEST_PEERS, SLOWER, SPREAD
from ioprism.analyses.diagnosis.uneven_load import (
    HEAVY,
    MANY,
    SERIAL,
    UNEVEN,
    even_placement,
    useful_targets,
)


def find(at: Counted) -> Iterator[Candidate]:
    """Find slow and busy targets, and ranks with more than their share."""
    serial = list(_serial(at))
    yield from serial
    if serial:
        return
    slow = [found for found in _slow_target(at) if found.p_value <= SIGNIFICANT]
    uneven = list(_imbalance(at))
    yield from (*slow, *uneven)
    if not slow and not uneven:
        yield from _hot_target(at)


def _serial(at: Counted) -> Iterator[Candidate]:
    """One rank moves the data of all."""
    found = at.records
    own = ~found.shared & (found.moved > 0)
    if found.ranks < MANY or not own.any() or found.moved[found.shared].sum() > 0:
        return
    moved = np.bincount(found.rank[own], found.moved[own], minlength=found.ranks)
    rank = int(np.argmax(moved))
    if moved[rank] < SERIAL * moved.sum():
        return
    mine = own & (found.rank == rank)
    seconds = float(found.seconds[mine].sum())
    rest = max(0.0, at.held - seconds)
    likely, least, most = (
        rest + seconds * max(1 / found.ranks, even_part(at, mine) * share)
        for share in (LIKELY, LEAST, MOST)
    )
    yield at.candidate("serial-io", {"rank": rank}, (likely, least, most), mine, ranks=found.ranks)


def _levels(at: Counted) -> tuple[Flags, Floats]:
    """Single-rank records that move data, and the logarithm of their seconds per request."""
    found = at.records
    some = ~found.shared & (found.requests > 0)
    busy = found["read_time"] + found["write_time"]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log(np.maximum(busy, 1e-9) / found.requests)
    return some & (busy > 0), level


def _target_of(at: Counted) -> Ints:
    """First target of each record's file; -1 unknown."""
    return np.array([names[0] if names else -1 for names in at.records.targets], np.int64)


def _slow_target(at: Counted) -> Iterator[Candidate]:
    """Files on one target take longer for the same work than files on others."""
    some, level = _levels(at)
    target = _target_of(at)
    some &= target >= 0
    if some.sum() < 4:
        return
    names = np.unique(target[some])
    if len(names) < 2:
        return
    loads = np.array([at.records.moved[some & (target == name)].sum() for name in names])
    levels = np.array([np.median(level[some & (target == name)]) for name in names])
    # More work on a target makes its calls wait: that is no slowness of the target.
    others = np.array([np.median(np.delete(loads, place)) for place in range(len(loads))])
    waits = np.log(np.maximum(1.0, loads / np.maximum(others, 1.0)))
    slow = int(np.argmax(levels - waits))
    others = np.delete(levels - waits, slow)
    excess = float(levels[slow] - waits[slow] - np.median(others))
    inside = some & (target == names[slow])
    test = len(names) * (
        outlier_test(float(levels[slow] - waits[slow]), others, floor=SPREAD)
        if len(others) >= FEWEST_PEERS
        else _few_targets_test(level[inside] - waits[slow], level[some & ~inside], len(others))
    )
    if excess < np.log(SLOWER):
        return
    after = _slowest_without(at, inside, np.exp(-excess))
    yield at.candidate(
        "slow-target", _targets_culprit(at, inside), (after, 0.6 * after, 1.4 * after), inside,
        some & ~inside, p_value=min(1.0, test),
    )  # fmt: skip


def _few_targets_test(slow: Floats, peers: Floats, others: int) -> float:
    """How likely chance makes all files of one of few targets so much slower than other files."""
    ranked = rank_test(slow, peers)
    if others < 2 or len(peers) < FEWEST_PEERS:
        return ranked
    return min(ranked, outlier_test(float(slow.min()), peers, floor=SPREAD))


def _targets_culprit(at: Counted, some: Flags) -> dict[str, object]:
    names = at.records.targets[int(np.flatnonzero(some)[0])]
    return {"target": names[0]} if len(names) == 1 else {"target": names[0], "targets": list(names)}


def _slowest_without(at: Counted, some: Flags, factor: float) -> float:
    """Seconds of the slowest rank when these records take a part of their time."""
    seconds = np.where(some, at.records.seconds * factor, at.records.seconds)
    ratio = at.held / max(float(at.by_rank.max()), 1e-12)
    return float(at.records.by_rank(seconds).max()) * ratio


def _imbalance(at: Counted) -> Iterator[Candidate]:
    """Some ranks move much more."""
    found = at.records
    moved, seconds = _rank_loads(at)
    active = moved > 0
    if active.sum() < MANY:
        return
    heavy = np.flatnonzero(moved > HEAVY * np.median(moved[active]))
    if not 0 < len(heavy) <= 0.5 * active.sum() or moved[heavy].sum() < 0.1 * moved.sum():
        return
    light = np.setdiff1d(np.flatnonzero(active), heavy)
    if seconds[heavy].max() < 0.8 * seconds.max():
        return
    cost = float(np.median(seconds[light] / moved[light]))
    bare = float(np.min(seconds[active] / moved[active]))
    even = float(moved.sum() / active.sum())
    own = ~found.shared
    mine, peers = own & np.isin(found.rank, heavy), own & ~np.isin(found.rank, heavy)
    if not mine.any():
        mine = found.shared
    yield at.candidate(
        "data-imbalance", {"ranks": [int(rank) for rank in heavy]},
        (even * cost, even * bare, even * cost * 1.5), mine, peers,
        bytes=float(moved[heavy].mean()), even_bytes=even,
    )  # fmt: skip


def _rank_loads(at: Counted) -> tuple[Floats, Floats]:
    """Bytes and seconds of each rank; for shared files, only heat maps tell whose they are.

    The ranks that a library makes its aggregators move the data of all: they are no imbalance.
    """
    found = at.records
    if found.moved[found.shared].sum() <= 0.5 * found.moved.sum():
        own = ~found.shared
        each = np.bincount(found.rank[own], found.moved[own], minlength=found.ranks)
        return each.astype(np.float64), at.by_rank
    if at.heat is None or "MPI-IO" in at.trace.counters:
        return np.zeros(found.ranks), at.by_rank
    busy, moved = at.heat.busy.sum(axis=0), at.heat.by_rank
    # Bins round short times up: bytes tell at most how long a rank took beside the busiest.
    parts = [values / max(float(values.max()), 1e-12) for values in (busy, moved)]
    return moved, at.held * np.minimum(*parts)


def _hot_target(at: Counted) -> Iterator[Candidate]:
    """More single-rank files lie on one target than on others."""
    found = at.records
    moved = found.moved
    some = ~found.shared & (moved > 0)
    names = sorted({name for record in np.flatnonzero(some) for name in found.targets[record]})
    if len(names) < 2:
        return
    load = dict.fromkeys(names, 0.0)
    single = 0.0
    for record in np.flatnonzero(some):
        for name in found.targets[record]:
            part = moved[record] / len(found.targets[record])
            load[name] += part
            single = max(single, part)
    total = np.array([load[name] for name in names])
    hot = int(np.argmax(total))
    ideal = even_placement(float(total.sum()), single, at.targets_known)
    inside = np.array([names[hot] in found.targets[r] for r in range(len(found))]) & some
    _, level = _levels(at)
    if total[hot] < UNEVEN * ideal or not (some & ~inside).any():
        return
    waits = float(np.median(level[inside]) - np.median(level[some & ~inside]))
    if waits < np.log(SLOWER):  # more lies there, and nobody waits for it
        return
    after = float(found.by_rank(found.seconds).max()) * ideal / total[hot]
    chain = float(np.min(at.by_rank[np.unique(found.rank[some])]))
    yield at.candidate(
        "hot-target", {"target": names[hot]},
        (max(after, chain), 0.8 * max(after, chain), 1.3 * max(after, chain)), inside,
        some & ~inside, p_value=rank_test(level[inside], level[some & ~inside]),
        targets=len(names),
    )  # fmt: skip


def few_targets(at: Counted) -> Iterator[Candidate]:
    """A file that all ranks share lies on fewer targets than there are."""
    found = at.records
    shared = found.shared & (found.moved > 0)
    if not shared.any() or found.ranks < MANY:
        return
    record = int(np.argmax(np.where(shared, found.seconds, 0.0)))
    used = found.targets[record]
    available = at.targets_known
    wanted = useful_targets(
        available, found.ranks, float(found.moved[record]), int(found.stripe_size[record])
    )
    rate = found.moved[record] / max(float(found["slowest"][record]), 1e-9)
    if not used or wanted < 2 * len(used) or rate > FAST * len(used):
        return
    mine = np.arange(len(found)) == record
    seconds = float(max(found["slowest"][record], found.seconds[record] / found.ranks))
    rest = max(0.0, at.held - seconds)
    after = seconds * len(used) / wanted
    yield at.candidate(
        "few-targets", {"file": found.path(record), "target": used[0]},
        (rest + after, rest + after / 4, rest + 2 * after), mine,
        stripe_count=len(used), targets=available, wanted=wanted, ranks=found.ranks,
    )  # fmt: skip
