"""Draw machines and the sizes of jobs at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from benchmarks.simulated_storage.hardware import FileSystem, Machine, MiB, Noise

T = TypeVar("T")
TARGETS = (4, 6, 8, 12, 16, 24)


@dataclass(frozen=True, slots=True, eq=False)
class Dice:
    """Random choices."""

    rng: np.random.Generator

    def choose(self, *options: T) -> T:
        """Take one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """A whole number, the ends included."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low: float, high: float) -> float:
        """A number whose logarithm is evenly spread."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))


@dataclass(frozen=True, slots=True, eq=False)
class Draw(Dice):
    """A machine and the size of a job, and the dice for everything else."""

    machine: Machine
    ranks: int
    steps: int
    compute: float  # seconds between steps

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

    def pauses(self) -> list[float]:
        """Computing time of each rank: equal but for a little."""
        return [self.compute * (1 + 0.004 * more) for more in self.rng.random(self.ranks)]


def draw(seed: int, kind: str) -> Draw:
    """Draw a machine and a job; the same seed and kind give the same."""
    dice = Dice(np.random.default_rng([seed, *kind.encode()]))
    per_host, hosts = dice.choose(4, 6, 8), dice.choose(2, 3, 4, 6)
    ranks = per_host * hosts
    # Files of all ranks lie evenly on the targets, unless a case wants it otherwise.
    system = _file_system(dice, dice.choose(*[n for n in TARGETS if ranks % n == 0]))
    home = FileSystem("/home", "nfs", 1, rate=200 * MiB, metadata_servers=1)
    machine = Machine(
        ranks_per_host=per_host,
        link_rate=dice.real(1500, 8000) * MiB,
        file_systems=(system, home),
    )
    return Draw(dice.rng, machine, ranks, dice.whole(3, 7), dice.real(0.6, 4.0))


def _file_system(dice: Dice, targets: int) -> FileSystem:
    rate = dice.real(150, 1500) * MiB
    return FileSystem(
        mount=dice.choose("/scratch", "/lustre/work", "/p/fast"),
        targets=targets,
        rate=rate,
        read_rate=rate * float(dice.rng.uniform(0.8, 1.5)),
        request_cost=dice.real(8e-5, 6e-4),
        seek_cost=dice.real(1.5e-3, 8e-3),
        lock_cost=dice.real(1e-3, 5e-3),
        sync_cost=dice.real(2e-3, 1e-2),
        metadata_cost=dice.real(1e-4, 6e-4),
        stat_cost=dice.real(5e-5, 3e-4),
        metadata_servers=dice.choose(1, 1, 1, 2, 4),
        discipline=dice.choose("fifo", "fifo", "sharing"),
        noise=Noise(dice.choose("lognormal", "gamma", "uniform", "spikes"), dice.real(0.03, 0.2)),
        unsteady=dice.choose(0.0, 0.03, 0.06),
    )
