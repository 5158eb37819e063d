"""What moved between the start and the end of each job, and how well that is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ioprism.model.counters import VALUES
from ioprism.servers.activity import BYTE_ROWS, Placed
from ioprism.servers.series import Floats, Ints, Moments, Series, locate


class JobTotals:
    """Adds up, server by server, the growth of every counter over each job."""

    def __init__(self, starts: Ints, ends: Ints) -> None:
        jobs = len(starts)
        self._starts, self._ends = starts, ends
        self.counters = np.zeros((len(VALUES), jobs))
        self.told = np.zeros((len(VALUES), jobs), dtype=bool)
        self.known_us = np.zeros(jobs)  # summed over servers
        self.boundary_bytes = np.zeros((2, jobs))
        self.servers_seen = np.zeros(jobs, dtype=np.int64)
        self.resets = np.zeros(jobs, dtype=bool)
        # While a server served other jobs as well: the job's part of the bytes.
        self.shared_bytes = np.zeros((2, jobs))
        self.shared = np.zeros(jobs, dtype=bool)

    def add(self, series: Series, placed: Placed) -> None:
        """Add one server's growth over the jobs that used it."""
        jobs = placed.jobs
        if series.empty:
            return
        count = len(jobs)
        begin, end = self._starts[jobs] + placed.shifts, self._ends[jobs] + placed.shifts
        place = locate(series, np.concatenate([begin, end]))
        first, last = np.arange(count), np.arange(count, 2 * count)
        self.counters[:, jobs] += place.between(series.totals, first, last)
        self.told[:, jobs] |= series.told[:, None]
        self.known_us[jobs] += place.between(series.known, first, last)
        self.servers_seen[jobs] += 1
        self.boundary_bytes[:, jobs] += _boundary(series, place, count)
        lasts = np.maximum(np.searchsorted(series.times, end, side="left"), 1)
        self.resets[jobs] |= _any(series.resets, place.step[:count], lasts)

    def coverage(self, servers: NDArray[np.int64]) -> Floats:
        """The share of each job's time, over its servers, in which counters are known."""
        whole = np.maximum(servers, 1) * (self._ends - self._starts)
        return np.asarray(np.clip(self.known_us / whole, 0.0, 1.0))


def _any(flags: Ints, firsts: NDArray[np.intp], lasts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether any step from the first up to, not with, the last is flagged."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(sums[np.clip(lasts, 0, len(flags))] > sums[firsts])


def _boundary(series: Series, place: Moments, count: int) -> Floats:
    """Bytes of steps that a job's start or end cuts: they may be its own or another's."""
    growth = np.diff(series.totals[BYTE_ROWS], axis=1)
    cut = (place.share > 0) & (place.share < 1)
    begin, end = place.step[:count], place.step[count:]
    at_end = cut[count:] & ~(cut[:count] & (begin == end))
    return np.asarray(growth[:, begin] * cut[:count] + growth[:, end] * at_end)
