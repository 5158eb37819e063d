"""Cut the time of every job into windows: the grid its metrics are counted on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioprism.servers.series import Floats, Ints
from ioprism.servers.settings import MetricSettings

Places = NDArray[np.intp]


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
    job, number = _numbered(counts + 1)
    edges = np.minimum(starts[job] + number * step, ends[job])
    owner, place = _numbered(counts)
    first_edge = _firsts(counts + 1)
    left = first_edge[owner] + place
    lengths = (edges[left + 1] - edges[left]) / 1e6
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
    owner, number = _numbered(counts)
    return firsts[owner] + number


def _numbered(counts: Places) -> tuple[Places, Places]:
    """Return for every item of every owner: who owns it, and its number there."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - _firsts(counts)[owner]


def _firsts(counts: Places) -> Places:
    return np.cumsum(counts) - counts
