"""What a machine is made of: nodes, links, file systems, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Discipline = Literal["fifo", "sharing"]
NoiseKind = Literal["lognormal", "gamma", "uniform", "spikes"]

MiB = 1 << 20
SPIKE_SHARE, SPIKE_LENGTH = 0.004, 8.0  # few requests wait for something else, for long


@dataclass(frozen=True, slots=True)
class Noise:
    """How service times vary; the mean factor is 1."""

    kind: NoiseKind = "lognormal"
    spread: float = 0.1  # standard deviation over mean, about

    def factors(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw factors for as many service times."""
        if self.spread <= 0:
            return np.ones(count)
        if self.kind == "gamma":
            shape = 1 / self.spread**2
            return rng.gamma(shape, 1 / shape, count)
        if self.kind == "uniform":
            width = min(0.95, self.spread * 3**0.5)
            return rng.uniform(1 - width, 1 + width, count)
        drawn = rng.lognormal(-(self.spread**2) / 2, self.spread, count)
        if self.kind == "spikes":
            drawn[rng.random(count) < SPIKE_SHARE] *= SPIKE_LENGTH
        return drawn


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time in which others keep a file system's targets busy."""

    start: float  # seconds since the job started
    end: float
    factor: float  # service times are so many times longer


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Storage targets behind queues, and metadata servers."""

    mount: str = "/scratch"
    kind: str = "lustre"
    targets: int = 8
    rate: float = 800.0 * MiB  # bytes per second of one target
    read_rate: float | None = None  # where it differs
    request_cost: float = 2e-4  # seconds of a target for any request
    seek_cost: float = 3e-3  # seconds more where a read does not continue the last one
    lock_cost: float = 2e-3  # seconds more to take a lock block from another process
    sync_cost: float = 4e-3  # seconds of a target to make what it has durable
    metadata_cost: float = 3e-4  # seconds of a metadata server for an open
    stat_cost: float = 1.5e-4
    metadata_servers: int = 1
    discipline: Discipline = "fifo"
    noise: Noise = field(default_factory=Noise)
    slow: Mapping[int, float] = field(default_factory=dict)  # target -> factor on its times
    windows: tuple[Window, ...] = ()
    unsteady: float = 0.0  # spread of the slow drift that other users cause on each target

    @property
    def has_layout(self) -> bool:
        """Whether a log says which target holds a file."""
        return self.kind == "lustre"


@dataclass(frozen=True, slots=True)
class Machine:
    """Compute nodes and the file systems they mount."""

    ranks_per_host: int = 8
    link_rate: float = 3000.0 * MiB  # bytes per second of a node
    latency: float = 5e-5  # seconds on the way to a server and back
    copy_rate: float = 6000.0 * MiB  # bytes per second a process moves in memory
    call_cost: float = 1e-5  # seconds of the processor for any call
    slow_hosts: Mapping[int, float] = field(default_factory=dict)  # factor on link times
    slow_ranks: Mapping[int, float] = field(default_factory=dict)  # factor on own time in calls
    file_systems: tuple[FileSystem, ...] = (FileSystem(),)

    def host_of(self, rank: int) -> int:
        """The node a rank runs on, from 0."""
        return rank // self.ranks_per_host

    def file_system_of(self, path: str) -> int:
        """The file system with the longest mount point above a path."""
        above = [
            (len(system.mount), number)
            for number, system in enumerate(self.file_systems)
            if path.startswith(system.mount.rstrip("/") + "/")
        ]
        return max(above)[1]
