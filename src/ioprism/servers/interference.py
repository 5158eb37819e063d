"""Who slows whom down: applications that used the same servers at the same time.

An application is one user's jobs of one name. Where servers count for each job, its bandwidth
while a neighbour moves data on its servers is compared with its bandwidth at quiet times. Where
they do not, its run times beside a neighbour are compared with those without it.

Neighbouring samples resemble each other, so what is compared are episodes (all consecutive time
in one state is one observation) or whole runs, by the rank-sum test of Wilcoxon, Mann and
Whitney; Holm's correction accounts for the number of pairs that were looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import SECOND, CounterSource
from ioprism.servers import limits
from ioprism.servers.activity import Places, ranges
from ioprism.servers.attribution import Occupancy, occupancies, own_counters
from ioprism.servers.load import MachineLoad
from ioprism.servers.series import BYTE_ROWS, Floats, Ints, MetricSettings, locate, running_sums
from ioprism.site.change_point import rank_sum
from ioprism.units import HOUR

MIN_SLOWDOWN = 1 + limits.NEGLIGIBLE  # smaller effects are not worth a talk with the user
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Application:
    """One user's jobs of one name."""

    user: str | None
    name: str | None
    jobs: int
    hours: float  # run time


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How fast an application is beside another, compared with its quiet times."""

    application: Application
    neighbour: Application
    measure: str  # bandwidth or run_time
    slowdown: float  # 2: half as fast
    beside: int  # observations with the neighbour
    quiet: int  # and without
    hours: float  # of the application beside the neighbour
    probability: float  # of such a slowdown by chance alone
    adjusted: float  # the same, for all pairs looked at

    @property
    def certain(self) -> bool:
        """Whether it is slower by more than chance would make it."""
        return self.adjusted < limits.SIGNIFICANCE and self.slowdown > MIN_SLOWDOWN


def correct_by_holm(pairs: Sequence[Disturbance]) -> list[Disturbance]:
    """Correct by Holm: the smallest counts for all pairs, the next for all but one, and so on."""
    corrected, highest = [], 0.0
    for rank, pair in enumerate(sorted(pairs, key=lambda pair: pair.probability)):
        highest = max(highest, min(1.0, (len(pairs) - rank) * pair.probability))
        corrected.append(replace(pair, adjusted=highest))
    return corrected


def by_bandwidth(
    source: CounterSource,
    load: MachineLoad,
    jobs: pl.DataFrame,
    applications: list[Application],
    settings: MetricSettings,
) -> Iterator[Disturbance]:
    """Compare an application's rate while a neighbour is active with its quiet times."""
    if not source.per_job_servers():
        return
    seconds, moved, runs, beside_bytes, other_bytes = _rates(
        source, load, jobs, len(applications), settings
    )
    for number, application in enumerate(applications):
        active = _inner_bins(moved[number] > 0)
        if active.sum() < 2 * limits.MIN_OBSERVATIONS:
            continue
        own = moved[number] / np.maximum(runs[number], 1.0)
        noticeable = limits.MINOR * float(np.median(moved[number][active]))
        others = other_bytes[number]
        quiet = active & (
            others <= max(noticeable, float(np.quantile(others[active], limits.QUIET)))
        )
        for other, neighbour in enumerate(applications):
            there = beside_bytes[number, other] >= noticeable
            if other != number:
                beside = active & there
                slow, fast = _episodes(own, beside), _episodes(own, quiet & ~there)
                hours = float(beside.sum()) * seconds / HOUR
                pair = (application, neighbour, "bandwidth")
                yield from _compare(*pair, -slow, -fast, hours)


def _inner_bins(active: Bools) -> Bools:
    """Leave out bins at the edges of activity: they are filled in part only."""
    inner = active.copy()
    inner[1:] &= active[:-1]
    inner[:-1] &= active[1:]
    return inner if inner.sum() >= 2 * limits.MIN_OBSERVATIONS else active


def _compare(
    application: Application,
    neighbour: Application,
    measure: str,
    beside: Floats,
    quiet: Floats,
    hours: float,
) -> Iterator[Disturbance]:
    """Compare run times, or logarithms of the time per byte, beside a neighbour and without it."""
    if min(len(beside), len(quiet)) >= limits.MIN_OBSERVATIONS:
        slow, fast = float(np.median(beside)), float(np.median(quiet))
        slowdown = slow / fast if measure == "run_time" else math.exp(slow - fast)
        counts = (len(beside), len(quiet))
        chance = rank_sum(beside, quiet)
        yield Disturbance(application, neighbour, measure, slowdown, *counts, hours, chance, 1.0)


def _episodes(own: Floats, state: Bools) -> Floats:
    """Return the mean logarithm of the rate of each stretch of time in one state."""
    begins = state & ~np.concatenate([[False], state[:-1]])
    number = np.cumsum(begins)[state] - 1
    logs = np.log(own[state])
    return np.asarray(np.bincount(number, logs) / np.maximum(np.bincount(number), 1))


def _rates(
    source: CounterSource,
    load: MachineLoad,
    jobs: pl.DataFrame,
    applications: int,
    settings: MetricSettings,
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """Return what applications moved, and what others moved on their servers meanwhile.

    Returns:
        The seconds of a bin; each application's bytes (application, bin) and jobs that moved
        some of them; the bytes of each neighbour (application, neighbour, bin) and of everybody
        else (application, bin) on the application's servers.
    """
    start, end = int(load.edges_us[0]), int(load.edges_us[-1])
    bins = int(np.clip((end - start) // settings.interval_us, 1, limits.MAX_BINS))
    edges = np.linspace(start, end, bins + 1).astype(np.int64)
    own, runs = np.zeros((applications, bins)), np.zeros((applications, bins))
    beside = np.zeros((applications, applications, bins))
    others = np.zeros((applications, bins))
    for server in source.per_job_servers():
        samples = source.counters(server, start_us=start, end_us=end, per_job=True)
        moved, count = _server_rates(samples, jobs, edges, applications, settings)
        used = moved[:-1].any(axis=1)
        own += moved[:-1]
        runs = np.maximum(runs, count[:-1])
        beside[used] += moved[:-1]
        everybody = moved.sum(axis=0)
        others[used] += (everybody - moved[:-1])[used]
    return (end - start) / bins / SECOND, own, runs, beside, others


def _server_rates(
    samples: pl.DataFrame,
    jobs: pl.DataFrame,
    edges: Ints,
    applications: int,
    settings: MetricSettings,
) -> tuple[Floats, Floats]:
    """Return bytes and active jobs of each application in each bin; the last row is the rest."""
    bins = len(edges) - 1
    sums, counts = np.zeros((2, applications + 1, bins))
    series, placed = own_counters(samples, jobs.with_columns(row=pl.col("number")), settings)
    if series.empty:
        return sums, counts
    numbers = placed.jobs
    first, last = _bins_of(jobs, numbers, edges)
    points = ranges(first, last - first + 1)
    owner = np.repeat(np.arange(len(numbers)), last - first + 1)
    place = locate(series, edges[points] + placed.shifts[owner])
    left = np.flatnonzero(owner[1:] == owner[:-1])
    moved = place.between(series.totals[BYTE_ROWS].sum(axis=0), left, left + 1)
    of = jobs["application"].fill_null(applications).to_numpy()[numbers][owner[left]]
    np.add.at(sums, (of, points[left]), moved)
    np.add.at(counts, (of, points[left]), moved > 0)
    return sums, counts


def _bins_of(jobs: pl.DataFrame, numbers: Places, edges: Ints) -> tuple[Places, Places]:
    starts, ends = (jobs[name].to_numpy()[numbers] for name in ("start_us", "end_us"))
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, len(edges) - 2)
    last = np.clip(np.searchsorted(edges, ends), first + 1, len(edges) - 1)
    return first, last


def by_run_time(jobs: pl.DataFrame, applications: list[Application]) -> Iterator[Disturbance]:
    """Compare run times beside a neighbour with those apart from it.

    Long runs meet more neighbours than short ones, slowed down or not. So only the first part of
    a run, equally long for all runs compared, decides whether it ran beside a neighbour.
    """
    lengths = (jobs["end_us"] - jobs["start_us"]).to_numpy()
    hours = lengths / (HOUR * SECOND)
    runs = jobs.filter(pl.col("application").is_not_null())
    alike = runs.group_by("application", "nodes", maintain_order=True).agg("number")
    groups = [
        (application, np.array(numbers))
        for application, _, numbers in alike.iter_rows()
        if len(numbers) >= 2 * limits.MIN_OBSERVATIONS
    ]
    first = np.zeros(jobs.height)
    for _, mine in groups:
        first[mine] = np.quantile(lengths[mine], limits.MINOR)
    met = _meetings(jobs, len(applications), first)
    for application, mine in groups:
        for other, neighbour in enumerate(applications):
            if other != application:
                beside, quiet = (
                    hours[mine[chosen]]
                    for chosen in (
                        met[other, mine] >= limits.BESIDE,
                        met[other, mine] <= limits.MINOR,
                    )
                )
                pair = (applications[application], neighbour, "run_time")
                yield from _compare(*pair, beside, quiet, float(beside.sum()))


def _meetings(jobs: pl.DataFrame, applications: int, first: Floats) -> Floats:
    """Return the share of the first part of each job's time in which an application was there.

    Args:
        jobs: all of them.
        applications: how many are numbered.
        first: how long that part is, in µs; 0 for jobs that are not asked about.
    """
    of = jobs["application"].fill_null(-1).to_numpy()
    met, there = np.zeros((applications, jobs.height)), np.zeros(jobs.height)
    for _, occupancy in occupancies(jobs):
        numbers = occupancy.jobs
        there[numbers] += first[numbers]
        begin = occupancy.moments[occupancy.first]
        for other in np.unique(of[numbers]) if (occupancy.users > 1).any() else ():
            if other >= 0:
                present = running_sums(
                    np.diff(occupancy.moments) * _present(occupancy, of[numbers] == other)
                )
                ends: list[Floats] = [begin.astype(np.float64), begin + first[numbers]]
                before, after = (np.interp(end, occupancy.moments, present) for end in ends)
                met[other, numbers] += after - before
    return np.asarray(met / np.maximum(there, 1.0))


def _present(occupancy: Occupancy, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether any of some uses covers a span."""
    spans = len(occupancy.users)
    begins = np.bincount(occupancy.first[chosen], minlength=spans + 1)
    ends = np.bincount(occupancy.last[chosen], minlength=spans + 1)
    return np.asarray(np.cumsum(begins - ends)[:spans] > 0)


def interference(
    source: CounterSource, load: MachineLoad, *, settings: MetricSettings
) -> tuple[Disturbance, ...]:
    """Return every pair of applications that met often enough, the most certain first."""
    jobs, applications = _applications(load.jobs)
    if len(applications) < 1:
        return ()
    pairs = [
        *by_bandwidth(source, load, jobs, applications, settings),
        *by_run_time(jobs, applications),
    ]
    return tuple(sorted(correct_by_holm(pairs), key=lambda pair: (pair.adjusted, -pair.slowdown)))


def _applications(jobs: pl.DataFrame) -> tuple[pl.DataFrame, list[Application]]:
    """Number the applications that moved most; other jobs have no number."""
    moved = pl.sum_horizontal(pl.selectors.ends_with("_attributed", "_shared"))
    hours = (pl.col("end_us") - pl.col("start_us")).sum() / (HOUR * SECOND)
    named = jobs.filter(pl.col("user").is_not_null() | pl.col("name").is_not_null())
    largest = (
        named.group_by("user", "name")
        .agg(pl.len(), hours=hours, moved=moved.sum())
        .sort("moved", "user", "name", descending=[True, False, False])
        .head(limits.MAX_APPLICATIONS)
        .with_row_index("application")
    )
    numbered = jobs.join(
        largest.select("user", "name", "application"), on=["user", "name"], how="left",
        nulls_equal=True, maintain_order="left",
    )  # fmt: skip
    rows = largest.select("user", "name", "len", "hours").iter_rows()
    return numbered.with_columns(pl.col("application").cast(pl.Int64)), [
        Application(*row) for row in rows
    ]
