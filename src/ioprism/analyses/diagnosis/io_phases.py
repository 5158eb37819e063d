"""One segmentation of a job's I/O: when it does any, with pauses inside a phase joined."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.records import dataclass
from ioprism.views.time.intervals import unite

# Short and long gaps are two kinds where they differ by this factor.
CLEAR = 4.0
# A gap below this share of the busy time is a pause inside a phase, whatever the others are.
SHORTEST = 0.002
# Ranks that leave a stretch of calls at once, by chance: less likely the more they are.
FEWEST_TOGETHER = 3
MOST_PHASES = 2_000


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


def io_phases(start: Floats, end: Floats, rank: Ints) -> IoPhases:
    """Join calls to phases.

    Where most ranks are in calls together and all of them have left, a phase ends, however short
    the pause: they waited for each other. Other pauses end a phase if they are not negligible.
    """
    begins, finishes = unite(start, end)
    if not len(begins):
        return IoPhases(begins, finishes)
    together = _together(begins, start, rank)
    gaps = begins[1:] - finishes[:-1]
    apart = gaps > longest_pause(gaps, finishes - begins)
    if int((together[1:] & together[:-1]).sum()) <= MOST_PHASES:
        apart |= together[1:] & together[:-1]
    breaks = np.flatnonzero(apart)
    first = np.concatenate(([0], breaks + 1))
    last = np.concatenate((breaks, [len(begins) - 1]))
    return IoPhases(begins[first], finishes[last])


def _together(begins: Floats, start: Floats, rank: Ints) -> Flags:
    """In which stretches most of the ranks that do I/O take part."""
    stretch = np.searchsorted(begins, start, side="right") - 1
    ranks = int(rank.max()) + 1
    pairs = np.unique(stretch * ranks + rank)
    taking_part = np.bincount(pairs // ranks, minlength=len(begins))
    return taking_part >= max(FEWEST_TOGETHER, 0.5 * len(np.unique(rank)))


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
