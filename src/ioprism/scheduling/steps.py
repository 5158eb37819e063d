"""What jobs gain from a schedule of the file system: jobs from anywhere, simulated on all cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, NotEnoughDetailError, UsageError
from ioprism.model.machine import JobClass, Workload
from ioprism.model.trace import Trace
from ioprism.scheduling.knowledge import (
    FtioPredictor,
    LivePeriods,
    PredictedPeriods,
    TruePeriods,
    mean_period,
)
from ioprism.scheduling.machine import Iteration, Knowledge, MachineRun, SimulatedJob, simulate
from ioprism.scheduling.policies import POLICIES
from ioprism.scheduling.result import Lane, Schedule, outcome
from ioprism.units import format_counted

START_UP = (0.1, 3.0)  # of a usual step: how long a job computes before its first phase
MOST_STEPS = 20_000  # of a job; then they are repeated


def three_magnitudes(*, load: float = 0.8) -> Workload:
    """Periods of about 10, 100 and 1000 s, mixed, as in the IO-Sets paper.

    Args:
        load: share of the time in which the file system would be busy without waiting.
    """
    names = (("fast", 10.0), ("middle", 100.0), ("slow", 1000.0))
    each = 4  # jobs of a magnitude
    share = load / (each * len(names))
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


SOURCES = ("given", "live", "ftio")  # who may tell the periods of jobs
USES_PERIODS = ("set-10",)
PICTURED = 3.0  # of the slowest period, in the picture
MOST_LANES = 24


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Which policies to compare, and how long."""

    policies: tuple[str, ...] = tuple(POLICIES)
    phases: tuple[str, ...] = ("given", "live")  # of SOURCES
    seeds: int = 5
    first_seed: int = 0
    bandwidth: float | None = None  # bytes per second; of the workload if None
    horizon: float | None = None  # seconds; of the workload if None
    ftio_python: Path | None = None  # an interpreter with FTIO, for phases `ftio`
    processes: int | None = None

    @property
    def seed_numbers(self) -> range:
        """The seeds that are drawn."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def __post_init__(self) -> None:
        for chosen, known in ((self.policies, tuple(POLICIES)), (self.phases, SOURCES)):
            wrong = [name for name in chosen if name not in known]
            if wrong:
                raise UsageError(f"nothing is called {wrong[0]!r}.\nHint: use {', '.join(known)}.")
        if "ftio" in self.phases and self.ftio_python is None:
            raise UsageError(
                "periods of FTIO need a Python that has it.\nHint: use --ftio-python PATH."
            )


@dataclass(frozen=True, slots=True)
class _Work:
    """What one process does: all policies for one seed."""

    seed: int
    jobs: tuple[SimulatedJob, ...]
    bandwidth: float
    horizon: float
    settings: ScheduleSettings


def schedule_workload(
    workload: Workload | None, settings: ScheduleSettings, *, source: str = "three magnitudes"
) -> Schedule:
    """Compare policies on a described workload, drawn again for every seed."""
    chosen = workload or three_magnitudes()
    bandwidth = settings.bandwidth or chosen.bandwidth
    horizon = settings.horizon or chosen.horizon
    drawn = Workload(chosen.classes, bandwidth, horizon)
    seeds = [(seed, draw_jobs(drawn, seed=seed)) for seed in settings.seed_numbers]
    return _schedule(seeds, settings, bandwidth=bandwidth, horizon=horizon, source=source)


def schedule_jobs(
    jobs: Sequence[SimulatedJob], settings: ScheduleSettings, *, source: str
) -> Schedule:
    """Compare policies on jobs that are known; seeds shift when each of them begins.

    Raises:
        UsageError: there are fewer than two jobs.
    """
    if len(jobs) < 2:
        raise UsageError(
            f"only {format_counted(len(jobs), 'job')} with I/O phases: nothing to schedule.\n"
            "Hint: give the traces of two jobs or more."
        )
    bandwidth = settings.bandwidth or max(job.bandwidth for job in jobs)
    longest = max(mean_period(job, bandwidth) for job in jobs)
    horizon = settings.horizon or 20.0 * longest
    seeds = []
    for seed in settings.seed_numbers:
        chance = np.random.default_rng(seed)
        latest = (mean_period(job, bandwidth) for job in jobs)
        starts = [float(chance.uniform(0.0, period)) for period in latest]
        shifted = [replace(job, start=start) for job, start in zip(jobs, starts, strict=True)]
        seeds.append((seed, shifted))
    return _schedule(seeds, settings, bandwidth=bandwidth, horizon=horizon, source=source)


def jobs_of_traces(groups: Sequence[tuple[Path, ...]]) -> list[SimulatedJob]:
    """The jobs of traces: the phases of each, to be repeated.

    Raises:
        NotEnoughDetailError: no trace tells when its job did I/O.
    """
    from ioprism.engine.base import LocalEngine
    from ioprism.formats.registry import read_trace

    jobs = []
    for number, group in enumerate(groups, start=1):
        trace = read_trace(*group, grouping="one")
        try:
            phases = _phases_of(trace, LocalEngine())
        except AnalysisError:
            continue
        if phases:
            name = f"{number} {trace.paths[0].name}"
            jobs.append(repeating(name, phases, nodes=max(1, trace.population.hosts or 1)))
    if not jobs:
        raise NotEnoughDetailError(
            needed="reads or writes with their times",
            has="none in these traces",
            hint="trace with DXT enabled (DXT_ENABLE_IO_TRACE=1).",
        )
    return jobs


def jobs_of_store(folder: Path) -> list[SimulatedJob]:
    """The periodic jobs of a site store, by what it keeps of their periods."""
    from ioprism.site.store import open_site

    jobs = []
    for row in open_site(folder).table("jobs").iter_rows(named=True):
        if row["pattern"] != "periodic" or not row["phase_bytes"]:
            continue
        length = max(row["duty_cycle"], 1e-6) * row["period"]
        phases = [(row["period"] - length, row["period"], row["phase_bytes"])]
        name = f"{row['application'] or 'job'} {row['job'][:6]}"
        jobs.append(repeating(name, phases, nodes=row["nodes"]))
    return jobs


def _phases_of(trace: Trace, engine: Engine) -> list[tuple[float, float, float]]:
    """Start, end and bytes of a job's phases: those of its period, else all of its I/O."""
    from ioprism.periodicity.describe import phase_volumes
    from ioprism.periodicity.of_job import PeriodSettings, job_periodicity

    period = job_periodicity(trace, engine, PeriodSettings()).whole
    if period.period is None or not period.period.phases:
        return []
    spans = list(period.period.phases)
    volumes = phase_volumes(period.signal, spans).tolist()
    return [(a, b, moved) for (a, b), moved in zip(spans, volumes, strict=True) if moved > 0.0]


def _schedule(
    seeds: Sequence[tuple[int, Sequence[SimulatedJob]]],
    settings: ScheduleSettings,
    *,
    bandwidth: float,
    horizon: float,
    source: str,
) -> Schedule:
    work = [_Work(seed, tuple(jobs), bandwidth, horizon, settings) for seed, jobs in seeds]
    cores = settings.processes or len(os.sched_getaffinity(0))
    if cores > 1 and len(work) > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(min(cores, len(work))) as pool:
            results = list(pool.map(_run_all, work))
    else:
        results = list(map(_run_all, work))
    pairs = _pairs(settings)
    outcomes = [outcome(*pair, [run[pair] for run in results]) for pair in pairs]
    jobs = seeds[0][1]
    lanes = [
        Lane(
            *pair,
            job.name,
            tuple((t.asked, t.served, t.end) for t in results[0][pair].turns if t.job == number),
        )
        for pair in pairs
        for number, job in enumerate(jobs[:MOST_LANES])
    ]
    # Share of the time in which the file system would be busy if no job waited for another.
    load = 0.0
    for job in jobs:
        volume = sum(one.bytes for one in job.iterations) / len(job.iterations)
        load += volume / bandwidth / mean_period(job, bandwidth)
    return Schedule(source, bandwidth, horizon, len(seeds), load, tuple(outcomes), tuple(lanes))


def _pairs(settings: ScheduleSettings) -> list[tuple[str, str]]:
    """Policies, and who tells them periods."""
    return [
        (policy, phases)
        for policy in settings.policies
        for phases in (settings.phases if policy in USES_PERIODS else ("none",))
    ]


def _run_all(work: _Work) -> dict[tuple[str, str], MachineRun]:
    slowest = max(mean_period(job, work.bandwidth) for job in work.jobs)
    run = partial(
        simulate,
        work.jobs,
        bandwidth=work.bandwidth,
        horizon=work.horizon,
        turns_until=min(work.horizon, PICTURED * slowest),
    )
    with ExitStack() as stack:
        return {
            (policy, phases): run(POLICIES[policy], _knowledge(phases, work, stack))
            for policy, phases in _pairs(work.settings)
        }


def _knowledge(phases: str, work: _Work, stack: ExitStack) -> Knowledge:
    if phases == "live":
        return LivePeriods(work.jobs)
    if phases == "ftio" and work.settings.ftio_python is not None:
        predictor = FtioPredictor(work.settings.ftio_python)
        stack.callback(predictor.close)
        return PredictedPeriods(work.jobs, predictor)
    return TruePeriods(work.jobs, work.bandwidth)
