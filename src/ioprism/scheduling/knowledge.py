"""What does a scheduler know of the jobs' periods, and when?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ioprism.periodicity.online.tracker import Settings, Tracker
from ioprism.scheduling.machine import SimulatedJob

# Seconds between phases, or None: asked with all phases of a job until now (start, end, bytes).
Predictor = Callable[[Sequence[tuple[float, float, float]]], float | None]
SETTLED = 16  # phases
REMEMBERED = 4096  # phases of a job that a predictor is given


class TruePeriods:
    """The mean period of every job, as if users had told it."""

    def __init__(self, jobs: Sequence[SimulatedJob], bandwidth: float) -> None:
        self._periods = [mean_period(job, bandwidth) for job in jobs]

    def period(self, job: int, *, now: float) -> float | None:  # noqa: ARG002 - the protocol's
        """The same at all times."""
        return self._periods[job]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Nothing is new."""


class _Observed:
    """Until a period is known, the time before the first phase stands for it."""

    def __init__(self, jobs: Sequence[SimulatedJob]) -> None:
        self._first: list[float | None] = [None] * len(jobs)
        self._known: list[float | None] = [None] * len(jobs)

    def period(self, job: int, *, now: float) -> float | None:
        """What was found last, or the time that the job computed before its first phase."""
        if self._first[job] is None:
            self._first[job] = now
        return self._known[job] or self._first[job]


class LivePeriods(_Observed):
    """What ioprism's tracker knows by then: the period, or the distance of the phases so far."""

    def __init__(self, jobs: Sequence[SimulatedJob], settings: Settings | None = None) -> None:
        super().__init__(jobs)
        self._trackers = [Tracker(settings or Settings()) for _ in jobs]
        self._phases = [0] * len(jobs)
        self._announced = [False] * len(jobs)  # whether a period was known before

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Tell the tracker of the job, and ask it."""
        tracker = self._trackers[job]
        tracker.add(np.array([start]), np.array([end]), np.array([moved]))
        self._phases[job] += 1
        # A period known for long is looked at now and then: it costs less, and changes show soon.
        settled = self._announced[job] and self._phases[job] > SETTLED
        told = tracker.predict(analyse=not settled or self._phases[job] % SETTLED == 0)
        if told is None:
            return
        found = told.phase_distance if told.period is None else told.period.seconds
        # A period that was known stays in use: a look that shows none may be an unlucky one.
        if told.period is not None or (found is not None and not self._announced[job]):
            self._known[job] = found
        self._announced[job] = self._announced[job] or told.period is not None


class PredictedPeriods(_Observed):
    """What another predictor finds in the phases until then."""

    def __init__(self, jobs: Sequence[SimulatedJob], predict: Predictor) -> None:
        super().__init__(jobs)
        self._predict = predict
        self._phases: list[list[tuple[float, float, float]]] = [[] for _ in jobs]

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Ask the predictor again."""
        phases = self._phases[job]
        phases.append((start, end, moved))
        del phases[:-REMEMBERED]
        found = self._predict(phases)
        if found is not None:
            self._known[job] = found


def mean_period(job: SimulatedJob, bandwidth: float) -> float:
    """Seconds from one phase to the next if no other job runs."""
    rate = min(job.bandwidth, bandwidth)
    steps = [one.compute + one.bytes / rate for one in job.iterations]
    return sum(steps) / len(steps)
