"""What each server moved, when, in requests of which size, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

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
    JobBytes,
    Occupancy,
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
    """Return what the servers moved over the whole record, and for which jobs.

    Args:
        source: the servers' counters.
        jobs: every job that is known, however short.
        settings: how to treat resets and gaps.

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
    account = _Account(
        source, jobs.sort("start_us", "job").with_row_index("number"), span, settings
    )
    for number, server in enumerate(account.servers):
        account.add(number, server)
    return account.result()


class _Account:
    """Adds the servers up, one by one."""

    def __init__(
        self,
        source: CounterSource,
        jobs: pl.DataFrame,
        span: tuple[int, int],
        settings: MetricSettings,
    ) -> None:
        self.servers = tuple(source.servers())
        self._source, self._jobs, self._span, self._settings = source, jobs, span, settings
        self._occupied = dict(occupancies(without_own(source, jobs, settings)))
        self._own = frozenset(source.per_job_servers())
        self._edges = _edges(span, len(self.servers), settings)
        self._half_hours = np.arange(
            span[0] // HALF_HOUR * HALF_HOUR, span[1] + HALF_HOUR, HALF_HOUR, dtype=np.int64
        )
        self._bytes = np.zeros((2, len(self.servers), len(self._edges) - 1))
        self._moved = np.zeros((2, len(self.servers)))
        self._parts = np.zeros((3, 2, len(self.servers)))
        self._measured, self._outside = np.zeros(2), np.zeros(2)
        self._by_half_hour = np.zeros((2, len(self._half_hours) - 1))
        self._sizes = np.zeros((2, 2, len(SIZE_LIMITS) + 1))
        self._operations = np.full(2, np.nan)
        self._of_jobs = np.zeros((2, 2, jobs.height))  # attributed or shared, direction, job

    def add(self, number: int, server: str) -> None:
        """Add one server: its totals over time, then whose they are."""
        series = server_series(self._samples(server), self._settings)
        own = self._samples(server, per_job=True) if server in self._own else COUNTERS.empty()
        measured = self._add_measured(own, series)
        occupancy = self._occupied.get(server)
        shares = None
        if series.empty:
            self._add_growth(number, growth_per_sample(own))
        else:
            self._add_series(number, series)
            self._outside += self._before_and_after(series)
            if occupancy:
                shares = self._add_uses(without_counted(series, own), occupancy)
        self._divide(number, measured, shares)

    def _samples(self, server: str, *, per_job: bool = False) -> pl.DataFrame:
        start, end = self._span
        return self._source.counters(server, start_us=start, end_us=end, per_job=per_job)

    def _add_series(self, number: int, series: Series) -> None:
        self._bytes[:, number] = _bytes_between(series, self._edges)
        self._by_half_hour += _bytes_between(series, self._half_hours)
        self._moved[:, number] = series.totals[BYTE_ROWS, -1] + series.unplaced[BYTE_ROWS]
        counted = series.counted[OPERATION_ROWS]
        operations = np.nan_to_num(self._operations) + series.totals[OPERATION_ROWS, -1]
        self._operations = np.where(counted, operations, self._operations)
        self._add_sizes(
            np.diff(series.totals[BYTE_ROWS]),
            np.diff(series.totals[OPERATION_ROWS]) * counted[:, None],
        )

    def _add_growth(self, number: int, growth: pl.DataFrame) -> None:
        """Add a target that counts for jobs only, with its growth at the time of each sample."""
        if not growth.height:
            return
        times = growth["time_us"].to_numpy()
        for place, direction in enumerate(DIRECTIONS):
            moved = growth[BYTES[direction]].to_numpy().astype(np.float64)
            self._bytes[place, number] = np.histogram(times, self._edges, weights=moved)[0]
            self._by_half_hour[place] += np.histogram(times, self._half_hours, weights=moved)[0]
            self._moved[place, number] = moved.sum()
        counts = np.stack([growth[OPERATIONS[d]].to_numpy() for d in DIRECTIONS])
        self._operations = np.nan_to_num(self._operations) + counts.sum(axis=1)
        self._add_sizes(np.stack([growth[BYTES[d]].to_numpy() for d in DIRECTIONS]), counts)

    def _add_sizes(self, moved: NDArray[np.generic], operations: NDArray[np.generic]) -> None:
        for place in range(len(DIRECTIONS)):
            count = operations[place].astype(np.float64)
            mean = moved[place].astype(np.float64) / np.maximum(count, 1.0)
            kind = np.where(count > 0, np.digitize(mean, SIZE_LIMITS), -1)
            for row, weights in enumerate((moved[place], count)):
                sums = np.bincount(kind + 1, weights, len(SIZE_LIMITS) + 2)
                self._sizes[row, place] += sums[1:]

    def _add_measured(self, own: pl.DataFrame, series: Series) -> Floats:
        """Note what each listed job moved by the server's own count of it.

        Only while the server itself was watched: what a job had moved before is in no total.
        """
        numbered = self._jobs.with_columns(row=pl.col("number"))
        per_job = own_counters(own, numbered, self._settings)
        if per_job is None:
            return np.zeros(2)
        jobs, shifts = per_job.placed.jobs, per_job.placed.shifts
        ends = [self._jobs[name].to_numpy()[jobs] for name in ("start_us", "end_us")]
        if not series.empty:
            ends = [np.clip(end, series.times[0], series.times[-1]) for end in ends]
        place = locate(per_job.series, np.concatenate([end + shifts for end in ends]))
        first = np.arange(len(jobs))
        moved = place.between(per_job.series.totals[BYTE_ROWS], first, first + len(jobs))
        self._of_jobs[0][:, jobs] += moved
        return np.asarray(moved.sum(axis=1))

    def _add_uses(self, series: Series, occupancy: Occupancy) -> JobBytes:
        uses = job_bytes(series, occupancy, np.arange(len(occupancy.jobs)))
        self._of_jobs[0][:, occupancy.jobs] += uses.attributed
        if self._settings.shared == "split":
            self._of_jobs[1][:, occupancy.jobs] += uses.shared
        return uses

    def _divide(self, number: int, measured: Floats, shares: JobBytes | None) -> None:
        """Make the three parts add up, also where a server and its counts by job disagree."""
        moved = self._moved[:, number]
        alone = shares.attributed.sum(axis=1) if shares else 0.0
        together = shares.shared.sum(axis=1) if shares else 0.0
        attributed = np.minimum(measured + alone, moved)
        shared = np.minimum(together, moved - attributed)
        self._measured += np.minimum(measured, moved)
        self._parts[:, :, number] = attributed, shared, moved - attributed - shared

    def _before_and_after(self, series: Series) -> Floats:
        if not self._jobs.height:
            return np.asarray(series.totals[BYTE_ROWS, -1])
        ends = self._jobs.select(pl.col("start_us").min(), pl.col("end_us").max()).row(0)
        listed = _bytes_between(series, np.array(ends, dtype=np.int64))[:, 0]
        return np.asarray(series.totals[BYTE_ROWS, -1] - listed)

    def result(self) -> MachineLoad:
        """Return everything."""
        names = [f"{d}_{part}" for part in PARTS[:2] for d in DIRECTIONS]
        values = self._of_jobs.reshape(4, -1)
        return MachineLoad(
            servers=self.servers,
            edges_us=self._edges,
            bytes=self._bytes,
            moved=self._moved,
            parts=self._parts,
            measured=self._measured,
            outside=np.minimum(self._outside, self._parts[2].sum(axis=1)),
            operations=self._operations,
            sizes=self._sizes,
            half_hours_us=self._half_hours,
            half_hours=self._by_half_hour,
            jobs=self._jobs.with_columns(
                pl.Series(name, row) for name, row in zip(names, values, strict=True)
            ),
        )


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
