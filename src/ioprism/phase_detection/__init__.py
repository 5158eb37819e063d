"""Cut a job's busy time into I/O phases: the one segmentation that every command uses.

A phase ends where the job stops doing I/O for long. What "long" means is read off the gaps
between busy intervals. Gaps within a phase (a program preparing its next request) and gaps
between phases (a program computing) form two populations on a logarithmic scale; the
threshold is in the emptiest range between them. The search is guided by idle *time*, not
by the number of gaps: a million pauses of a microsecond are not phases. Gaps of one population
either all separate phases, or none does.

Some jobs never stop: a trickle of reads runs on between checkpoints. Their phases are bursts
of the data rate, separated from the trickle in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import StepFunction, median

if TYPE_CHECKING:
    from ioprism.settings import PhaseSettings

Floats = npt.NDArray[np.float64]
Borders = tuple[Floats, Floats]  # where phases start, and where they end

# Gaps shorter than both of these are within a phase: they are invisible on the time line.
INVISIBLE_SECONDS = 0.01
INVISIBLE_SHARE = 1e-3  # of the time from the first call to the last
# The two populations differ by this factor, with at most this share of the long gaps between them.
CLEAR = 4.0
ASTRAY = 0.1
# Short gaps hold at most this share of the idle time, and there is one for two long ones.
SHORT_SHARE = 1 / 3
SHORT_PER_LONG = 0.5
# Gaps whose deviation is at most this share of their mean are even.
EVEN = 0.5
PAUSE = 0.25  # even gaps below this share of the busy intervals are pauses within one phase
# Uneven gaps of one population separate phases where a person would see them, and all gaps
# together must be visible, too: this share of the time from the first call to the last.
VISIBLE_SHARE = 0.01

# Bursts of the data rate.
RATE_BINS = 1024
BURST_FACTOR = 8.0  # a burst's rate is at least this many times the rate between bursts
MOST_FACTOR = 1000.0  # a smaller trickle counts as this much slower
BURST_BYTES = 0.8  # bursts hold at least this share of all bytes


def phase_borders(
    start: Floats, end: Floats, settings: PhaseSettings, *, span: float = 0.0
) -> tuple[float, Borders]:
    """Join disjoint busy intervals, in order, to phases; return the threshold and the borders.

    Args:
        start: when each interval starts, in seconds.
        end: when it ends.
        settings: a threshold of the user's own.
        span: how long the job does I/O, where these intervals are a part of it.
    """
    gaps = start[1:] - end[:-1]
    threshold = settings.gap
    if threshold is None and settings.deviations is not None and len(gaps):
        threshold = float(gaps.mean()) + settings.deviations * float(gaps.std())
    if threshold is None:
        threshold = gap_threshold(start, end, span=span)
    return threshold, _borders(start, end, threshold)


def _borders(start: Floats, end: Floats, threshold: float) -> Borders:
    breaks = np.flatnonzero(start[1:] - end[:-1] >= threshold)
    first = np.concatenate(([0], breaks + 1))[: len(start)]
    last = np.concatenate((breaks, [len(start) - 1]))[: len(start)]
    return start[first], end[last]


def gap_threshold(start: Floats, end: Floats, *, span: float = 0.0) -> float:
    """Return how long a gap between these busy intervals must be to separate two phases."""
    gaps = start[1:] - end[:-1]
    if not len(gaps):
        return 0.0
    span = max(span, float(end[-1] - start[0]))
    undivided = 2 * float(gaps.max())
    floor = min(INVISIBLE_SECONDS, INVISIBLE_SHARE * span)
    seen = np.sort(gaps[gaps >= floor])
    if not len(seen) or seen.sum() < gaps.sum() / 2:
        return undivided
    threshold = _between_populations(seen, floor, hidden=len(gaps) - len(seen))
    if threshold is None:
        threshold = _of_one_population(seen, median(end - start), span) or undivided
    return threshold if gaps[gaps >= threshold].sum() >= VISIBLE_SHARE * span else undivided


def _between_populations(gaps: Floats, floor: float, *, hidden: int) -> float | None:
    """Where short gaps and long ones part; None where there is one population.

    Args:
        gaps: the gaps that can be seen, ascending.
        floor: what is shorter cannot be seen.
        hidden: how many gaps are shorter.
    """
    count = len(gaps)
    idle = np.concatenate(([0.0], np.cumsum(gaps)))
    short = np.arange(count)  # how many of the gaps that can be seen are taken for short
    long = count - short
    highest_short = np.concatenate(([floor], gaps))[short]
    lowest_long = gaps[np.minimum(count - 1, short + (ASTRAY * long).astype(np.int64))]
    possible = (idle[short] <= SHORT_SHARE * idle[-1]) & (short + hidden >= SHORT_PER_LONG * long)
    ratio = np.where(possible, lowest_long / highest_short, 0.0)
    best = int(np.argmax(ratio))
    return float(np.sqrt(lowest_long[best] * highest_short[best])) if ratio[best] >= CLEAR else None


def _of_one_population(gaps: Floats, busy: float, span: float) -> float | None:
    """The shortest gap where all of them separate phases, None where none does."""
    gaps = _without_astray(gaps)
    mean = float(gaps.mean())
    if float(gaps.std()) <= EVEN * mean:
        return float(gaps[0]) if mean >= PAUSE * busy else None
    idle = np.cumsum(gaps)
    typical = gaps[np.searchsorted(idle, idle[-1] / 2)]
    return float(gaps[0]) if typical >= VISIBLE_SHARE * span else None


def _without_astray(gaps: Floats) -> Floats:
    """Ascending gaps without a few that are clearly shorter: a request alone beside a phase."""
    shorter = int(np.searchsorted(gaps, median(gaps) / CLEAR))
    return gaps[shorter:] if shorter <= max(1.0, ASTRAY * len(gaps)) else gaps


def burst_borders(rate: StepFunction) -> Borders | None:
    """Return the bursts of a data rate that never rests; None where it has none.

    The rate between bursts is that of the middle bin, so bursts must take less than half of
    the time.
    """
    edges = np.linspace(rate.edges[0], rate.edges[-1], RATE_BINS + 1)
    moved = np.diff(np.interp(edges, rate.edges, _moved_until(rate)))
    if not moved.sum() > 0:
        return None
    by_rate = np.sort(moved)[::-1]
    share = np.cumsum(by_rate) / by_rate.sum()
    burst = by_rate[np.searchsorted(share, BURST_BYTES)]  # the slowest bin that bursts need
    between = max(median(moved), float(burst) / MOST_FACTOR)
    if burst < BURST_FACTOR * between:
        return None
    level = float(np.sqrt(burst * between))
    inside = np.concatenate(([False], moved >= level, [False]))
    rises = np.flatnonzero(inside[1:] & ~inside[:-1])
    falls = np.flatnonzero(~inside[1:] & inside[:-1])
    start, end = edges[rises], edges[falls]
    if len(start) < 2:
        return None
    # A burst that sags for a moment is one burst, by the rule for gaps.
    borders = _borders(start, end, gap_threshold(start, end))
    return borders if len(borders[0]) > 1 else None


def _moved_until(rate: StepFunction) -> Floats:
    return np.concatenate(([0.0], np.cumsum(np.diff(rate.edges) * rate.values)))
