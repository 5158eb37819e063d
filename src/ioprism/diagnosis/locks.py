"""Locks on files: what waits for one, and which ranks use a file in turn because of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioprism.diagnosis.limits import MAJORITY, MINOR
from ioprism.diagnosis.rows import CallRows, Flags, Floats, single_calls, unique
from ioprism.model.arrays import median, unite

if TYPE_CHECKING:
    from ioprism.diagnosis.limits import Limits


def join_lock_waits(rows: CallRows, lock: Flags, limits: Limits) -> CallRows:
    """Let each request begin with the wait for the lock that its rank takes for it.

    A file system that locks by itself keeps the request waiting; a program that locks first waits
    for the same reason, in a separate call. A lock that no request follows stays as it is.

    Args:
        rows: calls, by rank and start.
        lock: which of them lock or unlock a file.
        limits: how long a rank may pause between a lock and the request.
    """
    data = np.flatnonzero(rows.moves_data & (rows.bytes > 0))
    call = np.flatnonzero(lock)
    if not len(call) or not len(data):
        return rows
    after = np.searchsorted(data, call)
    request = data[np.minimum(after, len(data) - 1)]
    gaps = np.concatenate(([0.0], np.maximum(0.0, rows.start[1:] - rows.end[:-1])))
    pauses = np.cumsum(gaps)
    near = pauses[request] - pauses[call] <= np.maximum(rows.seconds[call], limits.min_wait)
    follows = (after < len(data)) & (rows.rank[request] == rows.rank[call]) & near
    waited = np.bincount(request[follows], rows.seconds[call[follows]], minlength=len(rows))
    earliest = rows.start.copy()  # threads of a process may wait at the same time
    np.minimum.at(earliest, request[follows], rows.start[call[follows]])
    kept = np.ones(len(rows), np.bool_)
    kept[call[follows]] = False
    return single_calls(
        np.maximum(rows.start - waited, earliest)[kept],
        rows.end[kept],
        *(getattr(rows, name)[kept] for name in ("rank", "file", "kind", "offset", "bytes")),
    ).sort()


WINDOW = 16  # requests, on average, that fit into a window in which they are counted


def files_in_turn(rows: CallRows, limits: Limits) -> bool:
    """Return whether ranks use the files that they share one after the other.

    Either no request begins before the one of another rank ends, although by chance many would.
    Or, as clocks of ranks may differ by a request, there is one request under way at any time,
    on average over a few of them, and their number varies less than by chance.
    """
    some = np.flatnonzero(rows.moves_data & (rows.bytes > 0) & (rows.file >= 0))
    some = some[np.lexsort((rows.start[some], rows.file[some]))]
    file, rank = rows.file[some], rows.rank[some]
    taken_over = np.concatenate(([False], (np.diff(file) == 0) & (np.diff(rank) != 0)))
    shared = np.bincount(file, taken_over) >= limits.min_calls if len(some) else np.zeros(0)
    in_turn = 0.0
    for one in np.flatnonzero(shared).tolist():
        first, last = np.searchsorted(file, (one, one + 1))
        calls = rows.select(some[first:last])
        if _never_overlap(calls, taken_over[first:last], limits) or _one_at_a_time(calls, limits):
            in_turn += float(calls.seconds.sum())
    return in_turn > MAJORITY * float(rows.seconds[some].sum())


def _never_overlap(calls: CallRows, taken_over: Flags, limits: Limits) -> bool:
    """Whether hardly any request that follows one of another rank begins before its end."""
    begin, finish = unite(calls.start, calls.end)
    busy = float((finish - begin).sum()) / max(float(finish[-1] - begin[0]), 1e-12)
    expected = busy * float(taken_over.sum())
    before = np.maximum.accumulate(calls.end)[:-1]
    together = float((taken_over[1:] & (calls.start[1:] < before)).sum())
    return expected >= limits.min_calls and together <= MINOR * expected


def _one_at_a_time(calls: CallRows, limits: Limits) -> bool:
    """Whether there is one request under way in all windows with requests."""
    length = WINDOW * max(float(calls.seconds.mean()), 1e-9)
    first, last = float(calls.start.min()), float(calls.end.max())
    windows = int((last - first) / length)
    if not limits.min_calls <= windows <= len(calls):
        return False
    edges = np.asarray(first + length * np.arange(windows + 1), np.float64)
    under_way = np.diff(np.subtract(_since(calls.start, edges), _since(calls.end, edges))) / length
    usual = under_way[under_way > MAJORITY]
    if len(usual) < limits.min_calls or abs(median(usual) - 1) > MINOR:
        return False
    users = len(unique(calls.rank))
    by_chance = (1 - 1 / users) / WINDOW
    return float(usual.var()) < limits.chance_variance[0] * by_chance


def _since(moments: Floats, until: Floats) -> Floats:
    """Seconds from all earlier moments until each of some others, added up."""
    ordered = np.sort(moments)
    number = np.searchsorted(ordered, until)
    return np.asarray(number * until - np.append(0.0, ordered.cumsum())[number], np.float64)
