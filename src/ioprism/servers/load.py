"""What each server moved, when, in requests of which size, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import (
    BYTES,
    COUNTERS,
    DIRECTIONS,
    EARLIEST,
    LATEST,
    OPERATIONS,
    SECOND,
    CounterSource,
)
from ioprism.model.machine import BackgroundLoad
from ioprism.servers.attribution import (
    growth_per_sample,
    job_bytes,
    occupancies,
    own_counters,
    without_counted,
)
from ioprism.servers.job_metrics import without_own
from ioprism.servers.series import (
    BYTE_ROWS,
    LONGEST_STEP,
    OPERATION_ROWS,
    Floats,
    Ints,
    MetricSettings,
    Series,
    locate,
    running_sums,
    sampling_interval_us,
    server_series,
)
from ioprism.servers.store import open_store

# A page draws servers x bins cells; a browser handles 60,000 with ease.
MAX_CELLS, MIN_BINS, MAX_BINS = 60_000, 48, 360
HALF_HOUR = 1800 * SECOND  # time zones differ by multiples of it
# Classes of the mean request size of a sampling step, in bytes.
SIZE_LIMITS = (4 * 2**10, 64 * 2**10, 512 * 2**10, 4 * 2**20)
PARTS = ("attributed", "shared", "unattributed")
# The highest load is searched for in a week before and a week after the job, in spans as long as
# the job but not shorter than two samples, and in at most 5,000 spans on either side.
SEARCH_AROUND, MIN_STEPS, MAX_SPANS = 7 * LONGEST_STEP, 2, 5_000


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What the servers counted; the first axis of tables is the direction unless stated."""

    servers: tuple[str, ...]
    edges_us: Ints
    bytes: Floats  # (direction, server, bin)
    moved: Floats  # (direction, server) all of it, bytes
    parts: Floats  # (part, direction, server) bytes; they add up to `moved`
    measured: Floats  # (direction) of the attributed bytes: counted by the servers for each job
    outside: Floats  # (direction) of the unattributed bytes: before the first job, after the last
    operations: Floats  # (direction) NaN where no server counts them
    sizes: Floats  # (bytes or operations, direction, size class) by mean size of a sampling step
    half_hours_us: Ints
    half_hours: Floats  # (direction, half hour) bytes
    jobs: pl.DataFrame  # every job of the list, with `read_attributed`, `read_shared`, …


def machine_load(
    source: CounterSource, jobs: pl.DataFrame, *, settings: MetricSettings
) -> MachineLoad:
    """Return what the servers moved over the whole record, and for which jobs, however short.

    Raises:
        NotEnoughDetailError: the source has no counters.
    """
    span = source.span()
    if span is None or span[1] <= span[0]:
        raise NotEnoughDetailError(
            needed="counters over some time",
            has="none",
            source="the store",
            hint="ingest more raw files.",
        )
    numbered = jobs.sort("start_us", "job").with_row_index("number")
    servers = tuple(source.servers())
    edges = _edges(span, len(servers), settings)
    half_hours = np.arange(
        span[0] // HALF_HOUR * HALF_HOUR, span[1] + HALF_HOUR, HALF_HOUR, dtype=np.int64
    )
    load = MachineLoad(
        servers=servers,
        edges_us=edges,
        bytes=np.zeros((2, len(servers), len(edges) - 1)),
        moved=np.zeros((2, len(servers))),
        parts=np.zeros((len(PARTS), 2, len(servers))),
        measured=np.zeros(2),
        outside=np.zeros(2),
        operations=np.full(2, np.nan),
        sizes=np.zeros((2, 2, len(SIZE_LIMITS) + 1)),
        half_hours_us=half_hours,
        half_hours=np.zeros((2, len(half_hours) - 1)),
        jobs=numbered,
    )
    of_jobs = np.zeros((2, 2, jobs.height))  # attributed or shared, direction, job
    occupied = dict(occupancies(without_own(source, numbered, settings)))
    own_servers = source.per_job_servers()
    for number, server in enumerate(servers):
        start, end = span
        samples = source.counters(server, start_us=start, end_us=end)
        series = server_series(samples, settings)
        own = COUNTERS.empty()
        if server in own_servers:
            own = source.counters(server, start_us=start, end_us=end, per_job=True)
        counted = _add_measured(load, own, series, of_jobs[0], settings)
        alone, together = np.zeros((2, 2))
        if series.empty:
            _add_growth(load, number, growth_per_sample(own))
        else:
            _add_series(load, number, series)
            if server in occupied:
                jobs_there = occupied[server].jobs
                rest = without_counted(series, own)
                uses = job_bytes(rest, occupied[server], np.arange(len(jobs_there)))
                alone, together = (part.sum(axis=1) for part in uses)
                of_jobs[0][:, jobs_there] += uses[0]
                if settings.shared == "split":
                    of_jobs[1][:, jobs_there] += uses[1]
        # The three parts add up, also where a server and its counts by job disagree.
        moved = load.moved[:, number]
        attributed = np.minimum(counted + alone, moved)
        shared = np.minimum(together, moved - attributed)
        load.measured[:] += np.minimum(counted, moved)
        load.parts[:, :, number] = attributed, shared, moved - attributed - shared
    names = [f"{d}_{part}" for part in PARTS[:2] for d in DIRECTIONS]
    columns = zip(names, of_jobs.reshape(4, -1), strict=True)
    return replace(
        load,
        outside=np.minimum(load.outside, load.parts[2].sum(axis=1)),
        jobs=numbered.with_columns(pl.Series(name, values) for name, values in columns),
    )


def _add_series(load: MachineLoad, number: int, series: Series) -> None:
    """Add a server's own counters."""
    load.bytes[:, number] = _bytes_between(series, load.edges_us)
    load.half_hours[:] += _bytes_between(series, load.half_hours_us)
    load.moved[:, number] = series.totals[BYTE_ROWS, -1] + series.unplaced[BYTE_ROWS]
    counted = series.counted[OPERATION_ROWS]
    load.operations[counted] = (np.nan_to_num(load.operations) + series.totals[OPERATION_ROWS, -1])[
        counted
    ]
    growth = np.diff(series.totals)
    _add_sizes(load, growth[BYTE_ROWS], growth[OPERATION_ROWS] * counted[:, None])
    listed = np.zeros(2)
    if load.jobs.height:
        ends = load.jobs.select(pl.col("start_us").min(), pl.col("end_us").max()).row(0)
        listed = _bytes_between(series, np.array(ends, dtype=np.int64))[:, 0]
    load.outside[:] += series.totals[BYTE_ROWS, -1] - listed


def _add_growth(load: MachineLoad, number: int, growth: pl.DataFrame) -> None:
    """Add a target that counts for jobs only, with its growth at the time of each sample."""
    if not growth.height:
        return
    times = growth["time_us"].to_numpy()
    moved, operations = (
        np.stack([growth[names[d]].to_numpy() for d in DIRECTIONS]).astype(np.float64)
        for names in (BYTES, OPERATIONS)
    )
    for place, amounts in enumerate(moved):
        load.bytes[place, number] = np.histogram(times, load.edges_us, weights=amounts)[0]
        load.half_hours[place] += np.histogram(times, load.half_hours_us, weights=amounts)[0]
    load.moved[:, number] = moved.sum(axis=1)
    load.operations[:] = np.nan_to_num(load.operations) + operations.sum(axis=1)
    _add_sizes(load, moved, operations)


def _add_sizes(load: MachineLoad, moved: Floats, operations: Floats) -> None:
    for place, (amounts, counts) in enumerate(zip(moved, operations, strict=True)):
        some = counts > 0
        kind = np.digitize(amounts[some] / np.maximum(counts[some], 1.0), SIZE_LIMITS)
        for row, weights in enumerate((amounts, counts)):
            load.sizes[row, place] += np.bincount(kind, weights[some], len(SIZE_LIMITS) + 1)


def _add_measured(
    load: MachineLoad, own: pl.DataFrame, series: Series, of_jobs: Floats, settings: MetricSettings
) -> Floats:
    """Note what each listed job moved by the server's own count of it; return the sums.

    Only while the server itself was watched: what a job had moved before is in no total.
    """
    per_job, placed = own_counters(own, load.jobs.with_columns(row=pl.col("number")), settings)
    if per_job.empty:
        return np.zeros(2)
    ends = [load.jobs[name].to_numpy()[placed.jobs] for name in ("start_us", "end_us")]
    if not series.empty:
        ends = [np.clip(end, series.times[0], series.times[-1]) for end in ends]
    place = locate(per_job, np.concatenate([end + placed.shifts for end in ends]))
    first = np.arange(len(placed.jobs))
    moved = place.between(per_job.totals[BYTE_ROWS], first, first + len(first))
    of_jobs[:, placed.jobs] += moved
    return np.asarray(moved.sum(axis=1))


def _edges(span: tuple[int, int], servers: int, settings: MetricSettings) -> Ints:
    """Cut the record into bins of equal length, none shorter than the sampling interval."""
    bins = int(np.clip(MAX_CELLS // max(servers, 1), MIN_BINS, MAX_BINS))
    bins = int(np.clip((span[1] - span[0]) // settings.interval_us, 1, bins))
    return np.linspace(span[0], span[1], bins + 1).astype(np.int64)


def _bytes_between(series: Series, edges: Ints) -> Floats:
    return locate(series, edges).steps(series.totals[BYTE_ROWS])


@dataclass(frozen=True, slots=True)
class StoredLoads:
    """The server loads in a store of counters."""

    store: Path

    def during(self, start: float, end: float) -> BackgroundLoad:
        """Return the load of all servers between two moments, in seconds since 1970."""
        return background_load(open_store(self.store), start=start, end=end)

    def between(self, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the bytes that all servers moved in each time, and the share that is known."""
        return loads_between(open_store(self.store), starts, ends)


def stored_loads(store: Path | None) -> StoredLoads | None:
    """Return the loads of a store, after a check that it can be opened."""
    if store is None:
        return None
    open_store(store)
    return StoredLoads(store)


def background_load(source: CounterSource, *, start: float, end: float) -> BackgroundLoad:
    """Return the load of all servers between two moments, in seconds since 1970."""
    names = source.servers()
    if not EARLIEST <= start * SECOND <= end * SECOND <= LATEST:
        return BackgroundLoad(len(names), 0.0, 0.0, 0.0, 0.0)  # a damaged time stamp
    first, last = round(start * SECOND), round(end * SECOND)
    interval = _interval(source, names, first, last)
    if interval is None:
        return BackgroundLoad(len(names), 0.0, (last - first) / SECOND, 0.0, 0.0)
    edges, own = _equal_spans(first, last, interval)
    moved, known = _load_of_all(source, edges, interval)
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

    Starts and ends are seconds since 1970. Every server is read once, whatever their number.
    """
    names = source.servers()
    edges = np.unique(np.round(np.concatenate([starts, ends]) * SECOND).astype(np.int64))
    interval = _interval(source, names, int(edges[0]), int(edges[-1])) if len(edges) > 1 else None
    if interval is None:
        return np.zeros(len(starts)), np.zeros(len(starts))
    first, last = (np.searchsorted(edges, np.round(t * SECOND)) for t in (starts, ends))
    sums, times = map(running_sums, _load_of_all(source, edges, interval))
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


def _load_of_all(source: CounterSource, edges: Ints, interval: int) -> tuple[Floats, Floats]:
    """What all servers moved between neighbouring edges, and how much of that time is known.

    Servers are read one after the other: the counters of all may not fit into memory.
    """
    moved, known = np.zeros((2, len(edges) - 1))
    begin, finish = int(edges[0]) - LONGEST_STEP, int(edges[-1]) + LONGEST_STEP
    for name in source.servers():
        samples = source.counters(name, start_us=begin, end_us=finish)
        series = server_series(samples, MetricSettings(interval))
        if not series.empty:
            place = locate(series, edges)
            moved += place.steps(series.totals[BYTE_ROWS]).sum(axis=0)
            known += place.steps(series.known)
    return moved, known


def _equal_spans(first: int, last: int, interval: int) -> tuple[Ints, int]:
    """Return edges of spans as long as the job, around it, and the number of the job's own."""
    length = max(last - first, MIN_STEPS * interval)
    begin = (first + last - length) // 2
    before = min(MAX_SPANS, SEARCH_AROUND // length)
    return begin + length * np.arange(-before, before + 2), before
