"""How do jobs that share a file system run under a policy? A simulation by fluid flows.

Every job alternates between computing and an I/O phase. Between two events (a phase begins or
ends) the policy gives every waiting phase a rate; bytes flow evenly at it. The model is that of
IO-Sets (Boito, Pallez, Teylo, Vidal, IEEE TPDS 2023): the file system has one total bandwidth,
and a job computes on only when its phase is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ioprism.scheduling.policies import Policy, Waiting

DONE = 1e-9  # of a phase's bytes; what is left below is rounding
MOST_EVENTS = 5_000_000  # a simulation that needs more would take minutes


@dataclass(frozen=True, slots=True)
class Iteration:
    """One step of a job: computing, then an I/O phase."""

    compute: float  # seconds
    bytes: float


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A job as a list of steps that are repeated until the end of the simulation."""

    name: str
    iterations: tuple[Iteration, ...]
    nodes: int = 1
    bandwidth: float = math.inf  # bytes per second that the job can use by itself
    start: float = 0.0  # seconds


class Knowledge(Protocol):
    """What a scheduler knows of the periods of jobs."""

    def period(self, job: int, *, now: float) -> float | None:
        """Seconds between two phases of a job that asks now, or None if nothing is known yet."""
        ...

    def observe(self, job: int, *, start: float, end: float, moved: float) -> None:
        """Note a phase that has ended."""
        ...


@dataclass(frozen=True, slots=True)
class ServedPhase:
    """One phase as it was served."""

    job: int
    asked: float  # seconds, when the job began to wait
    served: float  # seconds, when its first byte was moved
    end: float


@dataclass(slots=True)
class JobRun:
    """What a job did until the end of the simulation."""

    name: str
    nodes: int
    compute: float = 0.0  # seconds
    io: float = 0.0  # seconds from asking until served
    ideal_io: float = 0.0  # seconds that the same bytes take without other jobs
    moved: float = 0.0  # bytes
    phases: int = 0  # that ended

    @property
    def io_slowdown(self) -> float:
        """How many times longer I/O took than without other jobs."""
        return self.io / self.ideal_io if self.ideal_io > 0.0 else 1.0

    @property
    def stretch(self) -> float:
        """How many times longer the job took than without other jobs."""
        ideal = self.compute + self.ideal_io
        return (self.compute + self.io) / ideal if ideal > 0.0 else 1.0


@dataclass(slots=True)
class MachineRun:
    """All jobs of a simulation, and the first turns of their phases."""

    jobs: list[JobRun]
    turns: list[ServedPhase]
    horizon: float  # seconds

    @property
    def utilisation(self) -> float:
        """Share of the nodes' time spent computing."""
        busy = sum(run.nodes * run.compute for run in self.jobs)
        total = sum(run.nodes * (run.compute + run.io) for run in self.jobs)
        return busy / total if total > 0.0 else 1.0

    @property
    def io_slowdown(self) -> float:
        """The mean of the jobs' I/O slowdowns."""
        return sum(run.io_slowdown for run in self.jobs) / len(self.jobs)

    @property
    def max_stretch(self) -> float:
        """The stretch of the job that suffers most."""
        return max(run.stretch for run in self.jobs)


@dataclass(slots=True)
class _Running:
    """Where a job is."""

    job: SimulatedJob
    run: JobRun
    ready: float  # seconds, when its computing ends
    step: int = 0
    waiting: Waiting | None = None
    served: float = math.inf

    @property
    def iteration(self) -> Iteration:
        return self.job.iterations[self.step % len(self.job.iterations)]


def simulate(
    jobs: Sequence[SimulatedJob],
    policy: Policy,
    knowledge: Knowledge,
    *,
    bandwidth: float,
    horizon: float,
    turns_until: float = 0.0,
) -> MachineRun:
    """Let jobs run until a horizon (seconds) on a file system of a bandwidth (bytes per second).

    Turns that begin before `turns_until` (seconds) are kept for a picture.
    """
    running = [
        _Running(job, JobRun(job.name, job.nodes), job.start + job.iterations[0].compute)
        for job in jobs
    ]
    turns: list[ServedPhase] = []
    now = 0.0
    for _ in range(MOST_EVENTS):
        for number, one in enumerate(running):
            if one.waiting is None and one.ready <= now < horizon:
                _ask(number, one, knowledge, bandwidth, now)
        waiting = [one.waiting for one in running if one.waiting is not None]
        if now >= horizon and not waiting:
            break
        rates = policy(waiting, bandwidth)
        moments = [w.left / rate for w, rate in zip(waiting, rates, strict=True) if rate > 0.0]
        if now < horizon:
            moments += [horizon - now, *(one.ready - now for one in running if not one.waiting)]
        step = max(min(moments), 0.0)
        _advance(running, rates, step, now, bandwidth, horizon)
        now += step
        for number, one in enumerate(running):
            phase = one.waiting
            if phase is not None and phase.left <= DONE * phase.total:
                if phase.arrival < turns_until:
                    turns.append(ServedPhase(number, phase.arrival, one.served, now))
                _finish(one, phase, knowledge, now)
    return MachineRun([one.run for one in running], turns, min(now, horizon))


def _ask(number: int, one: _Running, knowledge: Knowledge, bandwidth: float, now: float) -> None:
    moved, age = one.iteration.bytes, now - one.job.start
    one.served = math.inf
    one.waiting = Waiting(
        job=number,
        arrival=now,
        left=moved,
        total=moved,
        limit=min(one.job.bandwidth, bandwidth),
        period=knowledge.period(number, now=age),
        age=age,
    )


def _advance(
    running: Sequence[_Running],
    rates: Sequence[float],
    step: float,
    now: float,
    bandwidth: float,
    horizon: float,
) -> None:
    shares = iter(rates)
    for one in running:
        if one.waiting is None:
            end = min(now + step, horizon)
            one.run.compute += max(0.0, min(end - now, end - one.job.start))
            continue
        rate = next(shares)
        if rate > 0.0 and math.isinf(one.served):
            one.served = now
        moved = min(one.waiting.left, rate * step)
        one.waiting.left -= moved
        one.run.moved += moved
        one.run.io += step
        one.run.ideal_io += moved / min(one.job.bandwidth, bandwidth)


def _finish(one: _Running, phase: Waiting, knowledge: Knowledge, now: float) -> None:
    begin = phase.arrival - one.job.start
    knowledge.observe(phase.job, start=begin, end=now - one.job.start, moved=phase.total)
    one.waiting = None
    one.run.phases += 1
    one.step += 1
    one.ready = now + one.iteration.compute
