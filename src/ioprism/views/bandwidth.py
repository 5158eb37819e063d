"""Bandwidth over time, whole or by key, from whatever tells it: requests, heat maps, series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.engine.base import Engine
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.formats.signals.build import IntervalPartition, Intervals
from ioprism.model.arrays import FloatArray, StepFunction
from ioprism.model.trace import Trace, deepest

IntArray = npt.NDArray[np.integer[Any]]

DIRECTIONS = ("read", "write")
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
    # Edges at the same moment stay apart: zero-length steps are harmless, and joining costs.
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


EVENT_KEYS = ("file", "rank", "process", "layer")
# Keys that are looked up: which event column leads to which table's column.
DERIVED_KEYS = {
    "directory": ("file", "directory"),
    "pattern": ("file", "pattern"),
    "application": ("process", "application"),
    "host": ("process", "host"),
}
KEYS = (*EVENT_KEYS, *DERIVED_KEYS)


def bandwidth(
    trace: Trace, engine: Engine, *, direction: str = "both", layer: str | None = None
) -> StepFunction:
    """Return the bandwidth of a job over time, in bytes per second.

    It comes from single requests where the trace has them, else from heat maps, else from the
    series that the trace gives.

    Raises:
        NotEnoughDetailError: nothing in the trace tells bandwidth over time.
    """
    series = _of_intervals(trace, direction) if layer is None else None
    if series is None and trace.partitions:
        series = _of_calls(trace, engine, direction, layer, None).get(None)
    if series is None and "HEATMAP" in trace.counters:
        series = _of_heat_map(trace, direction, layer)
    if series is None:
        series = _of_series(trace, direction)
    if series is None:
        raise _lacks_calls()
    return series


def bandwidth_by(
    trace: Trace, engine: Engine, *, key: str, direction: str = "both", layer: str | None = None
) -> Mapping[object, StepFunction]:
    """Return the bandwidth over time of every file, rank, directory or application.

    Raises:
        UsageError: the key is unknown.
        NotEnoughDetailError: the trace has no single requests.
    """
    if key not in KEYS:
        raise UsageError(f"no key {key!r}.\nHint: there are {', '.join(KEYS)}.")
    series = _of_calls(trace, engine, direction, layer, key) if trace.partitions else {}
    if not series:
        raise _lacks_calls()
    return series


def bandwidth_by_direction(
    trace: Trace, engine: Engine, *, layer: str | None = None
) -> Mapping[str, StepFunction]:
    """Return the bandwidth of `both` directions, and of `read` and `write` if there are such.

    Calls are looked through once.

    Raises:
        NotEnoughDetailError: nothing in the trace tells bandwidth over time.
    """
    known: dict[str, StepFunction | None] = {}
    if layer is None and _of_intervals(trace, "both") is not None:
        known = {direction: _of_intervals(trace, direction) for direction in DIRECTIONS}
    elif trace.partitions:
        series = _of_calls(trace, engine, "both", layer, "operation")
        known = {str(direction): steps for direction, steps in series.items()}
    if not known and "HEATMAP" in trace.counters:
        known = {direction: _of_heat_map(trace, direction, layer) for direction in DIRECTIONS}
    if not any(steps is not None for steps in known.values()):
        known = {direction: _of_series(trace, direction) for direction in DIRECTIONS}
        known["both"] = _of_series(trace, "both")
    steps = {direction: one for direction, one in known.items() if one is not None}
    if not steps:
        raise _lacks_calls()
    if "both" not in steps:
        every = list(steps.values())
        steps["both"] = sum_of_steps(every) if len(every) > 1 else every[0]
    return steps


def metric(trace: Trace, name: str) -> StepFunction:
    """Return a series of this name, or the only one whose name contains it.

    Raises:
        UsageError: there is none, or there are several.
    """
    like = [name] if name in trace.series else [n for n in trace.series if name in n]
    if len(like) != 1:
        known = ", ".join(like or trace.series) or "none"
        raise UsageError(f"{len(like)} series are called {name!r}.\nHint: there are {known}.")
    return trace.series[like[0]].steps


def _of_calls(
    trace: Trace, engine: Engine, direction: str, layer: str | None, key: str | None
) -> Mapping[object, StepFunction]:
    # Loaded late: a small signal needs no tables, and loading them costs more than its analysis.
    from ioprism.views.intervals import call_bandwidths

    return call_bandwidths(trace, engine, direction=direction, layer=layer, key=key)


def _of_intervals(trace: Trace, direction: str) -> StepFunction | None:
    """The bandwidth of a trace whose requests are arrays already."""
    parts: list[Intervals] = []
    for partition in trace.partitions:
        if not isinstance(partition, IntervalPartition):
            return None
        parts += [p for p in partition.intervals if direction in ("both", p.operation)]
    if not parts:
        return None
    start = np.concatenate([part.start for part in parts])
    end = np.concatenate([part.end for part in parts])
    moved = np.concatenate([part.bytes for part in parts])
    moving = moved > 0
    return steps_of_intervals(start[moving], end[moving], moved[moving]) if moving.any() else None


def _of_series(trace: Trace, direction: str) -> StepFunction | None:
    fitting = [s.steps for s in trace.series.values() if direction in ("both", s.direction)]
    return sum_of_steps(fitting) if len(fitting) > 1 else fitting[0] if fitting else None


def _of_heat_map(trace: Trace, direction: str, layer: str | None) -> StepFunction | None:
    """The bandwidth that heat maps give: bytes in each bin, over its width."""
    table = trace.counters["HEATMAP"]
    present = table["layer"].drop_nulls().unique().to_list()
    layers = deepest(present or ["posix"]) if layer is None else (layer,)
    directions = DIRECTIONS if direction == "both" else (direction,)
    parts = []
    for own, width, *bins in table.select("layer", "bin_width", *directions).iter_rows():
        moved = np.sum(np.array(bins, dtype=np.float64), axis=0)
        if own in layers and moved.any():
            edges = width * np.arange(len(moved) + 1, dtype=np.float64)
            parts.append(StepFunction(edges, moved / width))
    return sum_of_steps(parts) if parts else None


def _lacks_calls() -> NotEnoughDetailError:
    return NotEnoughDetailError(
        needed="reads or writes with their times",
        has="none in this direction and layer",
        hint="trace with DXT enabled (DXT_ENABLE_IO_TRACE=1) or another tracer that keeps calls.",
    )
