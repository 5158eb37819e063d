"""Work that is spread unevenly: I/O over ranks and storage targets, and computation over ranks.

Codes: serial-io, data-imbalance, hot-target, few-targets, compute-imbalance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.checks.redundancy import read_copies, written_in_vain
from ioprism.diagnosis.heat import HeatPhases, totals
from ioprism.diagnosis.limits import DOMINANT, MAJORITY, MINOR
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast, propose
from ioprism.diagnosis.rows import (
    METADATA,
    SYNC,
    Flags,
    Floats,
    Ints,
    rank_test,
    steady_seconds,
    unique,
)
from ioprism.model.arrays import median
from ioprism.model.verdict import Decision

LAYOUT = "ioprism diagnose LOG --layout layout.csv   # from: lfs getstripe -r --yaml DIRECTORY"
ONE_LIMIT = Decision(
    "run it once with the work of two ranks, or give a ceiling of the file system",
    "ioprism diagnose LOG --ceiling ior.json",
)
MORE_TARGETS = Decision(
    "write the same file with another stripe count once, and compare",
    "lfs setstripe -c 2 DIRECTORY; ioprism compare BEFORE AFTER",
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Find ranks and targets with more than their share."""
    collective = [entry.file for entry in observed.library_files if entry.collective]
    by_program = ~np.isin(observed.rows.file, collective)
    serial = _serial_io(observed, by_program)
    if serial is not None:
        yield serial
        return
    uneven = _data_imbalance(observed, by_program)
    if uneven is not None:
        yield uneven
        return
    yield from _hot_target(observed)
    yield from _few_targets(observed)


def _data(observed: Observed) -> Flags:
    return observed.rows.moves_data & (observed.rows.bytes > 0)


def _serial_io(observed: Observed, by_program: Flags) -> Proposal | None:
    """One rank moves the data of a job of many."""
    rows, limits = observed.rows, observed.limits
    some = _data(observed) & by_program & ~observed.of_programs
    if observed.ranks < limits.min_ranks or not some.any() or (rows.rank[some] < 0).any():
        return None
    moved = np.bincount(rows.rank[some], rows.bytes[some], minlength=observed.io_ranks)
    writer = int(np.argmax(moved))
    if moved[writer] < limits.serial_share * moved.sum():
        return None
    mine = (some | (rows.kind == SYNC)) & (rows.rank == writer)
    steady = steady_seconds(observed, mine & rows.moves_data)
    waits = np.where(mine, observed.own - steady, 0.0)  # for storage that has all it can do
    work = np.where(mine, observed.service.occupied, 0.0)
    known = len(observed.pieces.targets) > 0
    if known and not observed.per_call:  # each request occupies all targets that it touches
        stripes = np.ceil(rows.mean_bytes / observed.files.block_sizes(rows.file, 2**20))
        work = work * np.clip(stripes, 1, len(observed.pieces.targets))
    # One writer per node, or all ranks; a log may name the nodes of ranks with I/O only.
    fewest = 1 / (observed.nodes if observed.nodes > 1 else limits.min_ranks)
    part = 1 / observed.ranks
    floor = observed.even_target(work) if known else observed.by_phase(waits, mine)

    def scenario(kept: float, queue: float, limit: float) -> Scenario:
        chain = np.where(mine, steady * kept + waits * queue, observed.own)
        return Scenario(chain, floor=floor * limit)

    least, most = observed.service.doubt
    worst = scenario(max(part, fewest) if known else 1 - limits.parallel_gain, 1.0, most)
    if _opened_by_most(observed, mine):
        worst = Scenario(observed.own)  # a library may gather what all ranks write together
    change = Change(
        scenario(part, 1.0, 1.0),
        worst,
        scenario(1 / observed.ranks, 1 / observed.ranks, least),
    )
    culprit = {"rank": int(observed.rank_numbers[writer])}
    facts = {"ranks": observed.ranks, "nodes": len(observed.hosts)}
    return propose(observed, "serial-io", mine, change, ONE_LIMIT, facts, culprit=culprit)


def _opened_by_most(observed: Observed, mine: Flags) -> bool:
    """Whether most ranks open the files of these rows."""
    rows = observed.rows
    opened = (rows.kind == METADATA) & np.isin(rows.file, rows.file[mine]) & (rows.rank >= 0)
    return len(unique(rows.rank[opened])) > MAJORITY * observed.ranks


def _data_imbalance(observed: Observed, by_program: Flags) -> Proposal | None:
    """Some ranks move much more than others."""
    rows, limits = observed.rows, observed.limits
    some = _data(observed) & by_program
    if 2 * rows.bytes[some & (rows.rank < 0)].sum() > rows.bytes[some].sum():
        return _imbalance_in_heat_map(observed) if observed.heat is not None else None
    moved = observed.by_rank(rows.bytes.astype(np.float64), some)
    total = np.where(_same_program(observed, moved.sum(axis=0)), moved.sum(axis=0), 0.0)
    active = total > 0
    if active.sum() < limits.min_ranks:
        return None
    middle = median(total[active])
    heavy = _heavy_ranks(observed, total)
    if not len(heavy):
        return None
    vain = written_in_vain(observed)[1]
    useful = observed.by_rank(rows.bytes * (1 - vain), some).sum(axis=0)
    if not (useful[heavy] > limits.apart * middle).any():
        return None  # one rank writes fill values for all
    own = observed.by_rank(observed.own)
    light = np.setdiff1d(np.flatnonzero(active), heavy)
    matters = own[:, heavy].max(axis=1) >= DOMINANT * own.max(axis=1)
    if not matters.any():
        return None
    # What a byte costs while all ranks are busy, as the others' calls show.
    alone = np.where(some, observed.service.uncontended, 0.0).sum() / max(1.0, total.sum())
    cost = np.divide(own, moved, out=np.full_like(own, np.nan), where=moved > 0)[:, light]
    cost[np.isnan(cost).all(axis=1)] = alone
    even = moved.sum(axis=1) / active.sum()
    usual = np.nanmedian(cost, axis=1)
    work = observed.even_target(np.where(some, observed.service.occupied, 0.0))
    mine = some & np.isin(rows.rank, heavy)
    spent = mine | ((rows.kind == SYNC) & np.isin(rows.rank, heavy))
    steady = float(steady_seconds(observed, mine).sum()) / max(
        float(observed.own[spent].sum()), 1e-12
    )
    # Where the heavy ranks wait for storage rather than for their own requests, all of it stays.
    slower = 1 + limits.run_noise if observed.per_call else limits.apart
    worst_chain = np.maximum(slower * even * usual, (1 - steady) * own[:, heavy].max(axis=1))

    def scenario(chain: Floats, factor: float) -> Scenario:
        floor = np.where(
            matters, np.maximum(chain, work * factor), observed.busiest_rank(observed.own)
        )
        nothing = np.where(matters[observed.phase], 0.0, observed.own)
        return Scenario(nothing, floor=floor, waiting=np.where(matters, 0.0, observed.waiting))

    least, most = observed.service.doubt
    change = Change(
        scenario(even * usual, 1.0),
        scenario(worst_chain, most),
        scenario(even * min(alone, float(np.nanmin(cost))), least),
    )
    return Proposal(
        "data-imbalance",
        {"ranks": observed.numbers(heavy)},
        mine,
        change,
        min(
            rank_test(moved[:, heavy].ravel(), moved[:, light].ravel()),
            observed.repeat_probability(mine),  # amounts of data are exact
        ),
        contrast(observed, mine, some & ~mine, "data-imbalance"),
        ONE_LIMIT,
        {"bytes": float(total[heavy].mean()), "even_bytes": float(total.sum() / active.sum())},
    )


def _heavy_ranks(observed: Observed, moved: Floats) -> Ints:
    """The ranks that move much more than the others; none where they are many or move little."""
    active = moved[moved > 0]
    heavy = np.flatnonzero(moved > observed.limits.apart * max(median(active), 1.0))
    few = len(heavy) <= MAJORITY * len(active) and moved[heavy].sum() >= MINOR * moved.sum()
    return heavy if few else heavy[:0]


def _imbalance_in_heat_map(observed: Observed) -> Proposal | None:
    """Ranks that move more of a file that all share, by the heat map."""
    heat: HeatPhases | None = observed.heat
    if heat is None or observed.library_files:
        return None
    limits, ranks = observed.limits, heat.ranks
    moved, busy = np.array(totals(heat.moved, ranks)), np.array(totals(heat.busy, ranks))
    active = moved > 0
    if active.sum() < limits.min_ranks:
        return None
    heavy = _heavy_ranks(observed, moved)
    if not len(heavy) or len(observed.phases) != 1:
        return None
    # Bins round short times up: bytes show at most how long a rank took beside the busiest.
    stall = float(observed.stall.sum())
    seconds = stall * np.minimum(busy / max(busy.max(), 1e-12), moved / max(moved.max(), 1.0))
    light = np.setdiff1d(np.flatnonzero(active), heavy)
    if seconds[heavy].max() < DOMINANT * seconds.max():
        return None
    even = float(moved.sum()) / float(active.sum())
    cost = seconds[active] / moved[active]
    usual = median(seconds[light] / moved[light])
    worst = max(limits.apart * usual, float((seconds[heavy] / moved[heavy]).max()))
    every = _data(observed)
    rest = np.where(every, 0.0, observed.own)
    change = Change(
        *(
            Scenario(rest, floor=np.array([even * c]), waiting=np.zeros(1))
            for c in (usual, worst, float(cost.min()))
        )
    )
    culprit = {"ranks": heavy.tolist()}
    facts = {"bytes": float(moved[heavy].mean()), "even_bytes": even}
    return propose(observed, "data-imbalance", every, change, ONE_LIMIT, facts, culprit=culprit)


def _same_program(observed: Observed, moved: Floats) -> Flags:
    """The ranks of the program that moves most: launchers and other tasks are not peers."""
    names = np.array(observed.applications)
    if not len(names):
        return np.ones(len(moved), bool)
    sums = {name: moved[names == name].sum() for name in set(names.tolist())}
    return np.asarray(names == max(sums, key=lambda name: sums[name]), bool)


def _hot_target(observed: Observed) -> Iterator[Proposal]:
    """More files of one rank each are on one target than on the others."""
    rows, pieces, limits = observed.rows, observed.pieces, observed.limits
    private = _data(observed) & (rows.file >= 0) & ~observed.shared_file
    if len(pieces.targets) < 2 or not private.any():
        return
    occupied = observed.service.occupied if observed.per_call else observed.own
    work = observed.by_target(np.where(private, occupied, 0.0))
    total = work.sum(axis=0)
    if not observed.per_call:  # times of records include waiting: bytes show the load
        total = observed.by_target(np.where(private, rows.bytes, 0.0).astype(np.float64)).sum(
            axis=0
        )
    hot = int(np.argmax(total))
    single = _largest_file(
        observed, np.where(private, occupied if observed.per_call else rows.bytes, 0.0)
    )
    ideal = even_placement(float(total.sum()), single, observed.targets_known)
    on_it = np.zeros(len(rows), np.bool_)
    on_it[pieces.call[pieces.target == hot]] = True
    if not total[hot] or total[hot] < limits.apart * ideal or not (private & ~on_it).any():
        return
    share = ideal / float(total[hot])
    slow, peers = (
        np.log(np.maximum(rows.seconds[x], 1e-9)) for x in (on_it & private, private & ~on_it)
    )
    if observed.per_call:
        limited = work[:, hot] >= limits.saturated * observed.stall
        chain = np.where(_data(observed), observed.service.uncontended, observed.own)
        spread = work[:, hot] * share
    else:
        limited = np.full(
            len(observed.phases), median(slow) - median(peers) >= np.log(limits.slower)
        )
        seconds = observed.by_rank(observed.own)
        taking_part = np.where(seconds > 0, seconds, np.inf).min(axis=1)
        chain = np.minimum(
            observed.own, np.where(np.isfinite(taking_part), taking_part, 0.0)[observed.phase]
        )
        spread = seconds.max(axis=1) * share
    if not limited.any():
        return

    def scenario(factor: float) -> Scenario:
        kept = np.where(limited[observed.phase], np.minimum(chain, observed.own), observed.own)
        return Scenario(
            kept,
            floor=np.where(limited, spread * factor, 0.0),
            waiting=np.where(limited, 0.0, observed.waiting),
        )

    least, most = observed.service.doubt if observed.per_call else (DOMINANT, limits.unsure[1])
    each = [
        len(unique(rows.rank[pieces.call[pieces.target == t]])) for t in range(len(pieces.targets))
    ]
    yield Proposal(
        "hot-target",
        {"target": pieces.targets[hot]},
        on_it & private,
        Change(scenario(1.0), scenario(most), scenario(least)),
        rank_test(slow, peers),
        contrast(observed, on_it, private & ~on_it, "hot-target"),
        MORE_TARGETS,
        {
            "ranks_on_target": each[hot],
            "ranks_elsewhere": median(np.delete(each, hot)),
            "targets": len(pieces.targets),
        },
    )


def even_placement(total: float, single: float, targets: int) -> float:
    """The most that any target has to do when files, none larger than `single`, are spread."""
    if single <= 0:
        return total / max(1, targets)
    return max(total / targets, single * math.ceil(total / single / targets - 1e-6))


def _largest_file(observed: Observed, values: Floats) -> float:
    """The most that one file asks of one target: no placement of files can do better."""
    pieces, count = observed.pieces, len(observed.pieces.targets)
    key = observed.rows.file[pieces.call] * count + pieces.target
    return float(np.bincount(key, values[pieces.call] * pieces.weight).max(initial=0.0))


def _few_targets(observed: Observed) -> Iterator[Proposal]:
    """A file that many ranks share is on fewer targets than there are."""
    rows, limits, pieces = observed.rows, observed.limits, observed.pieces
    if not len(pieces.call):
        return
    data = _data(observed) & (rows.file >= 0)
    seconds = observed.by_file(observed.own, data)
    seconds[(observed.users < limits.min_ranks) | (read_copies(observed) >= limits.copies)] = 0.0
    file = int(np.argmax(seconds))
    if not seconds[file]:
        return
    mine = data & (rows.file == file)
    used = unique(pieces.target[mine[pieces.call]])
    moved, users = float(rows.bytes[mine].sum()), int(observed.users[file])
    stripe = int(observed.files.stripe_size[file])
    stripes = math.ceil(moved / stripe) if stripe > 0 else observed.targets_known
    wanted = max(1, min(observed.targets_known, users, stripes))
    if not len(used) or wanted < 2 * len(used):
        return
    part = len(used) / wanted
    if observed.per_call:
        work = observed.by_target(np.where(mine, observed.service.occupied, 0.0))[:, used].max(
            axis=1
        )
        limited = work >= limits.saturated * observed.stall
        chain = np.where(mine, np.minimum(observed.service.uncontended, observed.own), observed.own)
    else:
        work = observed.busiest_rank(observed.own, mine)
        limited = np.ones(len(work), np.bool_)
        chain = np.where(mine, observed.own * part, observed.own)
    # Calls that wait for each other show that the targets are the limit; counters do not.
    evident = observed.per_call and observed.service.measured
    if not limited.any():
        return

    def scenario(spread: float) -> Scenario:
        inside = limited[observed.phase]
        kept = np.where(inside, np.minimum(chain, observed.stall[observed.phase] / 2), observed.own)
        return Scenario(
            kept,
            floor=np.where(limited, work * spread, 0.0),
            waiting=np.where(limited, 0.0, observed.waiting),
        )

    likely = scenario(part)
    # Requests seldom meet all targets evenly: one may have twice its share.
    worst = scenario(min(1.0, 2 * part)) if evident else Scenario(observed.own)
    change = Change(likely, worst, scenario(part / 4))
    culprit = {"file": observed.files.path(file), "target": pieces.targets[int(used[0])]}
    known = {"stripe_count": len(used), "targets": observed.targets_known}
    facts = {**known, "wanted": wanted, "ranks": users}
    yield propose(observed, "few-targets", mine, change, MORE_TARGETS, facts, culprit=culprit)


def check_computation(observed: Observed) -> Iterator[Proposal]:
    """Name the ranks that keep others waiting without any I/O."""
    late = observed.late
    if late is None:
        return
    theirs = np.isin(observed.rows.rank, late.ranks)
    yield Proposal(
        "compute-imbalance",
        {"ranks": observed.numbers(late.ranks)},
        theirs,
        None,
        late.p_value,
        contrast(observed, theirs, ~theirs, "compute-imbalance"),
        facts={"waited": late.waited, "meetings": late.meetings},
    )
