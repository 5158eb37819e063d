"""Calls as arrays: the form in which changes are computed on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ioprism.records import dataclass

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

READ, WRITE, METADATA, SYNC = range(4)
KINDS = {"read": READ, "write": WRITE, "sync": SYNC}  # every other operation is metadata
UNKNOWN = -1  # offset, bytes or file that the trace does not tell


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls of the lowest layer, ordered by rank and start."""

    start: Floats  # seconds
    end: Floats
    rank: Ints  # 0, 1, 2 … among those that do I/O
    file: Ints  # row of the file table
    kind: Ints  # READ, WRITE, METADATA, SYNC
    offset: Ints
    bytes: Ints
    inferred: Flags  # metadata and sync calls that only counters tell of

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> Floats:
        """Seconds from start to end of each call."""
        return self.end - self.start

    @property
    def moves_data(self) -> Flags:
        """Whether each call is a read or a write."""
        return self.kind <= WRITE

    def where(self, chosen: Flags | Ints) -> Calls:
        """Return some of the calls."""
        return Calls(*(getattr(self, name)[chosen] for name in self.__slots__))

    def ordered(self) -> Calls:
        """Return them by rank and start."""
        return self.where(np.lexsort((self.start, self.rank)))


def joined(*parts: Calls) -> Calls:
    """Return calls of several parts, by rank and start."""
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in Calls.__slots__)
    return Calls(*columns).ordered()


def own_time(calls: Calls) -> Floats:
    """Seconds by which each call prolongs its rank's I/O.

    Calls of one rank may overlap (threads, asynchronous calls, a library's call inside another);
    what an earlier call covers is not counted again.
    """
    covered = _latest_end_before(calls)
    return np.maximum(0.0, calls.end - np.maximum(calls.start, covered))


def _latest_end_before(calls: Calls) -> Floats:
    """The latest end of the same rank's earlier calls; minus infinity for the first."""
    if not len(calls):
        return calls.end
    # A running maximum that restarts at every rank: lift each rank above all earlier ones.
    span = float(calls.end.max() - calls.start.min()) + 1.0
    lift = calls.rank * span
    running = np.maximum.accumulate(calls.end + lift) - lift
    before = np.concatenate(([-np.inf], running[:-1]))
    before[first_of_each(calls.rank)] = -np.inf
    return before


def first_of_each(keys: Ints) -> Ints:
    """Where each run of equal keys begins."""
    if not len(keys):
        return np.empty(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1))
