"""How an application fares beside another, and whether chance alone may explain it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.servers.series import Floats

FEWEST = 4  # observations in each state
LEVEL = 0.05
SLOWER = 1.05


@dataclass(frozen=True, slots=True)
class Application:
    """One user's jobs of one name."""

    user: str | None
    name: str | None
    jobs: int
    hours: float  # run time


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How an application fares beside another, against its own quiet times."""

    application: Application
    neighbour: Application
    measure: str  # bandwidth or run_time
    slowdown: float  # 2: half as fast
    beside: int  # observations with the neighbour
    quiet: int  # and without
    hours: float  # of the application beside the neighbour
    probability: float  # that chance alone makes it seem so slow
    adjusted: float  # the same, for all pairs looked at

    @property
    def certain(self) -> bool:
        """Whether it is slower by more than chance would make it."""
        return self.adjusted < LEVEL and self.slowdown > SLOWER


def corrected(pairs: Sequence[Disturbance]) -> list[Disturbance]:
    """Correct by Holm: the smallest counts for all pairs, the next for all but one, and so on."""
    corrected, highest = [], 0.0
    for rank, pair in enumerate(sorted(pairs, key=lambda pair: pair.probability)):
        highest = max(highest, min(1.0, (len(pairs) - rank) * pair.probability))
        corrected.append(replace(pair, adjusted=highest))
    return corrected


def rank_sum(quiet: Floats, beside: Floats) -> float:
    """Return how often chance alone makes the second sample so much smaller than the first."""
    both = np.concatenate([beside, quiet])
    values, place, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    m, n = len(beside), len(quiet)
    total = m + n
    ties = float((counts**3 - counts).sum()) / (total * (total - 1)) if len(values) else 0.0
    spread = math.sqrt(m * n / 12 * (total + 1 - ties))
    if spread == 0:
        return 1.0
    above = float(ranks[:m].sum()) - m * (total + 1) / 2 + 0.5
    return 0.5 * math.erfc(-above / spread / math.sqrt(2))
