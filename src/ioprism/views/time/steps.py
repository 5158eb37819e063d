"""Step functions of overlapping requests, by plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.model.signal import FloatArray, StepFunction

IntArray = npt.NDArray[np.integer[Any]]

SHORTEST = 1e-6  # seconds; a call that takes no measurable time is given this much


def steps_of_intervals(start: FloatArray, end: FloatArray, moved: FloatArray) -> StepFunction:
    """Return the bandwidth of requests that each move their bytes evenly from start to end."""
    end = np.maximum(end, start + SHORTEST)
    rate = moved / (end - start)
    calls = np.ones(2 * len(start), np.int8)
    calls[len(start) :] = -1
    return _from_changes(np.concatenate((start, end)), np.concatenate((rate, -rate)), calls)


def sum_of_steps(parts: Sequence[StepFunction]) -> StepFunction:
    """Add step functions, each zero outside its own range."""
    time = np.concatenate([part.edges for part in parts])
    change = np.concatenate([np.diff(part.values, prepend=0.0, append=0.0) for part in parts])
    calls = [np.diff((part.values != 0).astype(np.int8), prepend=0, append=0) for part in parts]
    return _from_changes(time, change, np.concatenate(calls))


def _from_changes(time: FloatArray, change: FloatArray, calls: IntArray) -> StepFunction:
    # Edges at the same moment stay apart: steps of no length hurt nobody, and joining costs.
    order = np.argsort(time, kind="stable")  # it makes use of parts that are in order
    values = running(change[order], calls[order])[:-1]
    return StepFunction(time[order], np.maximum(values, 0.0, out=values))


def running(change: FloatArray, calls: IntArray) -> FloatArray:
    """Add up changes; whenever no call runs, what rounding has left is taken away."""
    total = np.cumsum(change)
    idle = np.flatnonzero(np.cumsum(calls, dtype=np.int64) == 0)
    if len(idle):
        stretches = np.diff(idle, append=len(total))
        total[idle[0] :] -= np.repeat(total[idle], stretches)
    return total
