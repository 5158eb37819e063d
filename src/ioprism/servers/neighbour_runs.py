"""Whether an application's runs take longer beside another, where servers do not count by job."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.servers.disturbance import FEWEST, Application, Disturbance, rank_sum
from ioprism.servers.series import Floats, Ints, running_sums
from ioprism.servers.sharing import Occupancy, occupancies
from ioprism.servers.windows import Places

BESIDE, APART = 0.5, 0.1  # shares of the first part of a run that a neighbour is there
SHORTEST = 0.1  # that part is as long as all but the shortest tenth of the runs


def by_run_time(jobs: pl.DataFrame, applications: list[Application]) -> Iterator[Disturbance]:
    """Compare run times beside a neighbour with those apart from it.

    Long runs meet more neighbours than short ones, whoever is slowed down. So a run counts as
    beside a neighbour by the first part of its time only, equally long for all runs compared.
    """
    lengths = (jobs["end_us"] - jobs["start_us"]).to_numpy()
    runs = jobs.filter(pl.col("application").is_not_null())
    alike = runs.group_by("application", "nodes", maintain_order=True).agg("number")
    groups = [
        (application, np.array(numbers))
        for application, _, numbers in alike.iter_rows()
        if len(numbers) >= 2 * FEWEST
    ]
    first = np.zeros(jobs.height)
    for _, mine in groups:
        first[mine] = np.quantile(lengths[mine], SHORTEST)
    met = _meetings(jobs, len(applications), first)
    for application, mine in groups:
        for other in range(len(applications)):
            if other != application:
                yield from _of_runs(
                    applications[application], applications[other], mine, met[other], lengths
                )


def _of_runs(
    application: Application, neighbour: Application, mine: Places, met: Floats, lengths: Ints
) -> Iterator[Disturbance]:
    hours = lengths / 3.6e9
    beside, quiet = mine[met[mine] >= BESIDE], mine[met[mine] <= APART]
    if min(len(beside), len(quiet)) >= FEWEST:
        yield Disturbance(
            application,
            neighbour,
            "run_time",
            float(np.median(hours[beside]) / np.median(hours[quiet])),
            len(beside),
            len(quiet),
            float(hours[beside].sum()),
            rank_sum(-hours[quiet], -hours[beside]),
            1.0,
        )


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
