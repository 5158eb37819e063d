"""What a file system's servers moved while a job ran, and who can say so."""

from __future__ import annotations

from dataclasses import dataclass
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
