"""What each server moved, when, in requests of which size, and for whom: one pass over a store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import (
    BYTES,
    COUNTERS,
    DIRECTIONS,
    OPERATIONS,
    SECOND,
    CounterSource,
)
from ioprism.servers.activity import BYTE_ROWS, OPERATION_ROWS
from ioprism.servers.compute import without_own
from ioprism.servers.own_counters import grown, not_counted, own_counters
from ioprism.servers.series import Floats, Ints, Series, locate, server_series
from ioprism.servers.settings import MetricSettings
from ioprism.servers.sharing import Occupancy, Parts, occupancies, parts

CELLS = 60_000  # as many as a page can draw and a browser can hold with ease
MOST_BINS = 360
FEWEST_BINS = 48
HALF_HOUR = 1800 * SECOND  # time zones differ by multiples of it
# Mean request sizes of a sampling step, told apart at these bytes.
SIZE_LIMITS = (4 * 2**10, 64 * 2**10, 512 * 2**10, 4 * 2**20)
PARTS = ("attributed", "shared", "unattributed")


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The servers' own account; the first axis of tables is the direction unless said."""

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
        NotEnoughDetailError: there are no counters.
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
        found = None
        if series.empty:
            self._add_growth(number, grown(own))
        else:
            self._add_series(number, series)
            self._outside += self._before_and_after(series)
            rest = not_counted(series, own)
            found = self._add_uses(rest, occupancy) if occupancy else None
        self._divide(number, measured, found)

    def _samples(self, server: str, *, per_job: bool = False) -> pl.DataFrame:
        start, end = self._span
        return self._source.counters(server, start_us=start, end_us=end, per_job=per_job)

    def _add_series(self, number: int, series: Series) -> None:
        self._bytes[:, number] = _between(series, self._edges)
        self._by_half_hour += _between(series, self._half_hours)
        self._moved[:, number] = series.totals[BYTE_ROWS, -1] + series.unplaced[BYTE_ROWS]
        told = series.told[OPERATION_ROWS]
        operations = series.totals[OPERATION_ROWS, -1]
        counted = np.nan_to_num(self._operations) + operations
        self._operations = np.where(told, counted, self._operations)
        self._add_sizes(
            np.diff(series.totals[BYTE_ROWS]),
            np.diff(series.totals[OPERATION_ROWS]) * told[:, None],
        )

    def _add_growth(self, number: int, growth: pl.DataFrame) -> None:
        """A target that counts for jobs only: growth is put where it was seen."""
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
        found = own_counters(own, numbered, self._settings)
        if found is None:
            return np.zeros(2)
        jobs, shifts = found.placed.jobs, found.placed.shifts
        ends = [self._jobs[name].to_numpy()[jobs] for name in ("start_us", "end_us")]
        if not series.empty:
            ends = [np.clip(end, series.times[0], series.times[-1]) for end in ends]
        place = locate(found.series, np.concatenate([end + shifts for end in ends]))
        first = np.arange(len(jobs))
        moved = place.between(found.series.totals[BYTE_ROWS], first, first + len(jobs))
        self._of_jobs[0][:, jobs] += moved
        return np.asarray(moved.sum(axis=1))

    def _add_uses(self, series: Series, occupancy: Occupancy) -> Parts:
        uses = parts(series, occupancy, np.arange(len(occupancy.jobs)))
        self._of_jobs[0][:, occupancy.jobs] += uses.attributed
        if self._settings.shared == "split":
            self._of_jobs[1][:, occupancy.jobs] += uses.shared
        return uses

    def _divide(self, number: int, measured: Floats, parts: Parts | None) -> None:
        """Make the three parts add up, also where a server and its counts by job disagree."""
        moved = self._moved[:, number]
        none = np.zeros((2, 1))
        alone = (parts.attributed if parts else none).sum(axis=1)
        together = (parts.shared if parts else none).sum(axis=1)
        attributed = np.minimum(measured + alone, moved)
        shared = np.minimum(together, moved - attributed)
        self._measured += np.minimum(measured, moved)
        self._parts[:, :, number] = attributed, shared, moved - attributed - shared

    def _before_and_after(self, series: Series) -> Floats:
        if not self._jobs.height:
            return np.asarray(series.totals[BYTE_ROWS, -1])
        ends = self._jobs.select(pl.col("start_us").min(), pl.col("end_us").max()).row(0)
        listed = _between(series, np.array(ends, dtype=np.int64))[:, 0]
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
    bins = int(np.clip(CELLS // max(servers, 1), FEWEST_BINS, MOST_BINS))
    bins = int(np.clip((span[1] - span[0]) // settings.interval_us, 1, bins))
    return np.linspace(span[0], span[1], bins + 1).astype(np.int64)


def _between(series: Series, edges: Ints) -> Floats:
    place = locate(series, edges)
    left = np.arange(len(edges) - 1)
    return place.between(series.totals[BYTE_ROWS], left, left + 1)
