"""How busy a file system's servers were while a job ran, and how busy they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import EARLIEST, LATEST, SECOND, CounterSource
from ioprism.model.machine import BackgroundLoad
from ioprism.servers.activity import BYTE_ROWS
from ioprism.servers.interval import sampling_interval_us
from ioprism.servers.series import LONGEST_STEP, Floats, Ints, locate, server_series
from ioprism.servers.settings import MetricSettings
from ioprism.servers.store import open_store

AROUND = 7 * 86_400 * SECOND  # how far before and after the job the highest load is looked for
MOST_BINS = 5_000  # before, and as many after
FEWEST_STEPS = 2  # a shorter time than so many samples apart cannot be told from its neighbours


@dataclass(frozen=True, slots=True)
class StoredLoads:
    """The server loads that a store of counters holds."""

    store: Path

    def during(self, start: float, end: float) -> BackgroundLoad:
        """Return the load of all servers between two moments, in seconds since 1970."""
        return background_load(open_store(self.store), start=start, end=end)

    def between(self, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the bytes that all servers moved in each time, and the share that is known."""
        return loads_between(open_store(self.store), starts, ends)


def stored_loads(store: Path | None) -> StoredLoads | None:
    """Return the loads of a store, after a look whether it can be opened."""
    if store is None:
        return None
    open_store(store)
    return StoredLoads(store)


def background_load(source: CounterSource, *, start: float, end: float) -> BackgroundLoad:
    """Return the load of all servers between two moments, in seconds since 1970.

    The counters of one server after the other are read: those of all may not fit into memory.
    """
    names = source.servers()
    if not EARLIEST <= start * SECOND <= end * SECOND <= LATEST:
        return BackgroundLoad(len(names), 0.0, 0.0, 0.0, 0.0)  # damage: no server was there then
    first, last = round(start * SECOND), round(end * SECOND)
    interval = _interval(source, names, first, last)
    if interval is None:
        return BackgroundLoad(len(names), 0.0, (last - first) / SECOND, 0.0, 0.0)
    settings = MetricSettings(interval)
    edges, own = _bins(first, last, interval)
    moved, known = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for name in names:
        growth, seen = _load(source, name, edges, settings)
        moved += growth
        known += seen
    length = int(edges[1] - edges[0])
    return BackgroundLoad(
        servers=len(names),
        bytes=float(moved[own]),
        seconds=length / SECOND,
        most_bytes=float(moved.max()),
        coverage=float(known[own]) / (length * len(names)),
    )


def loads_between(source: CounterSource, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Return what all servers moved from each start to its end, and the share of it that is known.

    Starts and ends are seconds since 1970. Every server is read once, however many times are asked.
    """
    names = source.servers()
    asked = np.concatenate([starts, ends])
    edges = np.unique(np.round(asked * SECOND).astype(np.int64))
    moved, known = np.zeros(len(edges)), np.zeros(len(edges))
    interval = _interval(source, names, int(edges[0]), int(edges[-1])) if len(edges) > 1 else None
    if interval is None:
        return np.zeros(len(starts)), np.zeros(len(starts))
    for name in names:
        growth, seen = _load(source, name, edges, MetricSettings(interval))
        moved[1:] += growth
        known[1:] += seen
    first, last = (np.searchsorted(edges, np.round(t * SECOND)) for t in (starts, ends))
    sums, times = np.cumsum(moved), np.cumsum(known)
    whole = np.maximum(1, edges[last] - edges[first]) * max(1, len(names))
    return sums[last] - sums[first], (times[last] - times[first]) / whole


def _interval(source: CounterSource, names: Sequence[str], first: int, last: int) -> int | None:
    """How often the first server that has samples around the job is sampled; None if none has."""
    for name in names:
        near = source.counters(name, start_us=first - LONGEST_STEP, end_us=last + LONGEST_STEP)
        try:
            return sampling_interval_us([near])
        except NotEnoughDetailError:
            continue
    return None


def _load(
    source: CounterSource, name: str, edges: Ints, settings: MetricSettings
) -> tuple[Floats, Floats]:
    """What one server moved between neighbouring edges, and how much of that time is known."""
    begin, finish = int(edges[0]) - LONGEST_STEP, int(edges[-1]) + LONGEST_STEP
    series = server_series(source.counters(name, start_us=begin, end_us=finish), settings)
    left = np.arange(len(edges) - 1)
    if series.empty:
        return np.zeros(len(left)), np.zeros(len(left))
    place = locate(series, edges)
    moved = place.between(series.totals[BYTE_ROWS], left, left + 1).sum(axis=0)
    return moved, place.between(series.known, left, left + 1)


def _bins(first: int, last: int, interval: int) -> tuple[Ints, int]:
    """The time of the job, as many times as long on either side, and which of them it is."""
    length = max(last - first, FEWEST_STEPS * interval)
    begin = (first + last - length) // 2
    before = min(MOST_BINS, AROUND // length)
    return begin + length * np.arange(-before, before + 2), before
