"""Are these samples of a metric, one after the other, and how long is each?

Requests begin at any time, samples of a metric only at multiples of their length. Finer bins
than that would make chance look regular.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray

LOOKED_AT = 64  # pieces of a batch; enough to tell and cheap enough for every batch
TILED = 0.5  # share of pieces that begin exactly where the one before ends
SAME = 1e-3  # relative difference of lengths that are equal
REMEMBERED = 4096  # pieces, after which old ones count half


class Grain:
    """Watches how pieces follow each other."""

    def __init__(self) -> None:
        self._pieces = 0
        self._tiled = 0
        self._length = 0.0
        self._last_end = np.nan

    @property
    def seconds(self) -> float:
        """The length of a sample, or 0 for requests."""
        return self._length if self._tiled > TILED * self._pieces else 0.0

    @property
    def edge(self) -> float:
        """Where the latest sample ends, in seconds."""
        return self._last_end

    def observe(self, start: FloatArray, end: FloatArray) -> None:
        """Look at the first pieces of a batch."""
        start, end = start[:LOOKED_AT], end[:LOOKED_AT]
        before = np.concatenate(([self._last_end], end[:-1]))
        lengths = end - start
        length = median(lengths)
        follows = (np.abs(start - before) <= SAME * length) & (
            np.abs(lengths - length) <= SAME * length
        )
        if self._pieces > REMEMBERED:
            self._pieces, self._tiled = self._pieces // 2, self._tiled // 2
        self._pieces += len(start)
        self._tiled += int(follows.sum())
        self._length = length
        self._last_end = float(end[-1])

    def state(self) -> Sequence[float]:
        """Return everything as plain values."""
        return (self._pieces, self._tiled, self._length, self._last_end)

    @classmethod
    def restored(cls, state: Sequence[float]) -> Grain:
        """Return what `state` described."""
        grain = cls()
        pieces, tiled, grain._length, grain._last_end = state
        grain._pieces, grain._tiled = int(pieces), int(tiled)
        return grain
