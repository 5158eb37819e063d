"""Where does a read or write without an offset begin? The file pointer, replayed.

A process's pointer into a file is set by open and seek, and moved by reads and writes. One
pointer is kept per process and path: a file that a process has open twice shares it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UNKNOWN = np.iinfo(np.int64).min
RELATIVE = -(2**62)  # far below any position, and far above UNKNOWN
RELATIVE_BELOW = -(2**61)


@dataclass(slots=True)
class FilePointers:
    """The pointers of all processes, kept from one batch of calls to the next.

    Pointers may also be followed from the middle of a trace on, with `unset=RELATIVE`: those
    that nothing has set yet then stand at `RELATIVE` and what they were moved since.
    """

    at: dict[int, int] = field(default_factory=dict)  # key -> position
    unset: int = UNKNOWN  # where a pointer stands that nothing has set

    def replay(self, key: Integers, *, sets: Flags, moves: Flags, amount: Integers) -> Integers:
        """Return each call's position before it; `UNKNOWN` where nothing tells.

        Args:
            key: one number per process and file.
            sets: calls after which the pointer stands at `amount` (`UNKNOWN`: anywhere).
            moves: calls that begin at the pointer and move it on by `amount`.
            amount: the position that is set, or the bytes that are moved.
        """
        positions = np.full(len(key), UNKNOWN)
        touched = np.flatnonzero(sets | moves)
        if not len(touched):
            return positions
        order = touched[np.argsort(key[touched], kind="stable")]
        positions[order] = self._run(key[order], sets[order], amount[order])
        return positions

    def _run(self, key: Integers, sets: Flags, amount: Integers) -> Integers:
        first = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        last = np.append(first[1:], len(key)) - 1
        # Positions are running sums since the last time the pointer was set: each call's sum
        # is over the calls before it, and what lies before the last setting is taken away.
        moved = np.where(sets, 0, amount)
        sums = np.cumsum(moved)
        before = sums - moved
        base = np.zeros(len(key), np.int64)
        base[first] = [self.at.get(k, self.unset) for k in key[first].tolist()]
        anchor = np.zeros(len(key), np.int64)
        anchor[first] = first
        since = np.maximum.accumulate(anchor)
        settings = np.flatnonzero(sets)
        position = _positions(base[since], before - before[since])
        if len(settings):
            latest = np.full(len(key), -1)
            latest[settings] = settings
            latest = np.maximum.accumulate(latest)
            previous = np.concatenate(([-1], latest[:-1]))
            known = previous >= since
            index = previous[known]
            position[known] = _positions(amount[index], before[known] - sums[index])
        after = np.where(sets, amount, _positions(position, moved))
        for k, value in zip(key[first].tolist(), after[last].tolist(), strict=True):
            self.at[k] = value
        return position

    def advance(self, later: FilePointers) -> None:
        """Move on by what happened later, followed with `unset=RELATIVE`."""
        for key, value in later.at.items():
            if not UNKNOWN < value < RELATIVE_BELOW:
                self.at[key] = value
            elif self.at.get(key, UNKNOWN) != UNKNOWN:
                self.at[key] += value - RELATIVE


def _positions(base: Integers, moved: Integers) -> Integers:
    return np.where(base == UNKNOWN, UNKNOWN, base + np.where(base == UNKNOWN, 0, moved))
