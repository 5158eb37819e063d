"""What all servers of a job moved in each window, and how many of them were active."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioprism.model.counters import BYTES, DIRECTIONS, OPERATIONS, VALUES
from ioprism.servers.series import Floats, Moments, Series, locate
from ioprism.servers.settings import MetricSettings
from ioprism.servers.windows import Places, WindowLayout, ranges

ROUNDING = 1e-12  # an amount equal to the threshold must not pass it by rounding
BYTE_ROWS = [VALUES.index(BYTES[direction]) for direction in DIRECTIONS]
OPERATION_ROWS = [VALUES.index(OPERATIONS[direction]) for direction in DIRECTIONS]


@dataclass(frozen=True, slots=True)
class Activity:
    """Stretches of time of several jobs, in order; the first axis of tables is the direction."""

    job: Places  # (stretch)
    weights: Floats  # (stretch) in Δt
    bandwidth: Floats  # (direction, stretch) bytes per second of all servers
    operation_rate: Floats  # (direction, stretch)
    server_bandwidth: Floats  # (direction, stretch) of the busiest server
    active: NDArray[np.int32]  # (direction, threshold, stretch) servers above the threshold
    known: NDArray[np.int32]  # (stretch) servers whose counters are known in it


@dataclass(frozen=True, slots=True)
class Placed:
    """The jobs that used a server, and how far their time is shifted in its series."""

    jobs: Places
    shifts: NDArray[np.int64]


class WindowActivity:
    """Adds up, server by server, what moved in the windows of a layout."""

    def __init__(self, layout: WindowLayout, settings: MetricSettings) -> None:
        windows = len(layout.job)
        self._layout = layout
        self._thresholds = np.array(settings.thresholds, dtype=np.float64)
        self._bytes = np.zeros((2, windows))
        self._operations = np.zeros((2, windows))
        self._peak = np.zeros((2, windows))
        self._active = np.zeros((2, len(settings.thresholds), windows), dtype=np.int32)
        self._known = np.zeros(windows, dtype=np.int32)

    def add(self, series: Series, placed: Placed, *, always_known: bool) -> None:
        """Add one server's share in the windows of the jobs that used it."""
        layout = self._layout
        counts = layout.counts[placed.jobs]
        windows = ranges(layout.first_window[placed.jobs], counts)
        if series.empty or not len(windows):
            return
        edges = ranges(layout.first_edge[placed.jobs], counts + 1)
        shifts = np.repeat(placed.shifts, counts + 1)
        left = ranges(np.cumsum(counts + 1) - (counts + 1), counts)
        place = locate(series, layout.edges[edges] + shifts)
        self._add_amounts(series, place, left, windows)
        # A window without length, as the literal mode makes, lies in no gap.
        known = (place.between(series.known, left, left + 1) > 0) | (layout.lengths[windows] == 0)
        self._known[windows] += 1 if always_known else known

    def _add_amounts(self, series: Series, place: Moments, left: Places, windows: Places) -> None:
        lengths = self._layout.lengths[windows]
        strictness = self._layout.strictness[windows] * (1 + ROUNDING)
        moved = place.between(series.totals[BYTE_ROWS], left, left + 1)
        operations = place.between(series.totals[OPERATION_ROWS], left, left + 1)
        rates = _per_second(moved, lengths)
        for direction in range(len(DIRECTIONS)):  # row by row: numpy gathers rows much faster
            self._bytes[direction][windows] += moved[direction]
            self._operations[direction][windows] += operations[direction]
            peak = self._peak[direction]
            peak[windows] = np.maximum(peak[windows], rates[direction])
            for number, threshold in enumerate(self._thresholds):
                active = moved[direction] > threshold * strictness
                self._active[direction, number][windows] += active

    def result(self) -> Activity:
        """Return what all servers did together."""
        layout = self._layout
        return Activity(
            job=layout.job,
            weights=layout.weights,
            bandwidth=_per_second(self._bytes, layout.lengths),
            operation_rate=_per_second(self._operations, layout.lengths),
            server_bandwidth=self._peak,
            active=self._active,
            known=self._known,
        )


def _per_second(amounts: Floats, lengths: Floats) -> Floats:
    rates = np.zeros_like(amounts)
    np.divide(amounts, lengths, out=rates, where=lengths > 0)
    return rates
