"""Which phases are the beats of a rhythm, and when is the next one due?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import Signal
from ioprism.periodicity.onsets.scales import phases_of_job
from ioprism.periodicity.onsets.segments import (
    IntArray,
    Phases,
    busy_runs,
    find_pauses,
    find_phases,
    join_runs,
)
from ioprism.periodicity.results import Period

MIN_DISTANCES = 2
HALF = 0.5  # of a pause: what is shorter lies within a phase
MUCH_LONGER = 2.0  # than a usual phase
TYPICAL = 0.15  # of the period; the middle distance of beats is no further from it
NEARBY = 0.5  # of the period; a beat further from its place is a missing or an extra one
MOST_ASTRAY = 0.25  # share of the distances


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """A signal split into phases in several ways; None where it cannot be."""

    by_levels: Phases | None
    by_pauses: Phases | None
    of_job: Phases | None = None  # as `ioprism phases` splits it: however little they move
    by_known: Phases | None = None  # at the pauses of a rhythm that is known

    @property
    def counts(self) -> tuple[int, ...]:
        """How many phases there are, by every way."""
        ways = (self.by_levels, self.by_pauses, self.of_job)
        return tuple(0 if part is None else len(part) for part in ways)


def segments(signal: Signal, *, known: Period | None = None) -> Segments:
    """Split a signal in every way, and as a known rhythm suggests."""
    runs = busy_runs(signal)
    return Segments(
        by_levels=find_phases(signal),
        by_pauses=find_pauses(signal),
        of_job=phases_of_job(signal, runs) if len(runs[0]) else None,
        by_known=None if known is None else _at_pauses(signal, runs, known),
    )


def _at_pauses(signal: Signal, runs: tuple[IntArray, IntArray], known: Period) -> Phases | None:
    """Join what is closer than half a usual pause: a phase may be a burst of many requests."""
    if not known.phases:
        return None
    length = median(np.array([end - start for start, end in known.phases]))
    pause = known.seconds - length
    if not len(runs[0]) or pause <= signal.interval:
        return None
    found = join_runs(signal, runs, shortest_gap=HALF * pause / signal.interval)
    # A faster rhythm than the known one would be joined to one long phase.
    return found if found.ends[-1] - found.starts[-1] <= MUCH_LONGER * length else None


def beats(parts: Segments, period: Period) -> Phases | None:
    """The phases that are about one period apart, or None if no way gives such."""
    for ways in ((parts.by_levels, parts.by_pauses), (parts.of_job,), (parts.by_known,)):
        found = [part for part in ways if part is not None]
        astray = [(_astray(part, period.seconds), number) for number, part in enumerate(found)]
        share, number = min(astray, default=(1.0, 0))
        if share <= MOST_ASTRAY:
            return found[number]
    return None


def _astray(found: Phases, period: float) -> float:
    """Share of the distances that are not about a period; 1 if they are another rhythm's."""
    distances = np.diff(found.starts)
    if len(distances) < MIN_DISTANCES or abs(median(distances) - period) > TYPICAL * period:
        return 1.0
    return float(np.mean(np.abs(distances - period) >= NEARBY * period))
