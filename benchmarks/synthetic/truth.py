"""What a synthetic trace is known to hold, so that an analysis can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from benchmarks.synthetic.workload import Burst

Integers = npt.NDArray[np.int64]
METADATA = ("open", "close", "seek", "stat", "sync")


@dataclass(frozen=True, slots=True)
class Access:
    """The requests of one layer and direction, counted.

    A request follows the rank's previous one in the same burst and file: `consecutive` ones
    start where that ended, `backward` ones before it.
    """

    requests: int = 0
    bytes: int = 0
    small: int = 0  # shorter than the workload's `small_below`
    random: int = 0  # placed by chance
    misaligned: int = 0  # the offset is no multiple of the workload's `alignment`
    consecutive: int = 0
    backward: int = 0

    def __add__(self, other: Access) -> Access:
        names = (f.name for f in fields(self))
        return Access(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def small_share(self) -> float:
        """From 0 to 1."""
        return self.small / max(1, self.requests)

    @property
    def random_share(self) -> float:
        """From 0 to 1."""
        return self.random / max(1, self.requests)

    @property
    def misaligned_share(self) -> float:
        """From 0 to 1."""
        return self.misaligned / max(1, self.requests)

    @property
    def consecutive_share(self) -> float:
        """From 0 to 1; the first request of a rank in a file cannot be consecutive."""
        return self.consecutive / max(1, self.requests)


@dataclass(frozen=True, slots=True)
class Repetition:
    """When the phases of a burst really were, in seconds; jitter and stragglers included."""

    burst: Burst
    starts: tuple[float, ...]  # the first read or write of each phase begins
    ends: tuple[float, ...]  # the last one returns
    bytes: int  # moved by the application over all phases

    @property
    def period(self) -> float | None:
        """The mean time from one phase's start to the next, or None for a single phase."""
        if len(self.starts) < 2:
            return None
        return (self.starts[-1] - self.starts[0]) / (len(self.starts) - 1)


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything known of a synthetic trace."""

    repetitions: tuple[Repetition, ...]  # one per burst, in the order of the workload
    access: Mapping[tuple[str, str], Access]  # by layer and direction
    operations: Mapping[tuple[str, str], int]  # by layer and operation
    stragglers: tuple[int, ...]  # ranks
    events: int

    @property
    def period(self) -> float | None:
        """The period of the burst that moves most among those that repeat."""
        repeated = [one for one in self.repetitions if one.period is not None]
        return max(repeated, key=lambda one: one.bytes).period if repeated else None

    @property
    def metadata_calls(self) -> int:
        """Opens, closes, seeks, stats and syncs of all layers."""
        return sum(n for (_, operation), n in self.operations.items() if operation in METADATA)


def counted(
    offsets: Integers, sizes: Integers, *, random: int, alignment: int, small_below: int
) -> Access:
    """Count requests; the last axis runs along the requests of one rank in one file."""
    sizes = np.broadcast_to(sizes, offsets.shape)
    reached = (offsets + sizes)[..., :-1]
    following = offsets[..., 1:]
    return Access(
        requests=offsets.size,
        bytes=int(sizes.sum()),
        small=int((sizes < small_below).sum()),
        random=random,
        misaligned=int((offsets % alignment != 0).sum()),
        consecutive=int((following == reached).sum()),
        backward=int((following < reached).sum()),
    )
