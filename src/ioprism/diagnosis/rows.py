"""Calls as arrays, one row per call or per counter record and kind of call, and tests on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import median, unite
from ioprism.phase_detection import phase_borders
from ioprism.settings import PhaseSettings

if TYPE_CHECKING:
    from ioprism.diagnosis.observed import Observed


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
N = TypeVar("N", np.int64, np.float64)

READ, WRITE, METADATA, SYNC = range(4)
KINDS = {"read": READ, "write": WRITE, "sync": SYNC}  # every other operation is metadata
UNKNOWN = -1  # offset or file that the log does not name
ALL_RANKS = -1  # the rank of a counter record that sums up all ranks


@dataclass(frozen=True, slots=True, eq=False)
class CallRows:
    """Calls of the layer that reaches storage, ordered by rank and start."""

    start: Floats  # seconds
    end: Floats
    rank: Ints  # 0, 1, 2 … among the ranks that do I/O; ALL_RANKS for a record of all of them
    file: Ints  # row of the file table
    kind: Ints  # READ, WRITE, METADATA, SYNC
    offset: Ints
    bytes: Ints  # of all calls of the row
    count: Floats  # number of calls
    seconds: Floats  # duration of all calls; of a record of all ranks: of its slowest rank
    total: Floats  # the same summed over all ranks
    longest: Floats  # seconds of the longest call; 0 unknown
    inferred: Flags  # rows that only counters know of, placed where the trace leaves room

    def __len__(self) -> int:
        return len(self.start)

    @property
    def moves_data(self) -> Flags:
        """Whether each row is a read or a write."""
        return self.kind <= WRITE

    @property
    def mean_bytes(self) -> Floats:
        """Bytes per call."""
        return self.bytes / np.maximum(self.count, 1.0)

    @property
    def mean_seconds(self) -> Floats:
        """Seconds per call."""
        return self.total / np.maximum(self.count, 1.0)

    def select(self, chosen: Flags | Ints) -> CallRows:
        """Return some of the rows."""
        return CallRows(*(getattr(self, name)[chosen] for name in self.__slots__))

    def sort(self) -> CallRows:
        """Return them by rank and start."""
        return self.select(np.lexsort((self.start, self.rank)))


def single_calls(
    start: Floats,
    end: Floats,
    rank: Ints,
    file: Ints,
    kind: Ints,
    offset: Ints,
    moved: Ints,
    *,
    inferred: bool = False,
) -> CallRows:
    """Return one row per call."""
    duration = end - start
    return CallRows(
        start,
        end,
        rank,
        file,
        kind,
        offset,
        moved,
        np.ones(len(start)),
        duration,
        duration,
        duration,
        np.full(len(start), inferred),
    )


def no_rows() -> CallRows:
    """Return an empty table."""
    nothing, none = np.empty(0), np.empty(0, np.int64)
    return single_calls(nothing, nothing, none, none, none, none, none)


def merge_rows(*parts: CallRows) -> CallRows:
    """Return the rows of several tables, by rank and start."""
    return concatenate_rows(*parts).sort()


def concatenate_rows(*parts: CallRows) -> CallRows:
    """Return the rows of several tables, one after the other."""
    names = CallRows.__slots__
    return CallRows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def own_time(rows: CallRows) -> Floats:
    """Seconds by which each call prolongs its rank's I/O.

    Calls of one rank may overlap (threads, asynchronous calls, a library's call inside another);
    what an earlier call covers is not counted again.
    """
    if not len(rows):
        return rows.end
    # A running maximum that restarts at every rank: lift each rank above all earlier ones.
    span = float(rows.end.max() - rows.start.min()) + 1.0
    lift = rows.rank * span
    running = np.maximum.accumulate(rows.end + lift) - lift
    covered = np.concatenate(([-np.inf], running[:-1]))
    covered[first_of_each(rows.rank)] = -np.inf
    return np.maximum(0.0, rows.end - np.maximum(rows.start, covered))


def first_of_each(keys: npt.NDArray[Any]) -> Ints:
    """Where each run of equal keys begins."""
    if not len(keys):
        return np.empty(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1))


def unique(values: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return each value once, in order.

    `np.unique` does the same, but loads masked arrays: as long as a small log takes to judge.
    """
    ordered = np.sort(values)
    return ordered[first_of_each(ordered)]


def medians_by(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return each key once, and the median of its values."""
    order = np.lexsort((values, keys))
    sorted_keys, sorted_values = keys[order], values[order]
    begin = first_of_each(sorted_keys)
    count = np.diff(np.concatenate((begin, [len(keys)])))
    low, high = begin + (count - 1) // 2, begin + count // 2
    return sorted_keys[begin], (sorted_values[low] + sorted_values[high]) / 2


def departures(rows: CallRows, key: Ints) -> Floats:
    """Seconds from the end of the call before with the same key, or the call's start, to its end.

    Where calls with one key queue for one server, this is what the server spends on each.
    """
    order = np.lexsort((rows.end, key))
    before = np.concatenate(([-np.inf], rows.end[order][:-1]))
    before[first_of_each(key[order])] = -np.inf
    alone = np.empty(len(rows))
    alone[order] = rows.end[order] - np.maximum(rows.start[order], before)
    return alone


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the value below which half of the weight lies; 0 of nothing."""
    if not len(values) or not weights.sum() > 0:
        return 0.0
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


MAX_PHASES = 2_000  # phases times ranks are held in memory


@dataclass(frozen=True, slots=True, eq=False)
class IoPhases:
    """Disjoint intervals of time, in order."""

    start: Floats  # seconds
    end: Floats

    def __len__(self) -> int:
        return len(self.start)

    def find(self, moments: Floats) -> Ints:
        """Return the phase of each moment, or the one before it."""
        return np.maximum(0, np.searchsorted(self.start, moments, side="right") - 1)

    def merge(self) -> IoPhases:
        """Return one phase from the first call to the last."""
        return IoPhases(self.start[:1], self.end[-1:])


def io_phases(start: Floats, end: Floats) -> IoPhases:
    """Join calls to phases, as all commands do."""
    begins, finishes = unite(start, end)
    if not len(begins):
        return IoPhases(begins, finishes)
    _, (first, last) = phase_borders(begins, finishes, PhaseSettings())
    phases = IoPhases(first, last)
    return phases if len(phases) <= MAX_PHASES else phases.merge()


MIN_PROBABILITY = 1e-300


def rank_test(slow: Floats, peers: Floats) -> float:
    """Return how likely chance makes `slow` larger than `peers` (Mann-Whitney, one-sided).

    Exact where all of `slow` are above all peers; else by the normal approximation, where equal
    values count half.
    """
    few, many = len(slow), len(peers)
    if not few or not many:
        return 1.0
    if float(np.min(slow)) > float(np.max(peers)):
        combinations = math.lgamma(few + many + 1) - math.lgamma(few + 1) - math.lgamma(many + 1)
        return max(MIN_PROBABILITY, math.exp(-min(600.0, combinations)))
    ordered = np.sort(peers)
    above = sum(np.searchsorted(ordered, slow, side).sum() for side in ("left", "right")) / 2
    spread = math.sqrt(few * many * (few + many + 1) / 12)
    score = (above - few * many / 2 - 0.5) / spread
    return 0.5 * math.erfc(score / math.sqrt(2))


def outlier_test(value: float, peers: Floats, *, min_spread: float, values: int = 1) -> float:
    """Return how likely a value this far above its peers is (median and absolute deviation).

    The value may be the middle of several `values`.
    """
    if len(peers) < 2:
        return 1.0
    middle = median(peers)
    spread = max(min_spread, 1.4826 * median(np.abs(np.asarray(peers) - middle)))
    score = (value - middle) / (spread * math.sqrt(1 / values + 1 / len(peers)))
    return _probability_above(score, len(peers) - 1)


def repeat_test(seconds: Floats, counts: Floats, least: float, *, trimmed: float) -> float:
    """Return how likely the same calls, made again, take less than `least` seconds together.

    A single slow call is therefore not reported as a cause; many slow calls are. A process that
    is interrupted a few times makes the spread of its calls large, however steady the others
    are: the calls are also tested without the longest ones.

    Args:
        seconds: of each row of calls.
        counts: calls per row; rows of several calls are taken to spread as much as their mean.
        least: seconds.
        trimmed: share of the calls that may be long by chance.
    """
    total = float(counts.sum())
    if total < 2:
        return 1.0
    if (counts > 1).any():
        spent = float(seconds.sum())
        return _probability_above(
            (spent - least) / max(spent / math.sqrt(total), 1e-12), int(total) - 1
        )
    usual = np.sort(seconds)[: len(seconds) - max(1, round(trimmed * len(seconds)))]
    return min(1.0, 2 * min(_repeat(seconds, least), _repeat(usual, least)))


def _repeat(seconds: Floats, least: float) -> float:
    count = len(seconds)
    if count < 2:
        return 1.0
    error = max(float(np.std(seconds, ddof=1)), 1e-12) * math.sqrt(count)
    return _probability_above((float(seconds.sum()) - least) / error, count - 1)


def _probability_above(score: float, freedom: int) -> float:
    """The probability of a higher score in Student's t distribution.

    By Wallace's transform (1959) to a normal score, which is close for all degrees of freedom.
    """
    if score <= 0:
        return 1.0
    normal = math.sqrt(freedom * math.log1p(score**2 / freedom)) * (8 * freedom + 1)
    normal /= 8 * freedom + 3
    return 0.5 * math.erfc(normal / math.sqrt(2))


def steady_seconds(observed: Observed, where: Flags) -> Floats:
    """The part of each row's seconds that is a steady cost per call; 0 outside `where`."""
    rows = observed.rows
    steady = np.zeros(len(rows))
    if not where.any():
        return steady
    if observed.per_call:
        classes = observed.service.classes
        queued = observed.shared_file & rows.moves_data
        key = np.where(queued, rows.file, -2 - rows.rank)
        served = np.where(queued, departures(rows, key), rows.seconds)
        for name in unique(classes[where]):
            some = where & (classes == name) & ~rows.inferred
            if some.sum() < observed.limits.min_calls:
                steady[some] = observed.own[some]
                continue
            # Where calls queue on a shared file, the time between their ends shows their cost.
            cost = served[some]
            usual = observed.limits.long_call * median(cost)
            share = float(np.minimum(cost, usual).sum()) / max(float(cost.sum()), 1e-12)
            steady[some] = observed.own[some] * share
        return steady
    stalled = (rows.longest > observed.limits.stalled_ratio * rows.mean_seconds) & (
        rows.longest > observed.limits.min_wait
    )
    return np.where(where & ~stalled, observed.own, 0.0)


def typical_seconds(observed: Observed, where: Flags) -> float:
    """Seconds of the median call; of counters, the mean call where no call stands out."""
    rows = observed.rows
    return weighted_median(rows.mean_seconds[where], rows.count[where])


def memory_seconds(observed: Observed, size: float) -> float:
    """Seconds of a call that only copies its bytes to or from memory."""
    return observed.limits.system_call + size / observed.limits.memory_rate
