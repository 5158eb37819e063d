"""What runs on a machine whose I/O is to be scheduled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobClass:
    """Some jobs alike: how often they write, and how much of their time."""

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
