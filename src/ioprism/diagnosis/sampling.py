"""Which calls a diagnosis looks at: all of them, or those of windows spread over the run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.diagnosis.late_ranks import longest_pause
from ioprism.diagnosis.rows import Floats, Ints
from ioprism.engine.base import Engine, View
from ioprism.model.arrays import unite
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Trace
from ioprism.views.intervals import (
    BusyIntervals,
    CallsInWindows,
    CallsPerWindow,
    FirstCalls,
)
from ioprism.views.totals import Totals

MOST_CALLS = 300_000  # that are looked at one by one
SLICES = 64  # of phases that are too large, in total: enough moments to see when ranks finish
CALLS_OF_RANK = 8  # in a slice at least
GOLDEN = 0.6180339887  # its multiples fill any interval evenly
COLUMNS = (
    "start",
    "end",
    "rank",
    "process",
    "layer",
    "operation",
    "function",
    "file",
    "offset",
    "bytes",
    "collective",
)
NOT_IO = ("application", "other")


def first_look(most: int = MOST_CALLS) -> tuple[View, ...]:
    """Return what is asked of calls with nothing known before: when, how long, and themselves."""
    calls = FirstCalls(most, (*COLUMNS, "nonblocking"))
    return BusyIntervals(), Totals(("rank", "process", "layer")), calls


@dataclass(frozen=True, slots=True, eq=False)
class SampledCalls:
    """Calls, and what part of the job's I/O time they stand for."""

    events: pl.DataFrame
    share: float  # 1: all calls
    windows: Floats  # when each window of a sample begins
    seconds: pl.DataFrame  # in calls of the whole run, by rank, process and layer

    def share_of_ranks(self, layers: Collection[str]) -> float:
        """What part of the I/O of the rank with most of it the calls of these layers stand for."""
        if self.share == 1:
            return 1.0
        took = pl.col("end") - pl.col("start")
        sampled = _longest(self.events.with_columns(seconds=took), layers)
        whole = _longest(self.seconds, layers)
        return min(1.0, sampled / whole) if whole > 0 else self.share


def _longest(table: pl.DataFrame, layers: Collection[str]) -> float:
    """Seconds of the rank that is longest in calls of these layers."""
    mine = table.filter(pl.col("layer").cast(pl.String).is_in(list(layers)))
    sums = mine.group_by("rank", "process").agg(pl.col("seconds").sum())["seconds"].to_numpy()
    return float(sums.max(initial=0.0))


def sampled_calls(trace: Trace, engine: Engine, *, most: int = MOST_CALLS) -> SampledCalls:
    """Return the calls of whole phases, evenly over the run, as far as there are not too many."""
    busy, seconds, first = engine.run(trace, *first_look(most))
    moves = busy.filter(~pl.col("layer").cast(pl.String).is_in(NOT_IO))
    start, end = unite(moves["start"].to_numpy(), moves["end"].to_numpy())
    total = float((end - start).sum())
    if not len(start):
        return SampledCalls(EVENTS.empty().select(COLUMNS), 1.0, start, seconds)
    if first.height <= most:  # these are all
        events = first.filter(pl.col("start") >= start[0]).select(COLUMNS)
        return SampledCalls(events, 1.0, start[:0], seconds)
    gaps = start[1:] - end[:-1]
    breaks = np.flatnonzero(gaps > longest_pause(gaps, end - start))
    windows = np.concatenate(([start[0]], start[breaks + 1]))
    calls = int(seconds["operations"].sum())
    # One window from the first call of any layer on has them all: no need to count.
    alone = len(windows) == 1 and start[0] == busy["start"].min()
    counts = np.array([calls]) if alone else _counts(trace, engine, windows)
    windows, chosen = _some_windows(trace, engine, windows, counts, float(end[-1]), most)
    (events,) = engine.run(trace, CallsInWindows(windows, tuple(chosen.tolist()), COLUMNS))
    if len(chosen) == len(windows):
        return SampledCalls(events, 1.0, windows[:0], seconds)
    share = _busy(events) / total if total > 0 else 0.0
    # Where the clock is too coarse for the time of calls, their number tells.
    return SampledCalls(events, share or events.height / calls, windows[chosen], seconds)


def _some_windows(
    trace: Trace, engine: Engine, windows: Floats, counts: Ints, last: float, most: int
) -> tuple[Floats, Ints]:
    """Cut windows that are too large, and choose those that fit the number of calls."""
    if counts.sum() > most:
        fill = min(most / 2, max(most / SLICES, CALLS_OF_RANK * (trace.job.ranks or 1)))
        windows = _slice_windows(windows, last, counts, most, fill)
        counts = _counts(trace, engine, windows)
    return windows, _spread(counts, most)


def _busy(events: pl.DataFrame) -> float:
    """Seconds in which anyone is in one of these calls, also beyond the end of a window."""
    moves = events.filter(~pl.col("layer").cast(pl.String).is_in(NOT_IO))
    start, end = unite(moves["start"].to_numpy(), moves["end"].to_numpy())
    return float((end - start).sum())


def _counts(trace: Trace, engine: Engine, windows: Floats) -> Ints:
    (table,) = engine.run(trace, CallsPerWindow(windows))
    known = table.filter(pl.col("window") >= 0)
    counts = np.zeros(len(windows), np.int64)
    counts[known["window"].to_numpy()] = known["calls"].to_numpy()
    return counts


def _slice_windows(windows: Floats, last: float, counts: Ints, most: int, fill: float) -> Floats:
    """Cut windows that fill half the sample alone into equal parts; whole phases tell more."""
    ends = np.concatenate((windows[1:], [last]))
    many = np.ceil(counts / fill).astype(np.int64)
    parts = np.where(counts > most / 2, many, 1)
    pieces = [
        np.linspace(begin, end, count, endpoint=False)
        for begin, end, count in zip(windows, ends, parts, strict=True)
    ]
    return np.concatenate(pieces)


def _spread(counts: Ints, most: int) -> Ints:
    """Windows all over the run whose calls are not too many."""
    number = len(counts)
    while True:
        chosen = _one_of_each(len(counts), number)
        calls = int(counts[chosen].sum())
        if calls <= most or number == 1:
            return chosen
        number = max(1, int(number * min(0.95, most / calls)))


def _one_of_each(total: int, number: int) -> Ints:
    """One place in each of `count` equal parts, at a different point of each.

    At equal distances, the same moments of each phase would be looked at.
    """
    if number >= total:
        return np.arange(total)
    stretch = np.arange(number)
    return ((stretch + stretch * GOLDEN % 1) * total / number).astype(np.int64)
