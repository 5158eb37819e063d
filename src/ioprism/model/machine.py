"""A machine: what it can reach, what its servers moved, and what runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BackgroundLoad:
    """What all servers together moved, for any job."""

    servers: int
    bytes: float  # during the job, read and written
    seconds: float  # length of that time
    most_bytes: float  # in the busiest of the equally long times in the days around it
    coverage: float  # share of the time and the servers for which counters are known


class ServerLoads(Protocol):
    """Counters of a file system's servers, as a diagnosis and a site need them."""

    def during(self, start: float, end: float) -> BackgroundLoad:
        """Return the load of all servers between two moments, in seconds since 1970."""

    def between(self, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the bytes that all servers moved in each time, and the share that is known."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best rates of one benchmark run, of all its processes together."""

    tool: str  # IOR, mdtest, fio
    path: Path
    processes: int | None = None
    bandwidth: Mapping[str, float] = field(default_factory=dict)  # read, write: bytes a second
    operations: Mapping[str, float] = field(default_factory=dict)  # read, write, metadata: a second
    request_size: int | None = None  # bytes


@dataclass(frozen=True, slots=True)
class JobClass:
    """Jobs of one kind: how often they write, and for how much of their time."""

    name: str
    count: int
    period: float  # seconds, the mean without other jobs
    io_share: float  # of the period spent writing without other jobs, 0 to 1
    variation: float = 0.05  # of the computing time from step to step, relative
    spread: float = 0.2  # of the mean period from job to job, relative
    nodes: int = 1
    bandwidth: float | None = None  # bytes per second that one job can use; None: all


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs on a machine."""

    classes: tuple[JobClass, ...]
    bandwidth: float = 1e10  # bytes per second of the file system
    horizon: float = 8000.0  # seconds
