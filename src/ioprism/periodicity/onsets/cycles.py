"""Are some phases of a rhythm different from others by turns, such as a read and a write?

Their distances vary, but in the same order again and again: every second one, or every third, is
a period after the other. That is the period, and the phases in between belong to its beat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprism.periodicity.onsets.counting import Beat

UNEVEN = 0.05  # variation of distances, below which all are a period
ROUNDED = 0.5  # of a sample: the most that rounding makes equal distances vary
LONGEST = 4  # phases in a cycle
FEWEST = 3  # cycles
STEADIER = 0.3  # how much less the lengths of cycles vary than distances; jitter adds up instead


def whole_cycles(beats: Sequence[Beat], *, resolution: float) -> tuple[Beat, ...]:
    """One beat for each cycle of phases, or the beats as they are if they have no cycle.

    Args:
        beats: the phases.
        resolution: seconds to which their starts are known.
    """
    starts = np.array([beat.start for beat in beats])
    distances = np.diff(starts)
    # Four samples, four, five, and again: that is how a period is rounded, not a cycle.
    even = max(UNEVEN * float(distances.mean()), ROUNDED * resolution)
    if any(beat.periods > 1 for beat in beats) or distances.std() <= even:
        return tuple(beats)
    for size in range(2, min(LONGEST, len(distances) // FEWEST) + 1):
        cycles = starts[size:] - starts[:-size]
        if cycles.std() <= STEADIER * distances.std():
            return _joined(beats, size, first=_after_longest(distances, size))
    return tuple(beats)


def _after_longest(distances: np.ndarray, size: int) -> int:
    """The first phase of a cycle: the one that the longest pause comes before."""
    before = [float(distances[place::size].mean()) for place in range(size)]
    return (int(np.argmax(before)) + 1) % size


def _joined(beats: Sequence[Beat], size: int, *, first: int) -> tuple[Beat, ...]:
    groups = [beats[place : place + size] for place in range(first, len(beats), size)]
    return tuple(Beat(group[0].start, group[-1].end, 1) for group in groups)
