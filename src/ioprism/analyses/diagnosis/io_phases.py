"""One segmentation of a job's I/O: when it does any, with pauses inside a phase joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.analyses.diagnosis.calls import Floats, Ints
from ioprism.views.time.intervals import unite

# Short and long gaps are two kinds where they differ by this factor.
CLEAR = 4.0
# A gap below this share of the busy time is a pause inside a phase, whatever the others are.
SHORTEST = 0.002


@dataclass(frozen=True, slots=True, eq=False)
class IoPhases:
    """Disjoint stretches of time, in order."""

    start: Floats  # seconds
    end: Floats

    def __len__(self) -> int:
        return len(self.start)

    def of(self, moments: Floats) -> Ints:
        """Return the phase that each moment lies in, or the one before it."""
        return np.maximum(0, np.searchsorted(self.start, moments, side="right") - 1)

    def as_one(self) -> IoPhases:
        """Return one phase from the first call to the last, for ranks that never wait."""
        return IoPhases(self.start[:1], self.end[-1:])

    def joined_across(self, seconds: float) -> IoPhases:
        """Return phases joined across the shortest gaps that together last so long.

        For calls that are known to have been made, though not when: they hide in the gaps.
        """
        gaps = self.start[1:] - self.end[:-1]
        order = np.argsort(gaps)
        hidden = order[np.cumsum(gaps[order]) <= seconds]
        kept = np.setdiff1d(np.arange(len(gaps)), hidden)
        first, last = np.concatenate(([0], kept + 1)), np.concatenate((kept, [len(gaps)]))
        return IoPhases(self.start[first], self.end[last]) if len(self) else self


def io_phases(start: Floats, end: Floats) -> IoPhases:
    """Join calls to phases."""
    begins, finishes = unite(start, end)
    gaps = begins[1:] - finishes[:-1]
    breaks = np.flatnonzero(gaps > longest_pause(gaps, finishes - begins))
    first = np.concatenate(([0], breaks + 1))[: len(begins)]
    last = np.concatenate((breaks, [len(begins) - 1]))[: len(begins)]
    return IoPhases(begins[first], finishes[last])


def longest_pause(gaps: Floats, busy: Floats) -> float:
    """Return the longest gap that is a pause inside a phase rather than time between phases.

    Gaps part where two neighbours, by length, differ most. Without a clear parting they are of
    one kind: nobody does I/O then, so they separate phases unless they are negligible.
    """
    if not len(gaps):
        return 0.0
    floor = SHORTEST * float(busy.sum())
    ordered = np.sort(gaps[gaps > floor])
    if not len(ordered):
        return float(gaps.max())
    ratios = ordered[1:] / ordered[:-1]
    widest = int(np.argmax(ratios)) if len(ratios) else 0
    if len(ratios) and ratios[widest] >= CLEAR:
        return float(ordered[widest])
    return floor
