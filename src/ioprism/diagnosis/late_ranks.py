"""Do ranks wait for each other, and does one of them delay the others by computing?

Ranks meet when each has done its burst of calls, or inside a collective call, which returns only
after the last rank has arrived. What a rank does between two meetings outside calls is computing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ioprism.diagnosis.limits import MINOR, NEARLY_ALL
from ioprism.diagnosis.locks import files_in_turn
from ioprism.diagnosis.rows import (
    CallRows,
    Flags,
    Floats,
    Ints,
    first_of_each,
    own_time,
    rank_test,
    unique,
)
from ioprism.model.arrays import Cover, median, unite

if TYPE_CHECKING:
    from ioprism.diagnosis.limits import Limits
    from ioprism.diagnosis.observed import LibraryCalls
    from ioprism.diagnosis.rows import IoPhases

MIN_BURSTS = 3  # of each rank: fewer do not show whether lateness persists
MAX_BURSTS = 64  # compared
MIN_PAUSE = 0.002  # of the time in calls: shorter gaps are inside bursts
CLEAR_STEP = 4.0  # between the longest gap inside bursts and the shortest between them
INTERVALS, MOMENTS = 64, 256  # of the run, and of each interval: where concurrency is counted


def ranks_wait(rows: CallRows, windows: Floats, limits: Limits, *, collective: bool) -> bool:
    """Return whether a rank that is late with one burst is on time again with the next.

    Where ranks meet, all start the next burst together, whichever was late; where they do not,
    what delays one rank's burst delays all its later ones. Bursts are compared by number: where
    ranks differ in it, or bursts leave it open, the number of ranks in calls decides. Ranks that
    use a file in turn wait for each other in any case.

    Args:
        rows: calls of all ranks.
        windows: where each window of a sample begins.
        limits: the lateness that lasts.
        collective: whether there are collective calls, in which ranks meet.
    """
    bursts = rank_bursts(rows)
    if files_in_turn(rows, limits):
        return True
    if bursts is None:
        return collective or not is_independent(rows, windows, limits)
    start, end = (t[:, :MAX_BURSTS] - np.median(t[:, :MAX_BURSTS], axis=0) for t in bursts)
    # A rank that always computes longer is late each time, also where all wait for it: what
    # counts is how much later each burst makes it.
    added = (end - start)[:, :-1]
    kept = np.diff(start, axis=1)
    total = max(float((added**2).sum()), 1e-12)
    part = float((added * kept).sum()) / total
    error = 2 * math.sqrt(float(((kept - part * added) ** 2).mean()) / total)
    if part + error < limits.lateness_kept:
        return True
    return part < limits.lateness_kept and (collective or not is_independent(rows, windows, limits))


def is_independent(rows: CallRows, windows: Floats, limits: Limits) -> bool:
    """Return whether the number of ranks in calls varies as it would by chance.

    Ranks that wait for each other are in calls together or not at all, so their number varies
    much; where they take turns it hardly varies. Chance is computed in intervals of the run,
    because ranks may be busier at some times.

    Args:
        rows: calls of all ranks.
        windows: where each window of a sample begins.
        limits: the ratios of variances that chance gives.
    """
    made = np.bincount(rows.rank)
    if len(made) < 2 or median(made) < 2 * limits.min_calls:
        return False
    own = own_time(rows)
    start, end = unite(rows.start, rows.end)
    few = np.bincount(rows.rank, own).max() >= limits.busy_rank_share * float((end - start).sum())
    variances = _variance_ratios(rows, own, windows, 2 * limits.min_calls)
    if len(variances) < (limits.min_intervals if few else 1):
        return False
    low, middle, high = np.quantile(variances, (MINOR, 0.5, NEARLY_ALL))
    steady = limits.steady_variance[0] <= low and high <= limits.steady_variance[1]
    by_chance = limits.chance_variance[0] <= middle <= limits.chance_variance[1]
    return bool(by_chance and (steady or not few))


def _variance_ratios(rows: CallRows, own: Floats, windows: Floats, least: int) -> list[float]:
    """Variance of the number of ranks in calls over what chance makes it, by interval."""
    ranks = int(rows.rank.max()) + 1
    starts, ends = np.sort(rows.end - own), np.sort(rows.end)
    parts = max(1, min(INTERVALS, len(rows) // least))
    order = np.argsort(rows.start)
    even = np.arange(1, parts) * len(rows) // parts  # the same number of calls in each
    cuts = np.union1d(even, np.searchsorted(rows.start[order], windows))
    ratios = []
    for mine in np.split(order, cuts):
        if len(mine) < least:
            continue
        first, last = float(rows.start[mine].min()), float(rows.end[mine].max())
        moments = np.linspace(first, last, MOMENTS)
        active = np.searchsorted(starts, moments, "right") - np.searchsorted(ends, moments)
        share = np.bincount(rows.rank[mine], own[mine], minlength=ranks) / max(last - first, 1e-12)
        by_chance = float((share * (1 - share)).clip(min=0.0).sum())
        ratios.append(float(active.var()) / max(by_chance, 1e-12))
    return ratios


def rank_bursts(rows: CallRows) -> tuple[Floats, Floats] | None:
    """Start and end of the bursts of each rank; None where ranks differ in their number."""
    if not len(rows):
        return None
    firsts = first_of_each(rows.rank)
    gap = rows.start[1:] - rows.end[:-1]
    inside = np.diff(rows.rank) == 0
    pauses = gap[inside & (gap > 0)]
    if not len(pauses):
        return None
    breaks = np.flatnonzero(~inside | (gap > longest_pause(pauses, rows.end - rows.start))) + 1
    begin = np.concatenate(([0], breaks))
    last = np.concatenate((breaks, [len(rows)])) - 1
    counts = np.diff(np.concatenate((np.searchsorted(begin, firsts), [len(begin)])))
    if len(counts) < 2 or counts[0] < MIN_BURSTS or not (counts == counts[0]).all():
        return None
    shape = (len(firsts), int(counts[0]))
    return rows.start[begin].reshape(shape), rows.end[last].reshape(shape)


def longest_pause(gaps: Floats, busy: Floats) -> float:
    """Return the longest gap inside a burst; longer ones separate bursts.

    Sorted gaps are split where neighbours differ most. Without a clear split all gaps that are
    not negligible separate bursts.
    """
    if not len(gaps):
        return 0.0
    floor = MIN_PAUSE * float(busy.sum())
    ordered = np.sort(gaps[gaps > floor])
    if not len(ordered):
        return float(gaps.max())
    ratios = ordered[1:] / ordered[:-1]
    widest = int(np.argmax(ratios)) if len(ratios) else 0
    return float(ordered[widest]) if len(ratios) and ratios[widest] >= CLEAR_STEP else floor


@dataclass(frozen=True, slots=True, eq=False)
class LateRanks:
    """Who is late, and how long the others wait."""

    ranks: Ints  # among those that do I/O
    waited: float  # seconds, in all meetings
    meetings: int
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """When each rank comes to each meeting, and when it leaves: rank by meeting."""

    ranks: Ints  # of each row
    arrival: Floats
    leaving: Floats

    def compute_seconds(self, io: Cover) -> Floats:
        """Seconds before each arrival since the last meeting, without any rank's I/O.

        A rank that comes after others' calls may have waited for them, one after the other.
        """
        left = np.concatenate((np.zeros((len(self.ranks), 1)), self.leaving[:, :-1]), axis=1)
        met = np.broadcast_to(left.max(axis=0), left.shape)
        since = np.where(self.arrival >= met, met, left)  # who comes earlier has not waited
        return np.maximum(0.0, self.arrival - since - io.within(since, self.arrival))


def find_late_ranks(
    rows: CallRows, above: LibraryCalls, runtime: float, limits: Limits
) -> LateRanks | None:
    """Return the ranks for which the others wait longest."""
    io = Cover(rows.start, rows.end)
    bursts = rank_bursts(rows)
    meetings = [] if bursts is None else [Meetings(unique(rows.rank), *bursts)]
    for mine, shape in collective_calls(above):
        ranks = above.rank[mine].reshape(shape)[:, 0]
        start, end = (times[mine].reshape(shape) for times in (above.start, above.end))
        meetings.append(Meetings(ranks, start, end))
    late = [_late(met.ranks, met.compute_seconds(io), runtime, limits) for met in meetings]
    return max((x for x in late if x is not None), key=lambda x: x.waited, default=None)


def _late(ranks: Ints, computed: Floats, runtime: float, limits: Limits) -> LateRanks | None:
    """Return the ranks that usually come later than others."""
    if computed.shape[0] < limits.min_ranks or computed.shape[1] < MIN_BURSTS:
        return None
    lateness = np.median(computed - np.median(computed, axis=0), axis=1)
    late = lateness > 0.5 * lateness.max()  # ranks that are as late are late together
    if not 0 < late.sum() <= 0.5 * len(late):
        return None
    waited = np.maximum(0.0, computed[late].max(axis=0) - computed[~late].max(axis=0))
    test = rank_test(computed[late].ravel(), computed[~late].ravel()) * len(late)
    if waited.sum() <= limits.min_share * runtime or test > limits.significance:
        return None
    return LateRanks(ranks[late], float(waited.sum()), computed.shape[1], test)


def collective_calls(above: LibraryCalls) -> Iterator[tuple[Ints, tuple[int, int]]]:
    """Yield, file by file, collective calls that all of the file's ranks make equally often."""
    rows = np.flatnonzero(above.collective)
    rows = rows[np.lexsort((above.start[rows], above.rank[rows], above.file[rows]))]
    for mine in np.split(rows, first_of_each(above.file[rows])[1:]) if len(rows) else ():
        _, counts = np.unique(above.rank[mine], return_counts=True)
        if len(counts) > 1 and (counts == counts[0]).all():
            yield mine, (len(counts), int(counts[0]))


def start_at_last_arrival(above: LibraryCalls) -> Floats:
    """When collective calls start for all: before the last rank arrives, ranks wait for it."""
    start = above.start.copy()
    for mine, shape in collective_calls(above):
        begins, ends = start[mine].reshape(shape), above.end[mine].reshape(shape)
        last = np.broadcast_to(begins.max(axis=0), shape)
        # Calls that do not overlap are not the same collective call.
        together = np.broadcast_to((ends >= last).all(axis=0), shape)
        start[mine] = np.where(together, last, begins).ravel()
    return start


def idle_phases(rows: CallRows, phases: IoPhases) -> Flags:
    """Phases whose I/O ends before the last rank has arrived: they stall no one."""
    bursts = rank_bursts(rows)
    if bursts is None:
        return np.zeros(len(phases), np.bool_)
    first, last = bursts[0].min(axis=0), bursts[0].max(axis=0)
    meeting = np.searchsorted(first, phases.start, side="right") - 1
    return np.asarray((meeting >= 0) & (phases.end < last[np.maximum(meeting, 0)]))
