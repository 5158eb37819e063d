"""Jobs to schedule: drawn from a description, with three magnitudes of period if none is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprism.model.machine import JobClass, Workload
from ioprism.scheduling.machine import Iteration, SimulatedJob

START_UP = (0.1, 3.0)  # of a usual step: how long a job computes before its first phase
MOST_STEPS = 20_000  # of a job; then they are repeated


def three_magnitudes(*, load: float = 0.8, each: int = 4) -> Workload:
    """Periods of about 10, 100 and 1000 s, mixed, as in the IO-Sets paper.

    Args:
        load: share of the time in which the file system would be busy without waiting.
        each: jobs of each magnitude.
    """
    share = load / (3 * each)
    names = (("fast", 10.0), ("middle", 100.0), ("slow", 1000.0))
    return Workload(tuple(JobClass(name, each, period, share) for name, period in names))


def draw_jobs(workload: Workload, *, seed: int) -> list[SimulatedJob]:
    """Draw the jobs of a workload: their periods, and how long every step computes."""
    chance = np.random.default_rng(seed)
    jobs = []
    for kind in workload.classes:
        for number in range(kind.count):
            period = kind.period * max(0.2, 1.0 + kind.spread * float(chance.standard_normal()))
            steps = min(MOST_STEPS, int(2.0 * workload.horizon / period) + 2)
            jitter = np.clip(1.0 + kind.variation * chance.standard_normal(steps), 0.1, 2.0)
            jitter[0] *= chance.uniform(*START_UP)
            rate = min(kind.bandwidth or workload.bandwidth, workload.bandwidth)
            moved = kind.io_share * period * rate
            compute = (1.0 - kind.io_share) * period * jitter
            jobs.append(
                SimulatedJob(
                    f"{kind.name} {number + 1}",
                    tuple(Iteration(seconds, moved) for seconds in compute.tolist()),
                    nodes=kind.nodes,
                    bandwidth=rate,
                    start=float(chance.uniform(0.0, kind.period)),
                )
            )
    return jobs


def repeating(
    name: str, phases: Sequence[tuple[float, float, float]], *, nodes: int = 1, start: float = 0.0
) -> SimulatedJob:
    """Return a job that repeats the phases (start, end, bytes) that another one had."""
    steps, before = [], 0.0
    fastest = 0.0
    for begin, end, moved in phases:
        steps.append(Iteration(max(0.0, begin - before), moved))
        fastest = max(fastest, moved / max(end - begin, 1e-6))
        before = end
    return SimulatedJob(name, tuple(steps), nodes=nodes, bandwidth=fastest, start=start)
