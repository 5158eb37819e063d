"""Which phases are the beats of a rhythm, and when is the next one due?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.analyses.periodicity.onsets.segments import Phases, find_pauses, find_phases
from ioprism.analyses.periodicity.results import Period
from ioprism.analyses.quantiles import median
from ioprism.model.signal import Signal

MIN_DISTANCES = 2
TYPICAL = 0.15  # of the period; the middle distance of beats is no further from it
NEARBY = 0.5  # of the period; a beat further from its place is a missing or an extra one
MOST_ASTRAY = 0.25  # share of the distances
RECENT = 8  # distances that say when the next beat is due


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """A signal split into phases by its levels, and by its pauses; None where it cannot be."""

    by_levels: Phases | None
    by_pauses: Phases | None

    @property
    def count(self) -> int:
        """How many phases there are, by whichever way finds more."""
        return max(0 if part is None else len(part) for part in (self.by_levels, self.by_pauses))


def segments(signal: Signal) -> Segments:
    """Split a signal both ways."""
    return Segments(find_phases(signal), find_pauses(signal))


def beats(parts: Segments, period: Period) -> Phases | None:
    """The phases that are about one period apart, or None if neither way gives such."""
    ways = [part for part in (parts.by_levels, parts.by_pauses) if part is not None]
    astray = [(_astray(part, period.seconds), number) for number, part in enumerate(ways)]
    share, number = min(astray, default=(1.0, 0))
    return ways[number] if share <= MOST_ASTRAY else None


def _astray(found: Phases, period: float) -> float:
    """Share of the distances that are not about a period; 1 if they are another rhythm's."""
    distances = np.diff(found.starts)
    if len(distances) < MIN_DISTANCES or abs(median(distances) - period) > TYPICAL * period:
        return 1.0
    return float(np.mean(np.abs(distances - period) >= NEARBY * period))
