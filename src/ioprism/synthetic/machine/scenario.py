"""A program on a machine with something wrong, and the same without: the truth of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from ioprism.synthetic.machine.hardware import (
    Discipline,
    FileSystem,
    Floats,
    Machine,
    MiB,
    Noise,
    NoiseKind,
)
from ioprism.synthetic.machine.program import Program
from ioprism.synthetic.machine.simulate import Run, run

Setting = tuple[Program, Machine]
Truth = dict[str, object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A case before it is run. Without accepted causes there is nothing to gain."""

    program: Program
    machine: Machine
    causes: tuple[str, ...] = ()  # codes accepted as the first cause, best first
    culprit: Mapping[str, object] = field(default_factory=dict)
    without: Setting | None = None  # the same with everything put right
    each: Mapping[str, Setting] = field(default_factory=dict)  # two causes: one put right


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A scenario that was run, and what is true of it."""

    run: Run
    truth: Truth


def play(scenario: Scenario, *, seed: int) -> Case:
    """Run a scenario with and without its causes; savings are differences of run times."""
    done = run(scenario.program, scenario.machine, seed=seed)

    def saved(setting: Setting) -> float:
        return round(done.runtime - run(*setting, seed=seed).runtime, 3)

    truth: Truth = {
        "causes": list(scenario.causes),
        "culprit": dict(scenario.culprit),
        "runtime": round(done.runtime, 3),
        "saving": saved(scenario.without) if scenario.without else 0.0,
        "in_io": round(done.in_io, 3),
        "ranks": scenario.program.ranks,
        "calls": done.calls,
    }
    if scenario.each:
        truth["savings"] = {code: saved(setting) for code, setting in scenario.each.items()}
    return Case(done, truth)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Random numbers and sizes that a scenario is made from."""

    rng: np.random.Generator
    machine: Machine
    ranks: int
    steps: int
    compute: float

    @property
    def system(self) -> FileSystem:
        """The file system for the job's data."""
        return self.machine.file_systems[0]

    @property
    def targets(self) -> int:
        """How many targets the job's data may lie on."""
        return self.system.targets

    @property
    def hosts(self) -> int:
        """How many nodes the job runs on."""
        return self.machine.host_of(self.ranks - 1) + 1

    def choose(self, *options: T) -> T:
        """Take one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """A whole number, the ends included."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low: float, high: float) -> float:
        """A number whose logarithm is evenly spread."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def pauses(self) -> Floats:
        """Computing time of each rank: equal but for a little."""
        return self.compute * (1 + 0.004 * self.rng.random(self.ranks))


def draw(seed: int, kind: str) -> Draw:
    """Draw a machine and the size of a job."""
    rng = np.random.default_rng([seed, *kind.encode()])
    pick = lambda *options: options[int(rng.integers(len(options)))]  # noqa: E731 - options differ
    real = lambda low, high: float(np.exp(rng.uniform(np.log(low), np.log(high))))  # noqa: E731
    per_host, hosts = pick(4, 6, 8), pick(2, 3, 4, 6)
    ranks = per_host * hosts
    kinds: tuple[NoiseKind, ...] = ("lognormal", "gamma", "uniform", "spikes")
    disciplines: tuple[Discipline, ...] = ("fifo", "fifo", "sharing")
    rate = real(150, 1500) * MiB
    system = FileSystem(
        mount=pick("/scratch", "/lustre/work", "/p/fast"),
        targets=pick(*[n for n in (4, 6, 8, 12, 16, 24) if ranks % n == 0]),
        rate=rate,
        read_rate=rate * float(rng.uniform(0.8, 1.5)),
        request_cost=real(8e-5, 6e-4),
        seek_cost=real(1.5e-3, 8e-3),
        lock_cost=real(1e-3, 5e-3),
        sync_cost=real(2e-3, 1e-2),
        metadata_cost=real(1e-4, 6e-4),
        stat_cost=real(5e-5, 3e-4),
        metadata_servers=pick(1, 1, 1, 2, 4),
        discipline=pick(*disciplines),
        noise=Noise(pick(*kinds), real(0.03, 0.2)),
        unsteady=pick(0.0, 0.03, 0.06),
    )
    home = FileSystem("/home", "nfs", 1, rate=200 * MiB, metadata_servers=1)
    machine = Machine(
        ranks_per_host=per_host, link_rate=real(1500, 8000) * MiB, file_systems=(system, home)
    )
    return Draw(rng, machine, ranks, int(rng.integers(3, 8)), real(0.6, 4.0))
