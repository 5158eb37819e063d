"""A quantity over time: bandwidth, mostly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """``values[i]`` holds from ``edges[i]`` to ``edges[i + 1]``, in seconds."""

    edges: FloatArray
    values: FloatArray

    @property
    def span(self) -> float:
        """From the first to the last edge, in seconds."""
        return float(self.edges[-1] - self.edges[0])


@dataclass(frozen=True, slots=True, eq=False)
class TimeSeries:
    """A quantity over time that a trace records itself, without calls."""

    name: str
    steps: StepFunction  # bytes per second, or the unit of the metric per second
    direction: str | None = None  # read, write, or None where the trace does not say


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
