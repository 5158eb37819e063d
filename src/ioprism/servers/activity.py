"""What all servers of a job moved, in all and in each window, and how many of them were active.

On the job grid, windows start with the job. On the native grid, a server is active from one
sample to the next if it moved more than the threshold's share of that step, and a job's time is
cut wherever any of its servers was sampled. Nothing is spread over windows there, so intensities
are close to those of perfect counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioprism.model.counters import DIRECTIONS, SECOND, VALUES
from ioprism.servers.series import (
    BYTE_ROWS,
    OPERATION_ROWS,
    Floats,
    Ints,
    MetricSettings,
    Moments,
    Series,
    locate,
)

Places = NDArray[np.intp]
ROUNDING = 1e-12  # an amount equal to the threshold must not pass it by rounding


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """The windows of several jobs, one job after another."""

    edges: Ints  # µs; a job of n windows has n + 1 of them
    first_edge: Places  # (job)
    first_window: Places  # (job)
    counts: Places  # (job): windows
    job: Places  # (window)
    lengths: Floats  # (window) seconds
    weights: Floats  # (window) what it counts for, in Δt
    strictness: Floats  # (window) what the thresholds are multiplied with


def lay_out(starts: Ints, ends: Ints, settings: MetricSettings) -> WindowLayout:
    """Return the windows of jobs by the mode of the settings.

    clip: the last window ends with the job and counts by its length; clip_abs: the same, but
    with undiminished thresholds; full: only whole windows; literal: as the paper's formula
    says, with one more window at the end, empty if the run time is a multiple of Δt.
    """
    step = settings.interval_us
    whole, rest = np.divmod(ends - starts, step)
    more = {"full": np.zeros_like(rest), "literal": np.ones_like(rest)}
    counts = (whole + more.get(settings.window, rest > 0)).astype(np.intp)
    job, number = _number_items(counts + 1)
    edges = np.minimum(starts[job] + number * step, ends[job])
    owner, place = _number_items(counts)
    first_edge = _firsts(counts + 1)
    left = first_edge[owner] + place
    lengths = (edges[left + 1] - edges[left]) / SECOND
    share = (edges[left + 1] - edges[left]) / step
    ones = np.ones(len(owner))
    return WindowLayout(
        edges=edges,
        first_edge=first_edge,
        first_window=_firsts(counts),
        counts=counts,
        job=owner,
        lengths=lengths,
        weights=share if settings.window.startswith("clip") else ones,
        strictness=share if settings.window == "clip" else ones,
    )


def ranges(firsts: Places, counts: Places) -> Places:
    """Return `first, first + 1, …` for every pair of a first number and a count."""
    owner, number = _number_items(counts)
    return firsts[owner] + number


def _number_items(counts: Places) -> tuple[Places, Places]:
    """Return for every item of every owner: who owns it, and its number there."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - _firsts(counts)[owner]


def _firsts(counts: Places) -> Places:
    return np.cumsum(counts) - counts


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
        # A window without length, as the literal mode makes, is never in a gap.
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


class NativeActivity:
    """Collects, server by server, when rates change; adds them up at the end."""

    def __init__(self, starts: Ints, ends: Ints, settings: MetricSettings) -> None:
        self._starts, self._ends = starts, ends
        self._settings = settings
        # Of every job and server: jobs, moments, and by how much rates and counts change there.
        self._steps: list[tuple[Places, Ints, Floats, NDArray[np.int32]]] = []
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
        for direction in range(2):
            np.maximum.at(self._peak[direction], placed.jobs[owner], rates[direction])
        # What changes at each moment, and at the job's end back to nothing.
        begins = np.concatenate([[True], owner[1:] != owner[:-1]])
        ends = np.concatenate([owner[1:] != owner[:-1], [True]])
        last_jobs = placed.jobs[owner[ends]]
        self._steps += [
            (placed.jobs[owner], moments, _changes(rates, begins), _changes(counts, begins)),
            (last_jobs, self._ends[last_jobs], -rates[:, ends], -counts[:, ends]),
        ]

    def _of_steps(
        self, series: Series, step: Places, *, always_known: bool
    ) -> tuple[Floats, NDArray[np.int32]]:
        lengths = np.diff(series.times)
        seconds = np.maximum(lengths, 1) / SECOND
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

    def result(self) -> Activity:
        """Return what all servers did together between any two moments of change."""
        if not self._steps:
            return _no_activity(len(self._settings.thresholds))
        job, moments, rates, counts = (
            np.concatenate(part, axis=-1) for part in zip(*self._steps, strict=True)
        )
        order = np.lexsort((moments, job))
        job, moments = job[order], moments[order]
        rates = _sums_by_job(rates[:, order], job)
        counts = np.cumsum(counts[:, order], axis=1)
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


def _no_activity(thresholds: int) -> Activity:
    none = np.zeros((2, 0))
    return Activity(
        np.zeros(0, dtype=np.intp), np.zeros(0), none, none, none,
        np.zeros((2, thresholds, 0), dtype=np.int32), np.zeros(0, dtype=np.int32),
    )  # fmt: skip


class JobTotals:
    """Adds up, server by server, the growth of every counter over each job."""

    def __init__(self, starts: Ints, ends: Ints) -> None:
        jobs = len(starts)
        self._starts, self._ends = starts, ends
        self.counters = np.zeros((len(VALUES), jobs))
        self.counted = np.zeros((len(VALUES), jobs), dtype=bool)
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
        self.counted[:, jobs] |= series.counted[:, None]
        self.known_us[jobs] += place.between(series.known, first, last)
        self.servers_seen[jobs] += 1
        self.boundary_bytes[:, jobs] += _boundary(series, place, count)
        lasts = np.maximum(np.searchsorted(series.times, end, side="left"), 1)
        resets = np.concatenate([[0], np.cumsum(series.resets)])
        self.resets[jobs] |= resets[np.clip(lasts, 0, len(resets) - 1)] > resets[place.step[:count]]

    def coverage(self, servers: NDArray[np.int64]) -> Floats:
        """The share of each job's time, over its servers, in which counters are known."""
        whole = np.maximum(servers, 1) * (self._ends - self._starts)
        return np.asarray(np.clip(self.known_us / whole, 0.0, 1.0))


def _boundary(series: Series, place: Moments, count: int) -> Floats:
    """Bytes of steps that a job's start or end cuts: they may be its own or another's."""
    growth = np.diff(series.totals[BYTE_ROWS], axis=1)
    cut = (place.share > 0) & (place.share < 1)
    begin, end = place.step[:count], place.step[count:]
    at_end = cut[count:] & ~(cut[:count] & (begin == end))
    return np.asarray(growth[:, begin] * cut[:count] + growth[:, end] * at_end)
