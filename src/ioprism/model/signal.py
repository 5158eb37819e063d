"""A quantity over time: bandwidth, mostly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """Evenly sampled values; sample ``i`` is the mean over ``start + i * interval`` onwards."""

    start: float  # seconds since the job started
    interval: float  # seconds between samples
    values: FloatArray  # bytes per second, or the unit of the metric

    @property
    def frequency(self) -> float:
        """Samples per second, in Hz."""
        return 1.0 / self.interval

    @property
    def end(self) -> float:
        """Where the last sample's interval ends, in seconds."""
        return self.start + self.interval * len(self.values)

    @property
    def times(self) -> FloatArray:
        """The left edge of every sample, in seconds."""
        return self.start + self.interval * np.arange(len(self.values), dtype=np.float64)
