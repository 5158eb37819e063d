"""The same as activity in windows, but on the servers' own sampling intervals.

A server is active from one sample to the next if it moved more than the threshold's share of
that step; a job's time is cut wherever any of its servers was sampled. Nothing is smeared over
windows, so intensities are close to those of perfect counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioprism.servers.activity import (
    BYTE_ROWS,
    OPERATION_ROWS,
    ROUNDING,
    Activity,
    Placed,
)
from ioprism.servers.series import Floats, Ints, Series
from ioprism.servers.settings import MetricSettings
from ioprism.servers.windows import Places, ranges


@dataclass(slots=True)
class _Steps:
    """Changes of rates and counts at moments, of every job and server."""

    job: list[Places] = field(default_factory=list)
    moments: list[Ints] = field(default_factory=list)
    rates: list[Floats] = field(default_factory=list)  # (rate, moment)
    counts: list[NDArray[np.int32]] = field(default_factory=list)  # (count, moment)


class NativeActivity:
    """Collects, server by server, when rates change; adds them up at the end."""

    def __init__(self, starts: Ints, ends: Ints, settings: MetricSettings) -> None:
        self._starts, self._ends = starts, ends
        self._settings = settings
        self._steps = _Steps()
        self._peak = np.zeros((2, len(starts)))

    def add(self, series: Series, placed: Placed, *, always_known: bool) -> None:
        """Add one server's steps within the time of the jobs that used it."""
        if series.empty or not len(placed.jobs):
            return
        times = series.times
        begin = self._starts[placed.jobs] + placed.shifts
        end = self._ends[placed.jobs] + placed.shifts
        first = np.searchsorted(times, begin, side="right")
        last = np.searchsorted(times, end, side="left")
        inner = np.maximum(last - first, 0)
        step = ranges(first - 1, inner + 1)  # -1 before the first sample, len - 1 after the last
        owner = np.repeat(np.arange(len(inner)), inner + 1)
        moments = np.maximum(times[np.clip(step, 0, None)], begin[owner])
        moments = np.where(step < 0, begin[owner], moments) - placed.shifts[owner]
        rates, counts = self._of_steps(series, step, always_known=always_known)
        self._note_peaks(rates, owner, placed.jobs)
        self._collect(placed.jobs, owner, moments, rates, counts)

    def _of_steps(
        self, series: Series, step: Places, *, always_known: bool
    ) -> tuple[Floats, NDArray[np.int32]]:
        lengths = np.diff(series.times)
        seconds = np.maximum(lengths, 1) / 1e6
        growth = np.diff(series.totals[BYTE_ROWS + OPERATION_ROWS], axis=1)
        share = lengths / self._settings.interval_us
        active = [
            growth[:2] > threshold * share * (1 + ROUNDING)
            for threshold in self._settings.thresholds
        ]
        known = np.diff(series.known) > 0 if not always_known else np.ones(len(lengths), bool)
        outside = (step < 0) | (step >= len(lengths))
        inside = np.clip(step, 0, len(lengths) - 1)
        rates = np.where(outside, 0.0, (growth / seconds)[:, inside])
        flags = np.concatenate([np.stack(active, axis=1).reshape(-1, len(lengths)), known[None]])
        counts = np.where(outside, False, flags[:, inside]).astype(np.int32)
        counts[-1] |= always_known
        return rates, counts

    def _note_peaks(self, rates: Floats, owner: Places, jobs: Places) -> None:
        for direction in range(2):
            np.maximum.at(self._peak[direction], jobs[owner], rates[direction])

    def _collect(
        self,
        jobs: Places,
        owner: Places,
        moments: Ints,
        rates: Floats,
        counts: NDArray[np.int32],
    ) -> None:
        """Keep what changes at each moment, and at the job's end back to nothing."""
        begins = np.concatenate([[True], owner[1:] != owner[:-1]])
        ends = np.concatenate([owner[1:] != owner[:-1], [True]])
        steps = self._steps
        steps.job += [jobs[owner], jobs[owner[ends]]]
        steps.moments += [moments, self._ends[jobs[owner[ends]]]]
        steps.rates += [_changes(rates, begins), -rates[:, ends]]
        steps.counts += [_changes(counts, begins), -counts[:, ends]]

    def result(self) -> Activity:
        """Return what all servers did together between any two moments of change."""
        if not self._steps.job:
            return _nothing(len(self._settings.thresholds))
        job = np.concatenate(self._steps.job)
        moments = np.concatenate(self._steps.moments)
        order = np.lexsort((moments, job))
        job, moments = job[order], moments[order]
        rates = _sums_by_job(np.concatenate(self._steps.rates, axis=1)[:, order], job)
        counts = np.cumsum(np.concatenate(self._steps.counts, axis=1)[:, order], axis=1)
        lengths = np.diff(moments, append=moments[-1:])
        kept = (lengths > 0) & (np.diff(job, append=-1) == 0)
        thresholds = len(self._settings.thresholds)
        active = counts[:-1, kept].reshape(2, thresholds, -1).astype(np.int32)
        return Activity(
            job=job[kept],
            weights=lengths[kept] / self._settings.interval_us,
            bandwidth=np.maximum(rates[:2, kept], 0.0),
            operation_rate=np.maximum(rates[2:, kept], 0.0),
            server_bandwidth=self._peak[:, job[kept]],
            active=active,
            known=counts[-1, kept].astype(np.int32),
        )


def _changes(values: NDArray[Any], begins: NDArray[np.bool_]) -> NDArray[Any]:
    changed = np.diff(values, axis=1, prepend=0)
    changed[:, begins] = values[:, begins]
    return changed


def _sums_by_job(changes: Floats, job: Places) -> Floats:
    """Add changes up within each job: what rounding left of one must not reach the next."""
    sums = np.cumsum(changes, axis=1)
    begins = np.concatenate([[True], job[1:] != job[:-1]])
    before = np.concatenate([np.zeros((len(sums), 1)), sums[:, :-1]], axis=1)[:, begins]
    return np.asarray(sums - before[:, np.cumsum(begins) - 1])


def _nothing(thresholds: int) -> Activity:
    none = np.zeros((2, 0))
    return Activity(
        np.zeros(0, dtype=np.intp), np.zeros(0), none, none, none,
        np.zeros((2, thresholds, 0), dtype=np.int32), np.zeros(0, dtype=np.int32),
    )  # fmt: skip
