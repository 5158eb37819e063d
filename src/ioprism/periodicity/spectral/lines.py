"""Is it worth asking the spectrum? A cheap look before a costly one."""

from __future__ import annotations

import math

import numpy as np

from ioprism.model.signal import Signal
from ioprism.periodicity.spectral.spectrum import power_spectrum

MIN_REPETITIONS = 3  # periods in the signal
SUGGESTIVE = math.log(1e-3)


def has_line(signal: Signal) -> bool:
    """Whether some frequency holds more of the variance than white noise would give it.

    Fisher's g-test (1929), the first term of his series. Noise that is not white often passes,
    too; the methods that are asked next know better.
    """
    _, shares = power_spectrum(signal)
    inner = shares[MIN_REPETITIONS - 1 :]
    total = float(inner.sum())
    if len(inner) < 2 or total <= 0.0:
        return False
    largest = float(np.max(inner)) / total
    count = len(inner)
    return math.log(count) + (count - 1) * math.log1p(-min(largest, 1 - 1e-12)) <= SUGGESTIVE
