"""How fast must the file system be so that asynchronous I/O stays hidden behind computation?

TMIO measures for every asynchronous request how long it took, and how long it might have taken:
until the program waited for it. Its bytes over the first are the throughput T, over the second the
bandwidth B that it required. Added up over all ranks at every moment, the highest B is what the
file system must deliver so that no rank waits (Tarraf et al., TMIO).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.model.signal import FloatArray, StepFunction
from ioprism.views.time.bandwidth import steps_of_intervals


@dataclass(frozen=True, slots=True, eq=False)
class RequiredBandwidth:
    """Required and measured bandwidth of asynchronous requests in one direction."""

    direction: str  # read or write
    requests: int
    bytes: float
    required: StepFunction  # B: bytes per second over time
    measured: StepFunction  # T
    waited: float  # seconds that ranks waited for requests, summed over them
    hidden: float  # share of the requests that ended before they were waited for, 0 to 1

    @property
    def required_peak(self) -> float:
        """The lowest bandwidth at which every request stays hidden."""
        return float(self.required.values.max())

    @property
    def measured_peak(self) -> float:
        """The highest bandwidth that was measured."""
        return float(self.measured.values.max())

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the signals."""
        return {
            "direction": self.direction,
            "requests": self.requests,
            "bytes": self.bytes,
            "required": {"peak": self.required_peak, "mean": _mean(self.required)},
            "measured": {"peak": self.measured_peak, "mean": _mean(self.measured)},
            "waited": self.waited,
            "hidden": self.hidden,
        }


def required_bandwidth(
    direction: str, *, start: FloatArray, end: FloatArray, wait: FloatArray, moved: FloatArray
) -> RequiredBandwidth:
    """Compare what asynchronous requests needed with what they got.

    Args:
        direction: read or write.
        start: when each began, in seconds.
        end: when it really ended.
        wait: when the program waited for it.
        moved: its bytes.
    """
    late = np.maximum(end - wait, 0.0)
    return RequiredBandwidth(
        direction=direction,
        requests=len(start),
        bytes=float(moved.sum()),
        required=steps_of_intervals(start, wait, moved),
        measured=steps_of_intervals(start, end, moved),
        waited=float(late.sum()),
        hidden=float(np.mean(late <= 0.0)),
    )


def _mean(steps: StepFunction) -> float:
    """Mean over the time in which anything is moved."""
    lengths = np.diff(steps.edges)
    busy = float(lengths[steps.values > 0.0].sum())
    return float((steps.values * lengths).sum()) / busy if busy > 0.0 else 0.0
