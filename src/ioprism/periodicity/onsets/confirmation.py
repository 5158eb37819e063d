"""Do the phases of the job, as `ioprism phases` tells them, show a rhythm too?"""

from __future__ import annotations

import numpy as np

from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.scales import phases_of_job
from ioprism.periodicity.onsets.segments import busy_runs
from ioprism.periodicity.results import Period

TOGETHER = 0.15  # of the period, between the start of a phase and that of the job's
SHORT = 8  # repetitions; more than these need no witness
PARTLY = 0.7  # share of the signal below which a rhythm holds in a part of it
MOSTLY = 0.7  # share of the phases that must be phases of the job


def confirming_phases(signal: Signal, period: Period) -> int:
    """How many phases of a rhythm begin with a phase of the job, going by a signal alone."""
    runs = busy_runs(signal, above=0.0)  # however little a request moves, it is I/O
    return beginning_with(period, phases_of_job(signal, runs).starts) if len(runs[0]) else 0


def beginning_with(period: Period, starts: FloatArray) -> int:
    """How many phases of a rhythm begin with one of these (seconds, ascending)."""
    if not period.phases or not len(starts):
        return 0
    beats = np.array([start for start, _ in period.phases])
    after = np.searchsorted(starts, beats)
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(starts) - 1)
    away = np.minimum(np.abs(beats - starts[before]), np.abs(starts[after] - beats))
    return int(np.count_nonzero(away <= TOGETHER * period.seconds))


def needs_confirmation(signal: Signal, period: Period) -> bool:
    """Whether a few phases within a longer job are all there is.

    So few can be chosen from a job in many ways, and which gaps separate phases is a choice of
    its own. The job's phases, which every command tells alike, must show them.
    """
    held = sum(end - start for start, end in period.valid_ranges)
    few = period.repetitions < SHORT and bool(period.phases)
    return few and held < PARTLY * (signal.end - signal.start)


def is_confirmed(period: Period) -> bool:
    """Whether most phases of a rhythm are phases of the job."""
    return (period.confirmed or 0) >= MOSTLY * len(period.phases)
