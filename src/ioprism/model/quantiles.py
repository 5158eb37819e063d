"""The middle of many numbers, and other quantiles.

Those of numpy import masked arrays, which takes 25 ms: as much as finding a period.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def median(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> float:
    """The middle one, or the mean of both in the middle."""
    return quantile(numbers, 0.5)


def quantile(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64], share: float) -> float:
    """The number that this share of all lies below, between two where it falls between them."""
    place = share * (len(numbers) - 1)
    low, high = math.floor(place), math.ceil(place)
    ordered = np.partition(numbers, [low, high] if high > low else low)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
