"""The I/O phases of a job, and whether its ranks wait for each other between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioprism.diagnosis.rows import Floats, Ints
from ioprism.model.arrays import unite
from ioprism.phase_detection.segmentation import phase_borders
from ioprism.settings import PhaseSettings

MAX_PHASES = 2_000  # phases times ranks are held in memory


@dataclass(frozen=True, slots=True, eq=False)
class IoPhases:
    """Disjoint intervals of time, in order."""

    start: Floats  # seconds
    end: Floats

    def __len__(self) -> int:
        return len(self.start)

    def find(self, moments: Floats) -> Ints:
        """Return the phase of each moment, or the one before it."""
        return np.maximum(0, np.searchsorted(self.start, moments, side="right") - 1)

    def merge(self) -> IoPhases:
        """Return one phase from the first call to the last."""
        return IoPhases(self.start[:1], self.end[-1:])


def io_phases(start: Floats, end: Floats) -> IoPhases:
    """Join calls to phases, as all commands do."""
    begins, finishes = unite(start, end)
    if not len(begins):
        return IoPhases(begins, finishes)
    _, (first, last) = phase_borders(begins, finishes, PhaseSettings())
    phases = IoPhases(first, last)
    return phases if len(phases) <= MAX_PHASES else phases.merge()
