"""Who used a server when, and whose the bytes are that it moved meanwhile.

A server's time is cut wherever a job begins or ends. What it moved while one job used it is that
job's; while several did, each gets a part in proportion to its nodes behind the server; while
nobody did, the bytes belong to no known job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.servers.activity import BYTE_ROWS
from ioprism.servers.series import (
    SPACING,
    Floats,
    Ints,
    Series,
    locate,
    running_sums,
)
from ioprism.servers.settings import MetricSettings
from ioprism.servers.windows import Places, ranges


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The jobs that used one server, and the spans of time between their starts and ends."""

    jobs: Places  # (use) the job's number in the list of all jobs, ascending
    weights: Floats  # (use) its nodes behind this server
    first: Places  # (use) its first span
    last: Places  # (use) the span after its last
    moments: Ints  # (span + 1) µs
    users: Ints  # (span) how many jobs used the server
    weight: Floats  # (span) of all of them

    def is_shared(self, uses: Places) -> NDArray[np.bool_]:
        """Whether another job used the server at any time of a use."""
        several = np.concatenate([[0], np.cumsum(self.users > 1)])
        return np.asarray(several[self.last[uses]] > several[self.first[uses]])


@dataclass(frozen=True, slots=True)
class Parts:
    """Bytes of one server that are jobs'; the first axis is the direction."""

    attributed: Floats  # (direction, use) moved while the job was alone
    shared: Floats  # (direction, use) its part of what moved while it was not


def occupancies(jobs: pl.DataFrame) -> Iterator[tuple[str, Occupancy]]:
    """Yield every server that jobs name, with who used it when.

    Args:
        jobs: `number`, `start_us`, `end_us`, `servers` (one for each node) and `nodes`.
    """
    per_name = (pl.col("nodes").clip(1) / pl.col("servers").list.len()).fill_null(1.0)
    uses = (
        jobs.select("number", "start_us", "end_us", per_name=per_name, server="servers")
        .explode("server")
        .drop_nulls("server")
        .group_by("server", "number")
        .agg(pl.col("start_us", "end_us").first(), weight=pl.col("per_name").sum())
        .sort("server", "number")
    )
    for (server,), table in uses.partition_by("server", as_dict=True).items():
        yield str(server), _occupancy(table)


def _occupancy(uses: pl.DataFrame) -> Occupancy:
    starts, ends = uses["start_us"].to_numpy(), uses["end_us"].to_numpy()
    weights = uses["weight"].to_numpy()
    moments, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    first, last = place[: len(starts)], place[len(starts) :]
    ones = np.ones(len(starts))
    count = np.bincount(place, np.concatenate([ones, -ones]), len(moments))
    weight = np.bincount(place, np.concatenate([weights, -weights]), len(moments))
    return Occupancy(
        jobs=uses["number"].to_numpy().astype(np.intp),
        weights=weights,
        first=first,
        last=last,
        moments=moments,
        users=np.rint(np.cumsum(count)[:-1]).astype(np.int64),
        weight=np.cumsum(weight)[:-1].astype(np.float64),
    )


def parts(series: Series, occupancy: Occupancy, uses: Places) -> Parts:
    """Return whose the bytes of a server are, for some of its uses."""
    alone, together = occupancy.users == 1, occupancy.users > 1
    place = locate(series, occupancy.moments)
    span = np.arange(len(occupancy.users))
    moved = place.between(series.totals[BYTE_ROWS], span, span + 1)
    weight = np.where(together, occupancy.weight, 1.0)
    first, last = occupancy.first[uses], occupancy.last[uses]
    return Parts(
        attributed=_between(moved * alone, first, last),
        shared=_between(moved * together / weight, first, last) * occupancy.weights[uses],
    )


def _between(values: Floats, first: Places, last: Places) -> Floats:
    sums = running_sums(values)
    return np.asarray(np.maximum(sums[:, last] - sums[:, first], 0.0))


def split_series(
    series: Series, occupancy: Occupancy, uses: Places, settings: MetricSettings
) -> tuple[Series, NDArray[np.int64]]:
    """Return each use's part of a server's counters, on a stretch of its own.

    With `mark`, a server that others use as well says nothing of a job: that time is unknown.

    Returns:
        One series, and how far each use's time is shifted in it.
    """
    begin = occupancy.moments[occupancy.first[uses]]
    end = occupancy.moments[occupancy.last[uses]]
    inner = occupancy.moments[occupancy.first[uses].min() : occupancy.last[uses].max() + 1]
    grid = np.unique(np.concatenate([series.times, inner]))
    first, last = np.searchsorted(grid, begin), np.searchsorted(grid, end)
    width = int(end.max() - begin.min()) + SPACING
    shifts = np.arange(len(uses), dtype=np.int64) * width - int(begin.min())
    points = ranges(first, last - first + 1)
    owner = np.repeat(np.arange(len(uses)), last - first + 1)
    steps = np.minimum(points, len(grid) - 2)
    whose = np.where(points < last[owner], _shares(grid, occupancy, settings)[steps], 0.0)
    whose *= np.where(_together(grid, occupancy)[steps], occupancy.weights[uses][owner], 1.0)
    return _shared_out(series, grid, steps, whose, grid[points] + shifts[owner]), shifts


def _span(grid: Ints, occupancy: Occupancy) -> Places:
    place = np.searchsorted(occupancy.moments, grid[:-1], side="right") - 1
    return np.asarray(np.clip(place, 0, len(occupancy.users) - 1))


def _together(grid: Ints, occupancy: Occupancy) -> NDArray[np.bool_]:
    return np.asarray(occupancy.users[_span(grid, occupancy)] > 1)


def _shares(grid: Ints, occupancy: Occupancy, settings: MetricSettings) -> Floats:
    """Return what part of each step one node has; all of it where its job is alone."""
    each = 1.0 / np.maximum(occupancy.weight, 1e-12) if settings.shared == "split" else 0.0
    return np.asarray(np.where(occupancy.users > 1, each, 1.0))[_span(grid, occupancy)]


def _shared_out(series: Series, grid: Ints, steps: Places, whose: Floats, times: Ints) -> Series:
    place = locate(series, grid)
    edges = np.arange(len(grid))
    growth = place.between(series.totals, edges[:-1], edges[1:])[:, steps] * whose
    known = place.between(series.known, edges[:-1], edges[1:])[steps] * (whose > 0)
    inside = place.step[:-1][steps]
    return Series(
        times=times,
        totals=running_sums(growth[:, :-1]),
        known=running_sums(known[:-1]),
        resets=series.resets[inside][:-1],
        gaps=series.gaps[inside][:-1],
        told=series.told,
        unplaced=np.zeros(len(series.unplaced)),
    )
