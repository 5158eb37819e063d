"""Work that is spread badly: over targets, over ranks, over aggregators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import READ, SYNC, Flags, Floats
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.layers import collective_files
from ioprism.analyses.diagnosis.limits import (
    COPIES,
    HEAVY,
    MANY,
    SERIAL,
    UNEVEN,
    even_placement,
    useful_targets,
)
from ioprism.analyses.diagnosis.significance import rank_test
from ioprism.analyses.diagnosis.situation import Situation

SATURATED = 0.6  # share of a phase that a target works in, for it to be the limit


def find(at: Situation) -> Iterator[Candidate]:
    """Find targets, ranks and aggregators with more than their share."""
    collective = collective_files(at)
    of_library = np.isin(at.calls.file, collective)
    serial = _serial_io(at, of_library)
    if serial is not None:
        yield serial
        return
    uneven = _data_imbalance(at, of_library)
    if uneven is not None:
        yield uneven
        return
    yield from _hot_target(at)
    yield from _few_targets(at)


def shortest(at: Situation, chain: Floats, work: Floats) -> Floats:
    """How long phases last when ranks and targets have this much to do."""
    return np.minimum(at.held, np.maximum(chain, work) + at.waiting)


def _data(at: Situation) -> Flags:
    return at.calls.moves_data & (at.calls.bytes > 0)


def _serial_io(at: Situation, of_library: Flags) -> Candidate | None:
    """One rank moves the data of a job of many."""
    some = _data(at) & ~of_library
    moved = np.bincount(at.calls.rank[some], at.calls.bytes[some], minlength=at.ranks)
    if at.seen.ranks < MANY or not moved.sum():
        return None
    writer = int(np.argmax(moved))
    if moved[writer] < SERIAL * moved.sum():
        return None
    mine = some & (at.calls.rank == writer)
    own = at.by_rank(at.own, mine)[:, writer]
    rest = np.maximum(0.0, at.held - own)
    # Every rank takes a part: the chain of calls shrinks to one of them. The targets remain, and
    # what this rank waits for them: by so much its calls are longer than usual ones.
    spread = own / at.seen.ranks
    work = np.maximum(
        at.even_target(np.where(mine, at.queues.held, 0.0)),
        at.by_rank(_waits_for_storage(at), mine | (at.calls.kind == SYNC))[:, writer],
    )
    saved, low, high = _saved(at, lambda factor: np.maximum(spread, work * factor) + rest)
    # The node's network may be the limit: then only further nodes help.
    nodes = max(2, len(at.seen.hosts))
    low = min(low, 0.93 * float(own.sum()) * (1 - 1 / nodes))
    return Candidate(
        "serial-io",
        {"rank": int(at.seen.rank_numbers[writer])},
        saved,
        low,
        high,
        at.chance(mine),
        contrast_of(at, mine, None, "serial-io"),
        {"ranks": at.seen.ranks, "nodes": len(at.seen.hosts)},
    )


def _waits_for_storage(at: Situation) -> Floats:
    """Seconds of each call beyond those of a usual one; all of a sync's."""
    usual = np.where(at.calls.kind == SYNC, 0.0, at.queues.lone)
    return np.maximum(0.0, at.own - usual)


def _saved(at: Situation, after: Callable[[float], Floats]) -> tuple[Floats, float, float]:
    """Savings by phase, and the sum's low and high end, over the doubt about service times."""
    least, most = at.queues.doubt
    saved = [np.maximum(0.0, at.held - after(factor)) for factor in (most, 1.0, least)]
    return saved[1], 0.93 * float(saved[0].sum()), min(1.03 * float(saved[2].sum()), at.held.sum())


def _data_imbalance(at: Situation, of_library: Flags) -> Candidate | None:
    """Some ranks move much more than others."""
    some = _data(at) & ~of_library
    moved = at.by_rank(at.calls.bytes.astype(np.float64), some)
    total = np.where(_peers(at, moved.sum(axis=0)), moved.sum(axis=0), 0.0)
    active = total > 0
    if active.sum() < MANY:
        return None
    middle = float(np.median(total[active]))
    heavy = np.flatnonzero(total > HEAVY * max(middle, 1.0))
    if not len(heavy) or len(heavy) > 0.5 * active.sum() or total[heavy].sum() < 0.1 * total.sum():
        return None
    own = at.by_rank(at.own)
    light = np.setdiff1d(np.flatnonzero(active), heavy)
    # What a byte costs while all ranks are at it, as the others' calls show.
    lone = np.where(some, at.queues.lone, 0.0).sum() / max(1.0, total.sum())
    cost = np.divide(own, moved, out=np.full_like(own, np.nan), where=moved > 0)[:, light]
    cost[np.isnan(cost).all(axis=1)] = lone
    even = moved.sum(axis=1) / active.sum()
    # Targets have as much to do as before, evenly.
    work = at.even_target(np.where(some, at.queues.held, 0.0))
    chain = np.maximum(even * np.nanmedian(cost, axis=1), work)
    slowest = own.max(axis=1)
    of_heavy = own[:, heavy].max(axis=1)
    after = np.where(of_heavy >= 0.8 * slowest, np.minimum(at.held, chain), at.held)
    bare = np.where(
        of_heavy >= 0.8 * slowest, np.minimum(at.held, _least_chain(at, even * lone, work)), at.held
    )
    saved = at.held - after
    mine = some & np.isin(at.calls.rank, heavy)
    test = rank_test(moved[:, heavy].ravel(), moved[:, light].ravel())
    return Candidate(
        "data-imbalance",
        {"ranks": [int(at.seen.rank_numbers[rank]) for rank in heavy]},
        saved,
        0.85 * float(saved.sum()),
        max(1.05 * float(saved.sum()), float((at.held - bare).sum())),
        test,
        contrast_of(at, mine, some & ~mine, "data-imbalance"),
        {"bytes": float(total[heavy].mean()), "even_bytes": float(total.sum() / active.sum())},
    )


def _peers(at: Situation, moved: Floats) -> Flags:
    """The ranks of the program that moves most: launchers and other tasks are no peers."""
    names = np.array(at.seen.applications)
    if not len(names):
        return np.ones(len(moved), bool)
    sums = {name: moved[names == name].sum() for name in set(names.tolist())}
    return np.asarray(names == max(sums, key=lambda name: sums[name]), bool)


def _least_chain(at: Situation, chain: Floats, work: Floats) -> Floats:
    """How long even ranks are busy at least, over the doubt about service times."""
    return np.maximum(chain, work * at.queues.doubt[0])


def _hot_target(at: Situation) -> Iterator[Candidate]:
    """More files of one rank each lie on one target than on the others."""
    users = _users(at)
    if not len(users):  # all calls are on files without a name
        return
    private = _data(at) & (at.calls.file >= 0) & (users[np.maximum(at.calls.file, 0)] <= 1)
    if len(at.pieces.targets) < 2 or not private.any():
        return
    work = at.by_target(np.where(private, at.queues.held, 0.0))
    total = work.sum(axis=0)
    hot = int(np.argmax(total))
    even = work.sum(axis=1) / at.targets_known
    ideal = even_placement(float(total.sum()), _one_file(at), at.targets_known)
    limited = work[:, hot] >= SATURATED * at.held
    if not total[hot] or total[hot] < UNEVEN * ideal or not limited.any():
        return
    chain = at.busiest_rank(np.where(_data(at), at.queues.lone, at.own))
    share = ideal / float(even.sum())

    def after(factor: float) -> Floats:
        spread = shortest(at, chain, even * share * factor)
        return np.where(limited, spread, at.held)

    saved, low, high = _saved(at, after)
    on_it = np.zeros(len(at.calls), np.bool_)
    on_it[at.pieces.call[at.pieces.target == hot]] = True
    each = [len(np.unique(at.calls.rank[at.pieces.call[at.pieces.target == t]]))
            for t in range(len(at.pieces.targets))]  # fmt: skip
    yield Candidate(
        "hot-target",
        {"target": at.pieces.targets[hot]},
        saved,
        low,
        high,
        rank_test(at.calls.duration[on_it], at.calls.duration[private & ~on_it]),
        contrast_of(at, on_it, private & ~on_it, "hot-target"),
        {"ranks_on_target": each[hot], "ranks_elsewhere": float(np.median(np.delete(each, hot))),
         "targets": len(at.pieces.targets)},
    )  # fmt: skip


def _one_file(at: Situation) -> float:
    """The most seconds that one file asks of one target: no placement of files can do better."""
    rows = at.pieces.call
    files = int(at.calls.file.max()) + 1
    key = at.calls.file[rows] * len(at.pieces.targets) + at.pieces.target
    held = np.where(_data(at), at.queues.held, 0.0)[rows]
    work = np.bincount(key, held, minlength=files * len(at.pieces.targets))
    users = _users(at)
    single = work.reshape(files, -1).max(axis=1) * (users[:files] <= 1)
    return float(single.max())


def _users(at: Situation) -> Floats:
    """How many ranks use each file."""
    files = int(at.calls.file.max()) + 1
    some = _data(at) & (at.calls.file >= 0)
    pairs = np.unique(at.calls.file[some] * at.ranks + at.calls.rank[some])
    return np.bincount(pairs // at.ranks, minlength=files).astype(np.float64)


def read_copies(at: Situation) -> Floats:
    """How many times the bytes of each file are read by all ranks together."""
    files = int(at.calls.file.max()) + 1
    reads = (at.calls.kind == READ) & (at.calls.file >= 0) & (at.calls.offset >= 0)
    moved = np.bincount(at.calls.file[reads], at.calls.bytes[reads], minlength=files)
    extent = np.zeros(files)
    np.maximum.at(extent, at.calls.file[reads], (at.calls.offset + at.calls.bytes)[reads])
    return np.asarray(moved / np.maximum(extent, 1))


def _few_targets(at: Situation) -> Iterator[Candidate]:
    """A file that many ranks share lies on fewer targets than there are."""
    if not len(at.pieces.call):
        return
    users = _users(at)
    data = _data(at) & (at.calls.file >= 0)
    seconds = np.bincount(at.calls.file[data], at.own[data], minlength=len(users))
    seconds[(users < MANY) | (read_copies(at)[: len(users)] >= COPIES)] = 0.0
    file = int(np.argmax(seconds))
    if not seconds[file]:
        return
    mine = data & (at.calls.file == file)
    used = np.unique(at.pieces.target[mine[at.pieces.call]])
    moved = float(at.calls.bytes[mine].sum())
    wanted = useful_targets(at.targets_known, int(users[file]), moved, _stripe_size(at, file))
    if not len(used) or wanted < 2 * len(used):
        return
    held = np.where(mine, at.queues.held, 0.0)
    work = at.by_target(held)[:, used].max(axis=1)
    limited = work >= SATURATED * at.held
    if not limited.any():
        return
    chain = at.busiest_rank(np.where(mine, at.queues.lone, at.own))

    def after(targets: float) -> Floats:
        spread = shortest(at, np.minimum(chain, at.held / 2), work * len(used) / targets)
        return np.where(limited, spread, at.held)

    saved = at.held - after(wanted)
    target = at.pieces.targets[int(used[0])]
    yield Candidate(
        "few-targets",
        {"file": at.path(file), "target": target},
        saved,
        0.93 * float(saved.sum()),
        min(float(at.held.sum()), float((at.held - after(4 * wanted)).sum()) * 1.02),
        at.chance(mine),
        contrast_of(at, mine, None, "few-targets"),
        {
            "stripe_count": len(used),
            "targets": at.targets_known,
            "wanted": wanted,
            "ranks": int(users[file]),
        },
    )


def _stripe_size(at: Situation, file: int) -> int:
    return int(at.seen.files["stripe_size"][file] or 0)
