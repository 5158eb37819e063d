"""Requests that cost more than their bytes: small, out of order, across lock blocks, repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import READ, WRITE, Flags, Floats, Ints
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.layers import of_libraries
from ioprism.analyses.diagnosis.limits import BLOCK, COPIES, LIKELY, REQUEST
from ioprism.analyses.diagnosis.request_cost import fixed_share
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, rank_test
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.analyses.diagnosis.uneven_load import read_copies

ENOUGH = 3
DISORDER = 0.5  # share of requests out of order
ALIGNED = 0.9  # of a lone request's time its target works; the rest is the way there


def find(at: Situation) -> Iterator[Candidate]:
    """Find the one property of requests that costs most, for each direction."""
    library = of_libraries(at)
    for kind in (READ, WRITE):
        some = (at.calls.kind == kind) & (at.calls.bytes > 0) & ~library
        if some.sum() < 2:
            continue
        found = [*_of_direction(at, some, kind)]
        if found:
            yield max(found, key=lambda candidate: candidate.saving)


def _of_direction(at: Situation, some: Flags, kind: int) -> Iterator[Candidate]:
    repeated = _redundant(at, some) if kind == READ else None
    if repeated is not None:
        yield repeated
        return
    conflict = lock_conflicts(at, some) if kind == WRITE else np.zeros(len(at.calls), np.bool_)
    if conflict.sum() > DISORDER * some.sum():
        contended = _contention(at, some, conflict)
        if contended is not None:
            yield contended
            return
    order = in_order(at, some)
    if (some & ~order).sum() > DISORDER * some.sum():
        disorder = _random(at, some, order)
        if disorder is not None:
            yield disorder
            return
    small = _small(at, some)
    if small is not None:
        yield small


def _savings(at: Situation, some: Flags, lone: Floats, held: Floats) -> Floats:
    """What phases save when these calls take and hold other seconds; others stay as they are."""
    own = np.where(some, np.minimum(lone, at.own), at.own)
    work = at.busiest_target(np.where(some, held, at.queues.held))
    after = np.maximum(at.busiest_rank(own), work) + at.waiting_after(own)
    return np.minimum(np.maximum(0.0, at.held - after), at.under_way(some))


def stripe_sizes(at: Situation) -> Ints:
    """The lock block of each call's file."""
    sizes = at.seen.files["stripe_size"].fill_null(0).to_numpy()
    if not len(sizes):
        return np.full(len(at.calls), BLOCK)
    known = sizes[np.maximum(at.calls.file, 0)]
    return np.where((known > 0) & (at.calls.file >= 0), known, BLOCK)


def lock_conflicts(at: Situation, some: Flags) -> Flags:
    """Which requests touch a lock block that another rank touched last."""
    size = stripe_sizes(at)
    rows = np.flatnonzero(some & (at.calls.offset >= 0) & (at.calls.file >= 0))
    first = at.calls.offset[rows] // size[rows]
    last = (at.calls.offset[rows] + at.calls.bytes[rows] - 1) // size[rows]
    across = last > first
    call = np.concatenate((rows, rows[across]))
    block = np.concatenate((first, last[across]))
    order = np.lexsort((at.calls.start[call], block, at.calls.file[call]))
    call, block = call[order], block[order]
    same = (block[1:] == block[:-1]) & (at.calls.file[call][1:] == at.calls.file[call][:-1])
    other = same & (at.calls.rank[call][1:] != at.calls.rank[call][:-1])
    conflict = np.zeros(len(at.calls), np.bool_)
    conflict[call[1:][other]] = True
    return conflict


def in_order(at: Situation, some: Flags) -> Flags:
    """Which requests begin where the one before them on the same file and target ended."""
    rows = np.flatnonzero(some)
    target = at.pieces.first[rows]
    order = np.lexsort((at.calls.start[rows], at.calls.rank[rows], target, at.calls.file[rows]))
    rows, target = rows[order], target[order]
    same = (
        (at.calls.file[rows][1:] == at.calls.file[rows][:-1])
        & (target[1:] == target[:-1])
        & (at.calls.rank[rows][1:] == at.calls.rank[rows][:-1])
    )
    ends = at.calls.offset[rows] + at.calls.bytes[rows]
    begins = at.calls.offset[rows][1:]
    # On the next stripe of the same target there is a jump by the other targets' stripes.
    jump = np.where(ends[:-1] % stripe_sizes(at)[rows[1:]] == 0, _round(at, rows[1:]), 0)
    ahead = (begins == ends[:-1]) | (begins == ends[:-1] + jump)
    ordered = np.zeros(len(at.calls), np.bool_)
    ordered[rows[1:][same & ahead]] = True
    return ordered


def _round(at: Situation, rows: Ints) -> Ints:
    """Bytes from a stripe to the next one on the same target, less the stripe itself."""
    if not at.seen.files.height:
        return np.zeros(len(rows), np.int64)
    counts = at.seen.files["targets"].list.len().fill_null(1).cast(pl.Int64).to_numpy()
    sizes = stripe_sizes(at)
    others = np.maximum(1, counts[np.maximum(at.calls.file[rows], 0)]) - 1
    return np.asarray(others * sizes[rows], np.int64)


def _contention(at: Situation, some: Flags, conflict: Flags) -> Candidate | None:
    """Requests wait for locks on blocks that other ranks hold."""
    locked, free = some & conflict, some & ~conflict
    size = float(np.median(at.calls.bytes[some]))
    block = int(np.median(stripe_sizes(at)[some]))
    small = size < 0.5 * block
    savings = _one_part_each(at, some, locked, free) if small else _aligned(at, some, locked, free)
    if savings is None:
        return None
    saved, low, high, test = savings
    code = "shared-file-contention" if small else "misalignment"
    return Candidate(
        code,
        at.named_file(some),
        saved,
        0.93 * low,
        min(float(at.held.sum()), 1.03 * high),
        test,
        contrast_of(at, locked, free, code),
        {"stripe_size": block, "bytes_per_request": size},
    )


Savings = tuple[Floats, float, float, float]  # by phase, low and high sum, p-value


def _aligned(at: Situation, some: Flags, locked: Flags, free: Flags) -> Savings | None:
    """Each request lies in one block: it costs one target what it takes alone and unlocked."""
    if free.sum() < ENOUGH:
        return None
    seconds = at.calls.duration
    service = np.where(np.isfinite(at.queues.service), at.queues.service, seconds)
    test = 2 * min(rank_test(x[locked], x[free]) for x in (service, seconds))
    alone = seconds[free & at.queues.idle]
    quick = float(np.median(alone) if len(alone) >= ENOUGH else np.quantile(seconds[free], 0.1))
    # Targets that serve many at a time leave none alone: no request needs more than the work
    # that targets do for one, less what the locked ones take longer.
    work_each = float(at.queues.work[some].mean() * seconds[free].mean() / seconds[some].mean())
    most = work_each if work_each > 0 else math.inf
    quick = min(quick, most)
    own = np.where(some, np.minimum(at.own, quick), at.own)
    chain, waiting = at.busiest_rank(own), at.waiting_after(own)
    # Ranks in step come to some targets at once: as many rounds as do not fit side by side.
    users, targets = len(np.unique(at.calls.rank[some])), max(1, len(at.pieces.targets))
    convoy = math.ceil(users / targets) / (users / targets)

    def saved(fixed: float, part: float) -> Floats:
        whole = min(most, _on_one_target(at, free, quick, fixed))
        work = _first_target_work(at, np.where(some, whole, at.queues.held))
        return np.maximum(0.0, at.held - np.maximum(chain, work * part) - waiting)

    likely = saved(REQUEST, ALIGNED * (1 + convoy) / 2)
    low, high = saved(0.0, convoy), saved(quick / 2, LIKELY)
    return likely, float(low.sum()), float(high.sum()), min(1.0, test)


def _on_one_target(at: Situation, free: Flags, quick: float, fixed: float) -> float:
    """Seconds of a request that two targets shared, once one of them has all its bytes.

    All but a fixed part of its time was spent on the larger one of its two pieces.
    """
    part = float(np.median(_largest_piece(at)[free]))
    return quick + max(0.0, quick - fixed) * (1 / part - 1)


def _largest_piece(at: Situation) -> Floats:
    """The part of each request's bytes that the busier one of its two blocks holds."""
    block = stripe_sizes(at)
    first = np.minimum(at.calls.bytes, block - at.calls.offset % block)
    total = np.maximum(1, at.calls.bytes)
    return np.asarray(np.clip(np.maximum(first, total - first) / total, 0.5, 1.0), np.float64)


def _first_target_work(at: Situation, seconds: Floats) -> Floats:
    """The most that any target works in each phase if calls only concern their first target."""
    known = at.pieces.known
    count = len(at.pieces.targets)
    if not count:
        return np.zeros(at.phases)
    key = at.seen.phase[known] * count + at.pieces.first[known]
    work = np.bincount(key, seconds[known], minlength=at.phases * count)
    return np.asarray(work.reshape(at.phases, count).max(axis=1), np.float64)


def _one_part_each(at: Situation, some: Flags, locked: Flags, free: Flags) -> Savings | None:
    """Each rank gets one aligned part: no locks are taken away, and requests can be large."""
    cost = _lock_cost(at, locked, free)
    if cost is None:
        return None
    quick, test = cost
    held = np.where(some, np.minimum(at.queues.held, quick), at.queues.held)
    lone = np.where(some, np.minimum(at.own, quick / LIKELY), at.queues.lone)
    low, saved, high = (_savings(at, some, lone * x, held * x) for x in (1.0, 0.3, 0.0))
    return saved, float(low.sum()), float(high.sum()), test


def _lock_cost(at: Situation, locked: Flags, free: Flags) -> tuple[float, float] | None:
    """What a request holds its target for where no other rank has the lock, and its p-value."""
    service = np.where(np.isfinite(at.queues.service), at.queues.service, at.calls.duration)
    slow = float(np.mean(at.queues.held[locked]))
    if free.sum() < ENOUGH:
        return float(np.quantile(service[locked], 0.05)), at.chance(locked)
    test = rank_test(service[locked], service[free])
    quick = float(np.median(service[free]))
    if test > SIGNIFICANT:
        # Targets that serve many at a time hide what one request costs: whole durations tell.
        test = rank_test(at.calls.duration[locked], at.calls.duration[free])
        whole, alone = (float(np.median(at.calls.duration[some])) for some in (locked, free))
        quick = slow * (alone / whole if whole > 0 else 1.0)
    return None if quick > 0.95 * slow else (quick, test)


def _random(at: Situation, some: Flags, order: Flags) -> Candidate | None:
    """Requests out of order cost more than those in order, of the same size."""
    some = some & _main_class(at, some & ~order)
    service = np.where(np.isfinite(at.queues.service), at.queues.service, at.calls.duration)
    wild, tame = some & ~order, some & order
    size = stripe_sizes(at)
    opens_stripe = at.calls.offset % size == 0
    inner = tame & ~opens_stripe
    if inner.sum() < 2:
        return None
    slow, quick = float(np.median(service[wild])), float(np.median(service[inner]))
    outer = tame & opens_stripe
    share = min(1.0, float(np.median(at.calls.bytes[some] / size[some])))
    at_border = float(np.median(service[outer])) if outer.sum() >= 2 else quick
    ratio = ((1 - share) * quick + share * at_border) / max(slow, 1e-12)
    test = rank_test(service[wild][:2000], service[inner])
    if test > 0.05 or ratio > 0.8:
        return None
    # No more than the requests' own part of what ranks spend in each phase.
    spent, total = at.by_rank(at.own, some).sum(axis=1), at.by_rank(at.own).sum(axis=1)
    changed = _savings(at, some, at.queues.lone * ratio, at.queues.held * ratio)
    saved = np.minimum(changed, at.held * spent / np.maximum(total, 1e-12))
    return Candidate(
        "random-access",
        {**at.named_file(some), "access": "random"},
        saved,
        0.5 * float(saved.sum()),
        min(float(at.held.sum()), 1.1 * float(saved.sum())),
        min(test, 0.01),
        contrast_of(at, wild, inner, "random-access"),
        {"bytes_per_request": float(np.median(at.calls.bytes[some]))},
    )


def _main_class(at: Situation, some: Flags) -> Flags:
    """The calls of the kind and size in which these calls spend most time."""
    names, place = np.unique(at.queues.classes, return_inverse=True)
    seconds = np.bincount(place[some], at.own[some], minlength=len(names))
    return np.asarray(place == int(np.argmax(seconds)))


def _small(at: Situation, some: Flags) -> Candidate | None:
    """The fixed cost of each request dominates."""
    large = some & (at.calls.bytes >= BLOCK)
    some = some & (at.calls.bytes < BLOCK)
    if some.sum() < 2:
        return None
    size = float(np.median(at.calls.bytes[some]))
    share, low, high = fixed_share(at, some)
    # In requests of one block, as many fixed costs remain.
    kept = size / BLOCK

    def saved(fixed: float) -> Floats:
        factor = 1 - fixed * (1 - kept)
        return _savings(at, some, at.queues.lone * factor, at.queues.held * factor)

    direction = "read" if at.calls.kind[some][0] == READ else "write"
    culprit: dict[str, object] = {"bytes_per_request": int(size), **at.named_file(some)}
    if "file" in culprit:
        culprit |= at.task_of(some & (at.calls.file == at.main_file(some)))
    named = some
    if "application" not in culprit and len(makers := at.few_ranks_of(some)):
        culprit["ranks"] = at.seen.rank_numbers[makers].tolist()
        named = some & np.isin(at.calls.rank, makers)
    seconds = saved(share)
    return Candidate(
        "small-requests",
        culprit,
        seconds,
        float(saved(low).sum()),
        float(saved(high).sum()),
        at.chance_of_ranks(some),
        contrast_of(at, some, large, "small-requests"),
        {"requests": int(named.sum()), "bytes_per_request": size, "direction": direction},
    )


def _redundant(at: Situation, some: Flags) -> Candidate | None:
    """Many ranks read the same bytes of a file."""
    known = some & (at.calls.file >= 0) & (at.calls.offset >= 0)
    if not known.any():
        return None
    copies = read_copies(at)
    count = len(copies)
    seconds = np.bincount(at.calls.file[known], at.own[known], minlength=count)
    pairs = np.unique(at.calls.file[known] * at.ranks + at.calls.rank[known])
    readers = np.bincount(pairs // at.ranks, minlength=count)
    seconds[(copies < COPIES) | (readers < COPIES)] = 0.0
    if not seconds.any():
        return None
    file = int(np.argmax(seconds))
    mine = some & (at.calls.file == file)
    factor = 1 / copies[file]
    rank_share = at.busiest_rank(at.own, mine)
    rest = np.maximum(0.0, at.held - rank_share)
    # Read once: at most what one rank's reads take alone, shared by all at best.
    after = rank_share * factor
    saved = np.maximum(0.0, at.held - rest - after)
    return Candidate(
        "redundant-reads",
        {"file": at.path(file)},
        saved,
        float(np.maximum(0.0, at.held - rest - 3 * after).sum()),
        float((at.held - rest).sum()),
        at.chance_of_ranks(mine),
        contrast_of(at, mine, None, "redundant-reads"),
        {"copies": float(copies[file]), "readers": int(readers[file]),
         "bytes": float(at.calls.bytes[mine].sum() / copies[file])},
    )  # fmt: skip
