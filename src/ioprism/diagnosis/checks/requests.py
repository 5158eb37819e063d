"""Requests that cost more than their bytes: small, out of order, in lock blocks of other ranks.

Codes: small-requests, random-access, misalignment, shared-file-contention.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ioprism.diagnosis.limits import DOMINANT, MAJORITY, MINOR, NEARLY_ALL, NEGLIGIBLE
from ioprism.diagnosis.observed import DIRECTION, Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast, propose
from ioprism.diagnosis.rows import (
    METADATA,
    READ,
    WRITE,
    Flags,
    Floats,
    Ints,
    departures,
    first_of_each,
    medians_by,
    memory_seconds,
    rank_test,
    steady_seconds,
    typical_seconds,
    unique,
)
from ioprism.model.arrays import median, quantile, unite
from ioprism.model.verdict import Decision

RECORD = Decision(
    "record every call: the median request shows whether small requests were absorbed by a cache",
    "export DXT_ENABLE_IO_TRACE=1",
)
TRY_SIZE = Decision("run once with requests of 1 MiB and compare", "ioprism compare BEFORE AFTER")


def check(observed: Observed) -> Iterator[Proposal]:
    """Find the property of requests that costs most, for each direction."""
    left_out = observed.library_rows | observed.of_programs
    for kind in (READ, WRITE):
        some = (observed.rows.kind == kind) & (observed.rows.bytes > 0) & ~left_out
        if observed.rows.count[some].sum() >= 2:
            yield from _of_direction(observed, some, kind)


def _of_direction(observed: Observed, some: Flags, kind: int) -> Iterator[Proposal]:
    if "offsets" in observed.detail:
        if kind == WRITE:
            contended = _contention(observed, some)
            if contended is not None:
                yield contended
        order = _in_order(observed, some)
        if _disordered(observed, some, order):
            disorder = _out_of_order(observed, some, order)
            if disorder is not None:
                yield disorder
                return
    small = _small(observed, some, kind)
    if small is None:
        return
    yield small
    if _jumps_at_random(observed, small.rows):
        culprit = {**small.culprit, "access": "random"}
        yield replace(small, code="random-access", culprit=culprit)


def _disordered(observed: Observed, some: Flags, order: Flags) -> bool:
    """Whether most requests are out of order, or the jumps within files hold most of the time.

    A jump may bring several requests in order: a program that reads a record in two requests
    makes as many requests in order as jumps, and only the jumps cost anything.
    """
    limits, jumps = observed.limits, some & ~order
    if jumps.sum() > limits.disordered * some.sum():
        return True
    call = np.flatnonzero(some)
    opens = np.zeros(len(some), np.bool_)
    sequence = call[np.lexsort((observed.rows.start[call], observed.rank_file[call]))]
    opens[sequence[first_of_each(observed.rank_file[sequence])]] = True
    spent = float(observed.own[jumps & ~opens].sum())
    return spent > limits.disordered * float(observed.own[some].sum())


def lock_conflicts(observed: Observed, some: Flags) -> Ints:
    """How many blocks of each request another rank touched last."""
    rows = observed.rows
    size = observed.files.block_sizes(rows.file, observed.limits.block)
    call = np.flatnonzero(some & (rows.offset >= 0) & (rows.file >= 0))
    first = rows.offset[call] // size[call]
    last = (rows.offset[call] + rows.bytes[call] - 1) // size[call]
    across = last > first
    request = np.concatenate((call, call[across]))
    block = np.concatenate((first, last[across]))
    order = np.lexsort((rows.end[request], block, rows.file[request]))
    request, block = request[order], block[order]
    same = (block[1:] == block[:-1]) & (rows.file[request][1:] == rows.file[request][:-1])
    other = same & (rows.rank[request][1:] != rows.rank[request][:-1])
    conflicts = np.zeros(len(rows), np.int64)
    np.add.at(conflicts, request[1:][other], 1)
    return conflicts


def _contention(observed: Observed, some: Flags) -> Proposal | None:
    """Requests wait for locks on blocks that other ranks hold."""
    rows, limits = observed.rows, observed.limits
    conflicts = lock_conflicts(observed, some)
    some = some & np.isin(rows.file, rows.file[conflicts > 0])
    locked, free = some & (conflicts > 0), some & (conflicts == 0)
    if not locked.any() or locked.sum() <= observed.limits.few * some.sum():
        return None
    file = observed.main_file(locked)
    if observed.files.is_local(file):
        return None  # one node: no locks are handed over
    block = int(median(observed.files.block_sizes(rows.file, limits.block)[some]))
    size = median(rows.bytes[some])
    interleaved = size < 0.5 * block
    code = "shared-file-contention" if interleaved else "misalignment"
    change, test = (
        _own_blocks(observed, some, locked, free)
        if interleaved
        else _alignment_change(observed, some, locked, free)
    )
    if change is None:
        change, test = _without_hand_over(observed, some, conflicts)
    if change is None:
        return None
    return Proposal(
        code,
        observed.file_culprit(some),
        some,
        change,
        test,
        contrast(observed, locked, free, code),
        RECORD,
        {"stripe_size": block, "bytes_per_request": size},
    )


def _without_hand_over(
    observed: Observed, some: Flags, conflicts: Ints
) -> tuple[Change | None, float]:
    """Requests on one file are served one after the other: those with conflicts take longer.

    The end of a request follows the end of the one before it by its service time, which grows
    with the number of blocks that change hands.
    """
    rows = observed.rows
    served = departures(rows, np.where(some, rows.file, -2 - np.arange(len(rows))))
    # Only requests of one size that wait for each other show what one of them takes.
    queued = (
        some & (served < NEARLY_ALL * rows.seconds) & _main_class(observed, some & (conflicts > 0))
    )
    groups = [queued & (conflicts == n) for n in (0, 1, 2)]
    known = [group for group in groups if group.sum() >= observed.limits.min_group]
    if len(known) < 2:
        return None, 1.0
    low, high = known[0], known[-1]
    # Medians: a run that is interrupted now and then has long requests of every kind.
    quick, slow = (median(served[x]) for x in (low, high))
    test = rank_test(served[high], served[low])
    if test > observed.limits.significance or slow < observed.limits.lock_ratio * quick:
        return None, 1.0
    if (
        not groups[0].sum() >= observed.limits.min_group
    ):  # extrapolate to requests without a conflict
        quick = max(observed.limits.few * quick, 2 * quick - slow)
    usual = np.array([median(served[group]) for group in known])
    weight = np.array([float(group.sum()) for group in known])
    kept = min(1.0, quick / max(float(np.average(usual, weights=weight)), 1e-12))

    def scenario(factor: float) -> Scenario:
        return Scenario(np.where(some, observed.own * min(1.0, factor), observed.own))

    return Change(
        scenario(kept), scenario((1 + kept) / 2), scenario(observed.limits.unsure[0] * kept)
    ), test


def _own_blocks(
    observed: Observed, some: Flags, locked: Flags, free: Flags
) -> tuple[Change | None, float]:
    """Each rank writes one aligned part: no request shares a block with other ranks."""
    service, seconds = observed.service, observed.rows.seconds
    if not service.measured:
        return None, 1.0
    served = np.where(np.isfinite(service.observed), service.observed, seconds)
    slow = float(np.mean(service.occupied[locked]))
    if free.sum() >= observed.limits.min_group:
        test = rank_test(served[locked], served[free])
        quick = median(served[free])
        if test > observed.limits.significance:
            # Targets that serve several calls together hide what one costs: durations show it.
            test = rank_test(seconds[locked], seconds[free])
            whole, alone = (median(seconds[x]) for x in (locked, free))
            quick = slow * (alone / whole if whole > 0 else 1.0)
    else:
        quick, test = (
            quantile(served[locked], NEGLIGIBLE),
            observed.repeat_probability(locked),
        )
    if quick > (1 - NEGLIGIBLE) * slow:
        return None, 1.0
    factor = quick / max(slow, 1e-12)

    def scenario(part: float) -> Scenario:
        chain = np.where(some, np.minimum(observed.own, service.uncontended * part), observed.own)
        return Scenario(chain, np.where(some, service.occupied * part, service.occupied))

    best, worst = (x * factor for x in observed.limits.unsure)
    ends = scenario(min(1.0, worst)), scenario(best)
    return Change(scenario(factor), *ends, service_doubt=False), test


def _alignment_change(
    observed: Observed, some: Flags, locked: Flags, free: Flags
) -> tuple[Change | None, float]:
    """Each request is in one block: it costs one target what it takes alone and unlocked."""
    service, rows = observed.service, observed.rows
    if free.sum() < observed.limits.min_group or not len(observed.pieces.targets):
        return None, 1.0
    seconds = rows.seconds
    served = np.where(np.isfinite(service.observed), service.observed, seconds)
    test = 2 * min(rank_test(x[locked], x[free]) for x in (served, seconds))
    alone = seconds[free & service.idle]
    quick = float(
        median(alone)
        if len(alone) >= observed.limits.min_group
        else np.quantile(seconds[free], MINOR)
    )
    # Targets that serve several calls together leave none alone: no request needs more than the
    # work that targets do for one, less what the locked ones take longer.
    each = float(service.work[some].mean() * seconds[free].mean() / seconds[some].mean())
    most = each if each > 0 else math.inf
    quick = min(quick, most)
    chain = np.where(some, np.minimum(observed.own, quick), observed.own)
    # Ranks in step come to some targets together: as many rounds as do not fit side by side.
    users, targets = len(unique(rows.rank[some])), len(observed.pieces.targets)
    convoy = math.ceil(users / targets) / (users / targets)

    def scenario(fixed: float, part: float) -> Scenario:
        whole = min(most, _on_one_target(observed, free, quick, fixed))
        work = _first_target_work(observed, np.where(some, whole, service.occupied))
        return Scenario(chain, floor=work * part)

    limits = observed.limits
    likely = scenario(limits.lock_seconds, NEARLY_ALL * (1 + convoy) / 2)
    best = scenario(quick / 2, limits.unsure[0])
    return Change(likely, scenario(0.0, convoy), best), min(1.0, test)


def _on_one_target(observed: Observed, free: Flags, quick: float, fixed: float) -> float:
    """Seconds of a request that two targets shared, once one of them has all its bytes.

    All but a fixed part of its time was spent on the larger one of its two pieces.
    """
    rows = observed.rows
    block = observed.files.block_sizes(rows.file, observed.limits.block)
    first = np.minimum(rows.bytes, block - rows.offset % block)
    total = np.maximum(1, rows.bytes)
    larger = np.clip(np.maximum(first, total - first) / total, 0.5, 1.0)
    return quick + max(0.0, quick - fixed) * (1 / median(larger[free]) - 1)


def _first_target_work(observed: Observed, seconds: Floats) -> Floats:
    """The most that any target works in each phase if calls only touch their first target."""
    pieces, count = observed.pieces, len(observed.pieces.targets)
    known = pieces.first >= 0
    key = observed.phase[known] * count + pieces.first[known]
    sums = np.bincount(key, seconds[known], minlength=len(observed.phases) * count)
    return np.asarray(sums.reshape(len(observed.phases), count).max(axis=1), np.float64)


def _in_order(observed: Observed, some: Flags) -> Flags:
    """Which requests begin where the one before them on the same file and target ended."""
    all_rows, call = observed.rows, np.flatnonzero(some)
    target = observed.pieces.first[call]
    order = np.lexsort((all_rows.start[call], all_rows.rank[call], target, all_rows.file[call]))
    call, target = call[order], target[order]
    rows = all_rows.select(call)
    same = (
        (rows.file[1:] == rows.file[:-1])
        & (target[1:] == target[:-1])
        & (rows.rank[1:] == rows.rank[:-1])
    )
    ends, begins = rows.offset + rows.bytes, rows.offset[1:]
    size = observed.files.block_sizes(rows.file, observed.limits.block)
    # On the next stripe of the same target there is a jump by the other targets' stripes.
    stripes = {int(f): len(observed.files.targets(int(f))) for f in unique(rows.file)}
    others = np.array([max(1, stripes[int(f)]) - 1 for f in rows.file[1:]], np.int64)
    jump = np.where(ends[:-1] % size[1:] == 0, others * size[1:], 0)
    ahead = (begins == ends[:-1]) | (begins == ends[:-1] + jump)
    ordered = np.zeros(len(all_rows), np.bool_)
    ordered[call[1:][same & ahead]] = True
    return ordered


def _out_of_order(observed: Observed, some: Flags, order: Flags) -> Proposal | None:
    """Requests out of order cost more than those in order, of the same size."""
    rows, service = observed.rows, observed.service
    some = some & _main_class(observed, some & ~order)
    served = np.where(np.isfinite(service.observed), service.observed, rows.seconds)
    jumps, ordered = some & ~order, some & order
    size = observed.files.block_sizes(rows.file, observed.limits.block)
    opens_stripe = rows.offset % size == 0
    inner, outer = ordered & ~opens_stripe, ordered & opens_stripe
    if inner.sum() < 2:
        return None
    slow, quick = median(served[jumps]), median(served[inner])
    if slow <= memory_seconds(observed, median(rows.bytes[some])):
        return None
    share = min(1.0, median(rows.bytes[some] / size[some]))
    at_border = median(served[outer]) if outer.sum() >= 2 else quick
    ratio = ((1 - share) * quick + share * at_border) / max(slow, 1e-12)
    test = rank_test(served[jumps][:2000], served[inner])
    if test > NEGLIGIBLE or ratio > DOMINANT:
        return None
    # Without a layout, requests in order still wait behind the seeks of other ranks.
    alone = (
        quick
        if len(observed.pieces.targets)
        else _without_seeks(observed, served[jumps], slow - quick)
    )
    likely = ratio * min(1.0, alone / max(quick, 1e-12))

    def scenario(part: float) -> Scenario:
        chain = np.where(some, np.minimum(service.uncontended * part, observed.own), observed.own)
        return Scenario(chain, np.where(some, service.occupied * part, service.occupied))

    return Proposal(
        "random-access",
        {**observed.file_culprit(some), "access": "random"},
        some,
        Change(
            scenario(likely),
            scenario(max(ratio, (1 + likely) / 2)),
            scenario(likely),
            service_doubt=False,
        ),
        min(test, observed.limits.significance),
        contrast(observed, jumps, inner, "random-access"),
        RECORD,
        {"bytes_per_request": median(rows.bytes[some])},
    )


def _without_seeks(observed: Observed, seconds: Floats, seek: float) -> float:
    """Seconds of a request once no request seeks, where those of other ranks go first.

    As many requests wait for one server as lie between the usual request and one that did not
    wait; each of them is shorter by a seek.
    """
    usual, first = median(seconds), quantile(seconds, observed.limits.min_share)
    queue = 1 + (usual - first) / max(seek, 1e-12)
    return max(usual - queue * seek, first - seek, 0.0)


def _main_class(observed: Observed, some: Flags) -> Flags:
    """The calls of the kind and size in which these calls spend most time."""
    names, place = np.unique(observed.service.classes, return_inverse=True)
    seconds = np.bincount(place[some], observed.own[some], minlength=len(names))
    return np.asarray(place == int(np.argmax(seconds)))


def _small(observed: Observed, some: Flags, kind: int) -> Proposal | None:
    """The fixed cost of each request dominates."""
    rows, limits = observed.rows, observed.limits
    large = some & (rows.mean_bytes >= limits.block)
    some = some & (rows.mean_bytes < limits.block) & ((rows.count > 1) | observed.per_call)
    some = some & ~_buffered(observed, some)
    if not observed.per_call:  # records of cached and of costly requests are not averaged
        each = observed.limits.system_call + rows.mean_bytes / observed.limits.memory_rate
        costly = some & (rows.mean_seconds > each)
        some = costly if costly.any() else some
    number = float(rows.count[some].sum())
    if number < (2 if observed.per_call else limits.many_requests):
        return None
    size = float(np.average(rows.mean_bytes[some], weights=rows.count[some]))
    if observed.per_call:
        size = median(rows.bytes[some])
    typical = typical_seconds(observed, some)
    cached = typical <= memory_seconds(observed, size)
    steady = steady_seconds(observed, some)
    share, low, high = fixed_share(observed, some, size)
    if _opened_each_time(observed, some) or _jumps_at_random(observed, some):
        low = 0.0  # the open or the seek before each request may be what makes it slow
    if cached:  # larger requests copy the same bytes: only the system calls go
        share = low = high = max(0.0, 1 - size / observed.limits.memory_rate / max(typical, 1e-12))
    kept = size / limits.block  # in requests of one block, this part of the fixed costs remains
    service = observed.service

    def scenario(fixed: float, sure: Floats, *, library_goes: bool = True) -> Scenario:
        gone = fixed * (1 - kept)
        mine = _share_of_library(observed, some) if library_goes else 0.0
        library = observed.library * (1 - gone * mine)
        chain = observed.own - sure * gone
        work = service.occupied * np.where(some, 1 - gone, 1.0) if observed.per_call else None
        return Scenario(chain, work, library=library)

    # The median call reached storage, so size matters also where a limiter delivers in slices.
    # Counters have no median: where one call is far longer than the mean, it may be all.
    whole = steady if cached else np.where(some, observed.own, 0.0)
    worst = np.maximum(steady, 0.5 * whole) if observed.per_call and not cached else steady
    change = Change(
        scenario(share, whole),
        scenario(low, worst, library_goes=not cached),
        scenario(high, whole),
        service_doubt=False,
    )
    culprit: dict[str, object] = {"bytes_per_request": round(size), **observed.file_culprit(some)}
    if "file" in culprit:
        culprit |= observed.task(some & (rows.file == observed.main_file(some)))
    named = some
    if "application" not in culprit and len(makers := observed.few_ranks(some)):
        culprit["ranks"] = observed.numbers(makers)
        named = some & np.isin(rows.rank, makers)
    code = "random-access" if _goes_back(observed, some) else "small-requests"
    culprit |= {"access": "random"} if code == "random-access" else {}
    number = round(float(rows.count[named].sum()))
    facts = {"requests": number, "bytes_per_request": size, "direction": DIRECTION[kind]}
    decide = TRY_SIZE if observed.per_call else RECORD
    return propose(observed, code, some, change, decide, facts, culprit=culprit, peers=large)


def _buffered(observed: Observed, some: Flags) -> Flags:
    """Calls on streams that only copy to or from the stream's buffer: they are not requests.

    What they cost is the program's own work, and the clock of the tracer that times each.
    """
    rows, limits = observed.rows, observed.limits
    streams = some & np.isin(rows.file, observed.streams)
    if not streams.any():
        return streams
    beyond = rows.mean_seconds - limits.system_call - rows.mean_bytes / limits.memory_rate
    names, middle = medians_by(observed.rank_file[streams], beyond[streams])
    return streams & np.isin(observed.rank_file, names[middle <= 0])


def _opened_each_time(observed: Observed, some: Flags) -> bool:
    """Whether most requests come with an open of their file."""
    rows = observed.rows
    key = observed.rank_file
    meta, made = (
        np.bincount(key[x], rows.count[x], minlength=int(key.max()) + 1)
        for x in (rows.kind == METADATA, some)
    )
    opened = min(float(made[meta >= made].sum()), float(observed.opens.sum()))
    return opened > MAJORITY * float(made.sum())


def _goes_back(observed: Observed, some: Flags) -> bool:
    """Whether requests come in random order, of which every second one goes back.

    They cannot be joined to larger ones unless their order changes. Requests for the same few
    places have no order.
    """
    rows = observed.rows
    reach = rows.offset + rows.bytes if observed.per_call else observed.extent
    if (reach[some] < observed.limits.many_requests * rows.mean_bytes[some]).all():
        return False
    if observed.per_call:
        call = np.flatnonzero(some)
        call = call[np.lexsort((rows.start[call], rows.rank[call], rows.file[call]))]
        same = (np.diff(rows.file[call]) == 0) & (np.diff(rows.rank[call]) == 0)
        ends = rows.offset[call] + rows.bytes[call]
        back = float((same & (rows.offset[call][1:] < ends[:-1])).sum())
    else:
        back = float(observed.backward[some].sum())
    return 2 * back > observed.limits.disordered * float(rows.count[some].sum())


def _jumps_at_random(observed: Observed, some: Flags) -> bool:
    """Whether counters leave open that the order costs the time, rather than the size.

    Many requests continue the one before; of the others, about as many go back as forward.
    Counters do not tell how the time is shared between them.
    """
    if observed.per_call or _goes_back(observed, some):
        return False
    jumps, back = (float(x[some].sum()) for x in (observed.jumps, observed.backward))
    made, limits = float(observed.rows.count[some].sum()), observed.limits
    return jumps > limits.few * made and 2 * back > DOMINANT * jumps


def _share_of_library(observed: Observed, some: Flags) -> Floats:
    """The part of each phase's library time that independent calls of MPI-IO on these files take.

    A library that passes requests on one by one spends its time on each of them.
    """
    if not observed.library_files:
        return np.zeros(len(observed.phases))
    below = np.isin(observed.rows.file, [entry.file for entry in observed.library_files])
    mine = observed.by_phase(observed.own, some & below)
    return mine / np.maximum(observed.by_phase(observed.own, below), 1e-12)


def fixed_share(observed: Observed, some: Flags, size: float) -> tuple[float, float, float]:
    """Return which part of a request's time does not depend on its size: likely, low, high."""
    rows, service = observed.rows, observed.service
    rates = observed.limits.target_rate
    if not observed.per_call:
        cost, own = typical_seconds(observed, some), some & (rows.rank >= 0)
        # Larger requests may take as long where the storage behind them is slow, or was at times,
        # or serves several threads of a rank.
        threads = float(rows.total[own].sum()) / max(float(rows.seconds[own].sum()), 1e-12)
        queue, slowest = 1.0, observed.limits.stream_rate / max(1.0, threads)
        if targets := len(observed.pieces.targets):
            queue, slowest = max(1.0, len(unique(rows.rank[own])) / targets), rates[0]
        shares = [
            float(np.clip(1 - size / rate / max(cost / queue, 1e-12), 0.0, 1.0))
            for rate in (slowest, *rates[1:])
        ]
        return shares[1], shares[0], shares[2]
    known = np.isfinite(service.observed)
    waited = some & known & ~service.idle
    chosen = waited if waited.sum() >= 4 * observed.limits.min_calls else some
    seconds = np.where(chosen & known & ~service.idle, service.observed, rows.seconds)
    sizes, medians = medians_by(rows.bytes[chosen], seconds[chosen])
    counts = np.bincount(np.searchsorted(sizes, rows.bytes[chosen]))
    # The median is 0 where a coarse clock sees most calls begin and end in one tick.
    cost = median(seconds[chosen]) or max(float(seconds[chosen].mean()), 1e-12)
    enough = counts >= observed.limits.min_calls
    sizes, medians, counts = sizes[enough], medians[enough], counts[enough]
    if len(sizes) >= 2 and sizes[-1] >= observed.limits.apart * sizes[0]:
        slope = _slope(sizes.astype(np.float64), medians, counts.astype(np.float64))
        share = float(np.clip(1 - slope * size / cost, 0.0, 1.0))
        doubt = (
            observed.limits.fit_error + _slope_error(seconds[chosen], counts, sizes) * size / cost
        )
        return share, max(0.0, share - doubt), min(1.0, share + doubt)
    cost = max(cost, float(seconds[chosen].mean()))  # with what a limiter holds back
    # Requests under way together may share one server: the time of each holds the bytes of all.
    sharing = 1.0 if len(observed.pieces.targets) else _concurrency(observed, chosen)
    slow, usual, fast = (
        float(np.clip(1 - n * size / rate / cost, 0.0, 1.0))
        for n, rate in zip((sharing, sharing, 1.0), rates, strict=True)
    )
    return usual, slow, fast


def _concurrency(observed: Observed, some: Flags) -> float:
    """How many of these requests are under way at a time, while any is."""
    rows = observed.rows
    begin, end = unite(rows.start[some], rows.end[some])
    return max(1.0, float(rows.seconds[some].sum() / max((end - begin).sum(), 1e-12)))


def _slope(sizes: Floats, seconds: Floats, counts: Floats) -> float:
    """Seconds per byte: the weighted median of the slopes between all pairs of sizes."""
    first, second = np.triu_indices(len(sizes), 1)
    slopes = (seconds[second] - seconds[first]) / (sizes[second] - sizes[first])
    weight = np.minimum(counts[first], counts[second]) * (sizes[second] - sizes[first])
    order = np.argsort(slopes)
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return max(0.0, float(slopes[order][min(middle, len(order) - 1)]))


def _slope_error(seconds: Floats, counts: Ints, sizes: Ints) -> float:
    """Half the width of the slope's 90 % interval, from the spread of single requests."""
    low, high = np.quantile(seconds, [0.25, 0.75])
    error = 1.25 * (high - low) / 1.35 / np.sqrt(np.partition(counts, -2)[-2])
    return float(1.64 * error / (sizes[-1] - sizes[0]))
