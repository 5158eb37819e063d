"""Calls that move no data: syncs, opens, stats and closes, and loading programs.

Codes: frequent-sync, metadata, library-start.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.from_counters import write_bounds
from ioprism.diagnosis.limits import DOMINANT, MAJORITY, MINOR
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, propose
from ioprism.diagnosis.rows import (
    ALL_RANKS,
    METADATA,
    READ,
    SYNC,
    UNKNOWN,
    WRITE,
    Flags,
    Floats,
    Ints,
    departures,
    medians_by,
    unique,
)
from ioprism.model.arrays import Cover, median
from ioprism.model.verdict import Decision

RECORD = Decision(
    "record every call, to time syncs and opens one by one",
    "strace -f -ttt -T -o trace.txt COMMAND",
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Find metadata and sync calls that stall the job."""
    program = program_rows(observed)
    yield from _library_start(observed, program)
    yield from _frequent_sync(observed)
    yield from _metadata(observed, program)


def _without(observed: Observed, some: Flags, kept: Floats) -> Change:
    """Only `kept` of these rows' seconds remain.

    Data calls then follow each other faster: they may have to wait for targets.
    """
    part = np.where(some, kept, 1.0)
    chain = observed.own * part
    alone = Scenario(chain, observed.service.occupied * part)
    crowded = (
        _crowding(observed, observed.rows.moves_data & ~some) if observed.synchronised else 0.0
    )
    if not crowded:
        return Change(alone, alone, alone)
    own_after = observed.busiest_rank(chain) + observed.waiting_after(chain)
    after = _without_served(observed, some, kept)
    mixed = (1 - crowded) * own_after + crowded * after
    return _lasting(observed, mixed, np.maximum(after, own_after), np.minimum(after, own_after))


def _without_served(observed: Observed, some: Flags, kept: Floats) -> Floats:
    """Seconds of each phase where one server serves all ranks: less what it spends on these."""
    served = departures(observed.rows, np.zeros(len(observed.rows), np.int64))
    return np.maximum(0.0, observed.stall - observed.by_phase(served * (1 - kept), some))


def _lasting(observed: Observed, *seconds: Floats) -> Change:
    """Phases last these seconds: most likely, at worst, at best."""
    nothing, none = np.zeros(len(observed.rows)), np.zeros(len(observed.phases))
    return Change(*(Scenario(nothing, floor=x, waiting=none) for x in seconds))


def _crowding(observed: Observed, some: Flags) -> float:
    """How calls slow down as others come: 0 not at all, 1 in proportion to their number.

    0 as well where all moments are equally crowded.
    """
    if not observed.per_call or some.sum() < 2 * observed.limits.many_requests:
        return 0.0
    rows = observed.rows
    started = np.searchsorted(np.sort(rows.start), rows.start, side="right")
    ended = np.searchsorted(np.sort(rows.end), rows.start, side="right")
    beside = np.maximum(1, started - ended)[some].astype(np.float64)
    quiet, crowded = np.quantile(beside, [MINOR, 1 - MINOR])
    if crowded < observed.limits.apart * quiet:
        return 0.0
    kind, log = observed.service.classes[some], np.log(np.maximum(rows.seconds[some], 1e-9))
    names, middle = medians_by(kind, log)
    level = log - middle[np.searchsorted(names, kind)]
    few, many = beside <= quiet, beside >= crowded
    step = np.log(beside[many]).mean() - np.log(beside[few]).mean()
    return float(np.clip((level[many].mean() - level[few].mean()) / step, 0.0, 1.0))


def _frequent_sync(observed: Observed) -> Iterator[Proposal]:
    """Data is forced to storage more often than once per file and phase.

    One sync per step is what a program that wants its data safe must do: it is not a cause.
    """
    rows = observed.rows
    syncs = rows.kind == SYNC
    if not syncs.any():
        return
    kept = _needed_syncs(observed, syncs)
    weight = observed.own * (rows.count > 0)
    if float((kept * weight)[syncs].sum()) > MAJORITY * float(weight[syncs].sum()):
        return
    some = syncs & (kept < 1)
    with_work = _with_transactions(observed, some, kept)
    count = _fewer_syncs if observed.per_call else _counted_syncs
    change = count(observed, some | (with_work < 1), with_work)
    culprit: dict[str, object] = {"operation": "sync", **observed.file_culprit(some)}
    number = (
        float(rows.count[some].sum())
        if not observed.per_call
        else float(observed.syncs.sum() or rows.count[some].sum())
    )
    if len(makers := observed.few_ranks(some)):
        culprit["ranks"] = observed.numbers(makers)
        number = float(rows.count[some & np.isin(rows.rank, makers)].sum())
    several = len(unique(rows.file[some & (rows.file >= 0)])) > 1
    facts = {"syncs": round(number), "directory": observed.directory(some) if several else ""}
    peers = rows.moves_data
    yield propose(
        observed, "frequent-sync", some, change, RECORD, facts, culprit=culprit, peers=peers
    )


def _with_transactions(observed: Observed, some: Flags, kept: Floats) -> Floats:
    """The part of each row that remains: with a sync goes what is done for it alone.

    A file that is opened again for every few syncs, such as the journal of a database or a log
    that is opened for each record, is opened and written once for each transaction.
    """
    rows, key = observed.rows, observed.rank_file
    opens = (rows.kind == METADATA) & (rows.rank >= 0)
    size = int(key.max()) + 1
    opened, made = (np.bincount(key[x], rows.count[x], minlength=size) for x in (opens, some))
    left = np.ones(size)
    np.minimum.at(left, key[some], kept[some])
    limits = observed.limits
    each = (made >= limits.many_syncs) & (opened * limits.transaction_syncs >= made)
    mine = each[key] & (rows.rank >= 0) & (rows.moves_data | opens)
    return np.where(mine, left[key], kept)


def _needed_syncs(observed: Observed, syncs: Flags) -> Floats:
    """The part of each sync row that is needed: one per rank, file and phase of writes."""
    rows = observed.rows
    kept = np.ones(len(rows))
    file_key = observed.rank_file
    key = observed.phase * (int(file_key.max()) + 1) + file_key
    names, place = np.unique(key, return_inverse=True)
    made = np.bincount(place[syncs], rows.count[syncs], minlength=len(names))
    users = np.where(rows.rank == ALL_RANKS, observed.ranks, 1.0)
    kept[syncs] = np.minimum(1.0, (users / np.maximum(made[place], 1e-9))[syncs])
    # Many syncs of little data each are frequent however the program pauses between them.
    every, total = (
        np.bincount(file_key[x], v[x], minlength=int(file_key.max()) + 1)
        for x, v in ((syncs, rows.count), (rows.kind == WRITE, rows.bytes))
    )
    each = total / np.maximum(every, 1.0)
    tiny = (
        syncs
        & (every[file_key] >= observed.limits.many_syncs * users)
        & (each[file_key] < observed.limits.tiny_file)
    )
    wanted = np.maximum(users, total[file_key] / observed.limits.block)
    few = np.minimum(1.0, wanted / np.maximum(every[file_key], 1e-9))
    return np.where(tiny, np.minimum(kept, few), kept)


def _counted_syncs(observed: Observed, some: Flags, kept: Floats) -> Change:
    """Counters add the time of syncs to that of writes: from the least to the most of it."""
    rows = observed.rows
    base = np.where(some, observed.own * kept, observed.own)
    key = observed.rank_file
    writes = np.flatnonzero(rows.kind == WRITE)
    longer, shorter = np.zeros(int(key.max()) + 1), np.zeros(int(key.max()) + 1)
    scale = observed.own[writes] / np.maximum(rows.total[writes], 1e-12)
    # One interrupted write of one rank is not what the others' writes take.
    longest = np.minimum(rows.longest[writes], 3 * median(rows.longest[writes]))
    least, most = write_bounds(
        rows.count[writes],
        rows.bytes[writes].astype(np.float64),
        longest,
        np.full(len(writes), np.inf),
        observed.limits,
    )
    longer[key[writes]] = np.maximum(0.0, most - rows.total[writes]) * scale
    shorter[key[writes]] = np.maximum(0.0, rows.total[writes] - least) * scale
    stays = np.minimum(observed.own, longer[key])
    worst = np.where(some, stays + (observed.own - stays) * kept, observed.own)
    beside = (rows.kind == WRITE) & np.isin(key, key[some])
    best = np.where(beside & ~some, observed.own - shorter[key], base)
    return Change(Scenario(base), Scenario(worst), Scenario(best))


def _fewer_syncs(observed: Observed, some: Flags, kept: Floats) -> Change:
    """What goes is the busiest rank's time in syncs, or the time that servers spend on them.

    Servers that sync keep writes of other ranks waiting. Without syncs, these come sooner and may
    wait for each other instead: likely for half of that time, unless the servers' time shows
    that they waited for syncs.
    """
    part = np.where(some, kept, 1.0)
    chain, work = observed.own * part, observed.busiest_target(observed.service.occupied * part)
    quick = np.where(some, chain, np.maximum(0.0, chain - _behind(observed, some)))
    quick = np.maximum(quick, np.minimum(chain, observed.service.uncontended * part))
    alone, free = (
        np.maximum(observed.busiest_rank(x), work) + observed.waiting_after(x)
        for x in (chain, quick)
    )
    after = _without_served(observed, some, kept) if observed.synchronised else alone
    best = np.minimum(free, after)
    likely = best if after.sum() < alone.sum() else (np.minimum(alone, after) + best) / 2
    return _lasting(observed, likely, np.maximum(alone, after), best)


def _behind(observed: Observed, some: Flags) -> Floats:
    """Seconds of each write in which any of some other rows is under way."""
    rows = observed.rows
    busy = Cover(rows.start[some], rows.end[some])
    return np.where(rows.kind == WRITE, busy.within(rows.start, rows.end), 0.0)


def program_rows(observed: Observed) -> Flags:
    """Rows on small files that most ranks read and none writes, where there are many of them."""
    rows, limits = observed.rows, observed.limits
    known = rows.file >= 0
    users = observed.ranks_of_files(known)
    reads, writes = (observed.by_file(rows.bytes, rows.kind == kind) for kind in (READ, WRITE))
    each = reads / np.maximum(users, 1)
    # What all ranks look up without reading is the search for the files that they do read.
    wanted = (users >= max(2, 0.5 * observed.ranks)) & (writes == 0) & (each < limits.program_file)
    if (wanted & (reads > 0)).sum() < limits.many_files:
        return np.zeros(len(rows), np.bool_)
    return np.asarray(known & wanted[np.maximum(rows.file, 0)])


def _library_start(observed: Observed, some: Flags) -> Iterator[Proposal]:
    """Every rank loads the same small files: one rank of each node could."""
    if not some.any() or observed.ranks < observed.limits.min_ranks:
        return
    if observed.per_call:
        if observed.nodes == 1:
            return  # its memory keeps what the first rank has read
        part = 1 / max(1.0, observed.io_ranks / observed.nodes)
        change = _without(observed, some, np.full(len(observed.rows), part))
    else:  # counters do not show nodes: from one rank for all to each node's first
        scenarios = [
            Scenario(np.where(some, observed.own * part, observed.own))
            for part in (1 / observed.limits.min_ranks, 0.5, 1 / observed.ranks)
        ]
        change = Change(*scenarios)
    files = unique(observed.rows.file[some])
    facts = {"files": len(files), "ranks": observed.ranks, "nodes": observed.nodes}
    culprit = {"directory": observed.directory(some)}
    yield propose(observed, "library-start", some, change, RECORD, facts, culprit=culprit)


def _metadata(observed: Observed, program: Flags) -> Iterator[Proposal]:
    """Opens, stats and closes: as few as the data needs, one open for each rank and file."""
    rows = observed.rows
    start = program | observed.of_programs
    some = (rows.kind == METADATA) & ~start
    if not some.any():
        return
    tiny = _tiny(observed) & ~start
    even, first = _needed_metadata(observed, some, tiny, start)
    kept = (even + first) / 2
    beyond = np.bincount(np.maximum(rows.rank[some], 0), (rows.count * (1 - kept))[some])
    if float(beyond.max(initial=0.0)) < observed.limits.many_files:
        return
    gone = some & (kept < 1)
    if not gone.any():
        return
    files, counts = np.unique(rows.file[some & (rows.file >= 0)], return_counts=True)
    culprit: dict[str, object] = {"operation": "open", **_where(observed, gone)}
    culprit |= observed.task(some)
    number = float(rows.count[gone].sum())
    few = _needed_of_few(observed, tiny)
    weight = (observed.own * (1 - kept))[gone & (rows.file >= 0)]
    each = _calls_per_file(observed, gone, weight, counts)
    likely, worst, best = (
        _without(observed, some | tiny, np.where(tiny, few, part)) for part in (kept, first, even)
    )
    yield propose(
        observed,
        "metadata",
        gone | tiny,
        Change(likely.likely, worst.worst, best.best),
        RECORD,
        {"files": len(files), "calls": round(number), "calls_per_file": each},
        culprit=culprit,
        slow=gone,
        peers=rows.moves_data,
    )


def _calls_per_file(observed: Observed, gone: Flags, weight: Floats, counts: Ints) -> float:
    if observed.per_call:
        return median(counts) if len(counts) else 0.0
    calls = observed.rows.count[gone & (observed.rows.file >= 0)]
    return float(np.average(calls, weights=weight + 1e-12)) if len(calls) else 0.0


def _needed_metadata(
    observed: Observed, some: Flags, tiny: Flags, start: Flags
) -> tuple[Floats, Floats]:
    """The part of each metadata row that the data needs: if all cost the same, or the first most.

    One open for each rank and file that moves data, or as the program asked: of files that it
    opens through MPI-IO, the library opens them again.
    """
    rows = observed.rows
    files = int(rows.file.max(initial=0)) + 3
    # Few files hold what is in many tiny ones: as if each rank had one of them.
    file = np.where(np.isin(rows.file, rows.file[tiny]), files - 1, rows.file + 1)
    key = (rows.rank + 1) * files + file
    names, place = np.unique(key, return_inverse=True)
    moving = rows.moves_data & (rows.bytes > 0) & ~start
    needed = np.bincount(place[moving], minlength=len(names)) > 0
    users = np.where(rows.rank == ALL_RANKS, observed.ranks, 1.0)
    if observed.per_call:
        # A trace has an open, a close and perhaps a stat for each use of a file.
        phased = unique(observed.phase[moving] * len(names) + place[moving])
        uses = np.bincount(phased % len(names), minlength=len(names))
        opens = np.bincount(place[some], rows.count[some], minlength=len(names))
        wanted = np.asarray(uses * _calls_per_use(observed, some), np.float64)
        even = np.minimum(1.0, wanted / np.maximum(opens, 1e-9))
        return np.where(some, even[place], 1.0), _first_calls(observed, some, place, wanted)
    made = np.bincount(place[some], rows.count[some], minlength=len(names))
    wanted = np.where(needed[place], users, 0.0)
    asked = np.zeros(observed.file_count + 1)  # the last one for rows without a file
    for entry in observed.library_files:
        if entry.file < observed.file_count:
            asked[entry.file] = entry.ranks
    wanted = np.maximum(wanted, np.where(some, asked[rows.file], 0.0))
    even = np.where(some, np.minimum(1.0, wanted / np.maximum(made[place], 1e-9)), 1.0)
    return even, even


def _first_calls(observed: Observed, some: Flags, key: Ints, wanted: Floats) -> Floats:
    """1 for so many rows of each key, the first ones of each phase before all others; else 0.

    A file's first open may create it, which costs more than opening it again.
    """
    rows = observed.rows
    call = np.flatnonzero(some)
    call = call[np.lexsort((rows.start[call], observed.phase[call], key[call]))]
    names, phases = key[call], observed.phase[call]
    turn = np.arange(len(call)) - _begins((np.diff(names) != 0) | (np.diff(phases) != 0))
    call = call[np.lexsort((phases, turn, names))]
    names, made = key[call], rows.count[call]
    before = np.cumsum(made) - made
    before -= before[_begins(np.diff(names) != 0)] if len(call) else before
    kept = np.ones(len(rows))
    kept[call] = np.clip((wanted[names] - before) / np.maximum(made, 1e-9), 0.0, 1.0)
    return kept


def _begins(breaks: Flags) -> Ints:
    """For each row, where its run begins; `breaks` are between rows."""
    number = np.arange(len(breaks) + 1)
    return np.maximum.accumulate(np.where(np.concatenate(([True], breaks)), number, 0))


def _calls_per_use(observed: Observed, some: Flags) -> float:
    """Metadata calls for each open, at least one."""
    opens = float(observed.opens.sum())
    made = float(observed.rows.count[some].sum())
    return max(1.0, made / opens) if opens > 0 else 1.0


def _where(observed: Observed, some: Flags) -> dict[str, object]:
    """The file with nearly all of these seconds, or the directory of many files."""
    rows = observed.rows
    if not (some & (rows.file >= 0)).any():
        return {}
    spent = observed.by_file(observed.own, some)
    worst = observed.main_file(some)
    if worst != UNKNOWN and spent[worst] >= DOMINANT * spent.sum() > 0:
        return {"file": observed.files.path(worst)}
    if (spent > 0).sum() <= 2 * observed.ranks:
        return {}
    directory = observed.directory(some)
    return {"directory": directory} if directory not in ("", "/") else {}


def _tiny(observed: Observed) -> Flags:
    """Rows on files that hold next to nothing, where there are many of them for each rank."""
    rows, limits = observed.rows, observed.limits
    known = (rows.moves_data | (rows.kind == SYNC)) & (rows.file >= 0) & (rows.rank >= 0)
    size = observed.by_file(rows.bytes, known)
    files = np.flatnonzero((size > 0) & (size < limits.tiny_file))
    if len(files) < limits.many_files * observed.ranks:
        return np.zeros(len(rows), np.bool_)
    return np.asarray(known & np.isin(rows.file, files))


def _needed_of_few(observed: Observed, tiny: Flags) -> Floats:
    """The part of each row that remains where few files hold all: a sync per rank and phase."""
    syncs = tiny & (observed.rows.kind == SYNC)
    each = observed.of_sessions(observed.by_rank(observed.rows.count, syncs), 1.0)
    return np.where(syncs, 1 / np.maximum(each, 1.0), 0.0)
