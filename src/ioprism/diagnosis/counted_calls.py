"""Calls that extended tracing of Darshan leaves out, placed in time as its counters allow.

DXT records reads and writes. Opens, closes and syncs are in the counters of the same log: a file
that is opened once has the exact times of its open and close; other metadata calls come before a
request, and syncs behind one, where their rank pauses longest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ioprism.diagnosis.rows import (
    METADATA,
    SYNC,
    UNKNOWN,
    WRITE,
    CallRows,
    Floats,
    Ints,
    merge_rows,
    no_rows,
    single_calls,
    unique,
)
from ioprism.model.arrays import believable_metadata

MAX_STRETCH = 20.0  # times the mean that one call may take, where others do not fit


@dataclass(frozen=True, slots=True, eq=False)
class CountedCalls:
    """Rows for calls that only counters know of."""

    rows: CallRows
    syncs: Floats  # number of sync calls by rank
    opens: Floats  # number of opens by rank


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """What one rank did to one file, by the counters."""

    rank: Ints
    file: Ints
    meta: Floats  # seconds
    opens: Floats
    syncs: Floats
    writing: Floats  # seconds in writes and syncs
    opened: Floats  # times of the first open, from start to end; 0 where it is not known
    ready: Floats
    closing: Floats  # of the last close
    closed: Floats
    written: Floats  # end of the last write or sync


def rows_known_by_counters(
    table: pl.DataFrame | None,
    streams: pl.DataFrame | None,
    rows: CallRows,
    numbers: Ints,
    *,
    ranks: int,
    share: float,
    runtime: float | None,
) -> CountedCalls:
    """Return what counters add to the traced calls of a job with so many ranks.

    Where the trace itself has metadata calls, counters add nothing.

    Args:
        table: POSIX counters.
        streams: STDIO counters. A file with traced requests may be closed as a stream.
        rows: traced calls.
        numbers: the log's number of each rank.
        ranks: of the job.
        share: of the job's I/O that the traced calls stand for.
        runtime: seconds.
    """
    nothing = np.zeros(len(numbers))
    if table is None or (rows.kind == METADATA).any() or not len(rows):
        return CountedCalls(no_rows(), nothing, nothing)
    posix = _module_calls(table, rows, numbers, ranks=ranks, share=share, runtime=runtime)
    if streams is None:
        return posix
    traced = unique(rows.file[rows.file >= 0])
    table = streams.filter(pl.col("file").is_in(pl.Series(traced).implode())).rename(
        lambda name: name.replace("STDIO_", "POSIX_")
    )
    known = merge_rows(rows, posix.rows)
    stdio = _module_calls(table, known, numbers, ranks=ranks, share=share, runtime=runtime)
    return CountedCalls(merge_rows(posix.rows, stdio.rows), posix.syncs, posix.opens)


def _module_calls(
    table: pl.DataFrame,
    rows: CallRows,
    numbers: Ints,
    *,
    ranks: int,
    share: float,
    runtime: float | None,
) -> CountedCalls:
    nothing = np.zeros(len(numbers))
    records = _records(table, rows, numbers, ranks)
    if not believable_metadata(records.rank, records.meta, runtime):
        return CountedCalls(no_rows(), nothing, nothing)
    syncs, opens = (
        np.asarray(np.bincount(records.rank, made, minlength=len(numbers)), np.float64)
        for made in (records.syncs, records.opens)
    )
    exact, left, number = no_rows(), records.meta * share, records.opens * share
    if share == 1:
        exact, left, number = _exact_calls(rows, records)
    placed = merge_rows(rows, exact)
    sync = _place(
        placed, records, _sync_seconds(rows, records, share), records.syncs * share, SYNC, runtime
    )
    placed = merge_rows(placed, sync)
    meta = _place(placed, records, left, np.maximum(1.0, number), METADATA, runtime)
    return CountedCalls(merge_rows(exact, sync, meta), syncs * share, opens * share)


def _records(table: pl.DataFrame, rows: CallRows, numbers: Ints, job_ranks: int) -> _Records:
    """One record per rank and file; of records of all ranks, an equal part for each."""
    known = table.filter(pl.col("file").is_not_null())
    names = (
        "F_META_TIME",
        "OPENS",
        "F_WRITE_TIME",
        "F_OPEN_START_TIMESTAMP",
        "F_OPEN_END_TIMESTAMP",
        "F_CLOSE_START_TIMESTAMP",
        "F_CLOSE_END_TIMESTAMP",
        "F_WRITE_END_TIMESTAMP",
    )
    meta, opens, writing, *times = (_column(known, name) for name in names)
    syncs = _column(known, "FSYNCS") + _column(known, "FDSYNCS")
    file = known["file"].cast(pl.Int64).to_numpy()
    number = known["rank"].cast(pl.Int64).to_numpy()
    place = np.searchsorted(numbers, number)
    own = np.flatnonzero(
        (number >= 0) & (np.append(numbers, UNKNOWN)[np.minimum(place, len(numbers))] == number)
    )
    users = unique(rows.file * (len(numbers) + 1) + rows.rank)
    shared, ranks, present = _expand(np.flatnonzero(number < 0), file, users, len(numbers))
    entry = np.concatenate((own, shared))
    rank = np.concatenate((place[own], ranks))
    # All ranks open a file that they share, also those whose requests others make for them;
    # only ranks with requests sync it.
    openers = np.maximum(np.minimum(opens[shared], job_ranks), np.maximum(present, 1))
    opening, part = (
        np.concatenate((np.ones(len(own)), 1 / x)) for x in (openers, np.maximum(present, 1))
    )
    # Times of a record of all ranks are of the first and last one: not those of each rank.
    exact = np.concatenate((np.ones(len(own)), np.zeros(len(shared))))
    opened, ready, closing, closed, written = (x[entry] * exact for x in times)
    meta, opens = (x[entry] * opening for x in (meta, opens))
    syncs, writing = (x[entry] * part for x in (syncs, writing))
    return _Records(
        rank, file[entry], meta, opens, syncs, writing, opened, ready, closing, closed, written
    )


def _column(table: pl.DataFrame, name: str) -> Floats:
    whole = f"POSIX_{name}"
    if whole not in table.columns:
        return np.zeros(table.height)
    values = table[whole].cast(pl.Float64).fill_null(0).fill_nan(0).to_numpy()
    return np.asarray(np.maximum(0.0, values), np.float64)


def _expand(records: Ints, file: Ints, users: Ints, ranks: int) -> tuple[Ints, Ints, Ints]:
    """Repeat records of all ranks for each rank that has calls on their file."""
    low = np.searchsorted(users, file[records] * (ranks + 1))
    high = np.searchsorted(users, (file[records] + 1) * (ranks + 1))
    count = high - low
    step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    ranked = users[np.repeat(low, count) + step] % (ranks + 1)
    return np.repeat(records, count), ranked, np.repeat(count, count)


def _exact_calls(rows: CallRows, records: _Records) -> tuple[CallRows, Floats, Floats]:
    """Opens and closes whose times are known, and the seconds and the opens that remain.

    A file that is opened once has the times of its open and close; one that is opened again is
    open at its first request.
    """
    once = (records.opens == 1) & (records.ready >= records.opened) & (records.opened > 0)
    again = (records.opens > 1) & (records.opened > 0)
    ready = np.where(once, records.ready, _first_requests(rows, records))
    opening = np.where(
        (once | again) & (ready >= records.opened) & np.isfinite(ready),
        np.minimum(ready - records.opened, records.meta),
        0.0,
    )
    closing = np.where(
        once & (records.closed > records.closing),
        np.minimum(records.closed - records.closing, records.meta - opening),
        0.0,
    )
    parts = []
    for begin, length in ((records.opened, opening), (records.closed - closing, closing)):
        some = length > 0
        parts.append(
            _metadata_rows(
                begin[some], length[some], records.rank[some], records.file[some], METADATA
            )
        )
    left = np.maximum(0.0, records.meta - opening - closing)
    return merge_rows(*parts), left, records.opens - (again & (opening > 0))


def _first_requests(rows: CallRows, records: _Records) -> Floats:
    """When each record's first traced request begins; infinite where there is none."""
    files = int(max(records.file.max(initial=0), rows.file.max(initial=0))) + 1
    some = rows.moves_data & (rows.file >= 0)
    key = rows.rank[some] * files + rows.file[some]
    order = np.lexsort((rows.start[some], key))
    names, first = np.unique(key[order], return_index=True)
    wanted = records.rank * files + records.file
    if not len(names):
        return np.full(len(wanted), np.inf)
    place = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return np.where(names[place] == wanted, rows.start[some][order][first][place], np.inf)


def _sync_seconds(rows: CallRows, records: _Records, share: float) -> Floats:
    """Seconds in sync calls: Darshan adds them to the write time, DXT does not record them."""
    files = int(max(records.file.max(initial=0), rows.file.max(initial=0))) + 1
    writes = (rows.kind == WRITE) & (rows.file >= 0)
    key, names = rows.rank[writes] * files + rows.file[writes], records.rank * files + records.file
    order = np.argsort(names)
    place = np.minimum(np.searchsorted(names[order], key), max(len(names) - 1, 0))
    matches = names[order][place] == key if len(names) else np.zeros(0, bool)
    traced = np.zeros(len(names))
    np.add.at(traced, order[place[matches]], rows.seconds[writes][matches])
    return np.where(records.syncs > 0, np.maximum(0.0, records.writing * share - traced), 0.0)


def _place(
    rows: CallRows,
    records: _Records,
    seconds: Floats,
    counts: Floats,
    kind: int,
    runtime: float | None,
) -> CallRows:
    """Put seconds of each record into the longest pauses next to its requests.

    Syncs follow a request (a database reads between its last write and the sync), metadata calls
    come before one. There are as many as `counts`.
    """
    wanted = np.flatnonzero(seconds > 0)
    if not len(wanted):
        return no_rows()
    files = int(max(records.file.max(), rows.file.max())) + 1
    key_of = records.rank * files + records.file
    order = wanted[np.argsort(key_of[wanted], kind="stable")]
    names = key_of[order]
    begin, end = _pauses(rows, records, order, behind=kind == SYNC, runtime=runtime)
    key = rows.rank * files + rows.file
    place = np.minimum(np.searchsorted(names, key), len(names) - 1)
    mine = np.flatnonzero(
        rows.moves_data & (names[place] == key) & (rows.file >= 0) & (end > begin)
    )
    group = place[mine]
    pause = (end - begin)[mine]
    # Of each record, as many pauses as there are calls, the longest first.
    ranked = np.lexsort((-pause, group))
    mine, group, pause = mine[ranked], group[ranked], pause[ranked]
    nth = np.arange(len(group)) - np.searchsorted(group, group)
    chosen = nth < np.maximum(1, np.ceil(counts[order][group]))
    mine, group, pause = mine[chosen], group[chosen], pause[chosen]
    lengths = _fill(group, pause, seconds[order], len(names))
    made = counts[order][group] / np.maximum(1, np.bincount(group, minlength=len(names))[group])
    at = begin[mine] if kind == SYNC else end[mine] - lengths
    placed = _metadata_rows(at, lengths, rows.rank[mine], rows.file[mine], kind)
    return replace(placed, count=np.maximum(made, 1e-9)).select(lengths > 0)


def _pauses(
    rows: CallRows, records: _Records, wanted: Ints, *, behind: bool, runtime: float | None
) -> tuple[Floats, Floats]:
    """The pause of its rank behind, or before, each row."""
    last = np.append(rows.rank[1:] != rows.rank[:-1], True)
    first = np.append(True, rows.rank[1:] != rows.rank[:-1])
    if behind:
        end = np.append(rows.start[1:], 0.0)
        done = np.zeros(int(rows.rank.max()) + 1)
        np.maximum.at(
            done, records.rank[wanted], np.maximum(records.written, records.closed)[wanted]
        )
        end[last] = np.maximum(done[rows.rank[last]], rows.end[last])
        limit = runtime or np.inf
        return rows.end, np.minimum(limit, np.maximum(end, rows.end))
    begin = np.append(0.0, rows.end[:-1])
    begin[first] = 0.0
    return np.minimum(begin, rows.start), rows.start


def _fill(group: Ints, pause: Floats, seconds: Floats, groups: int) -> Floats:
    """Share seconds over pauses: equal parts as far as they fit, the rest in proportion."""
    number = np.maximum(1, np.bincount(group, minlength=groups))
    length = np.minimum(pause, (seconds / number)[group])
    left = np.maximum(0.0, seconds - np.bincount(group, length, minlength=groups))
    room = np.maximum(0.0, np.minimum(pause, MAX_STRETCH * (seconds / number)[group]) - length)
    total = np.maximum(np.bincount(group, room, minlength=groups), 1e-12)
    return np.asarray(length + np.minimum(room, (left / total)[group] * room), np.float64)


def _metadata_rows(start: Floats, length: Floats, rank: Ints, file: Ints, kind: int) -> CallRows:
    count = len(start)
    return single_calls(
        start,
        start + length,
        rank,
        file,
        np.full(count, kind),
        np.full(count, UNKNOWN),
        np.zeros(count, np.int64),
        inferred=True,
    )
