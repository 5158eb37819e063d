"""Where in time does the dominant frequency of the smoothed signal hold?

The paper's hybrid of wavelet and Fourier analysis: smooth the signal by a wavelet, find the
dominant frequency of the approximation, and slide a window of one period along both. The
confidence is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.results import Period
from ioprism.periodicity.spectral import dft, harmonic
from ioprism.periodicity.spectral.ranges import Ranges, sliding_correlation, valid_ranges
from ioprism.periodicity.spectral.spectrum import (
    cosine_at,
    periodogram,
    power_spectrum,
    refine,
)
from ioprism.periodicity.spectral.wavelet import approximate, choose_level


@dataclass(frozen=True, slots=True, eq=False)
class Hybrid:
    """The dominant frequency of an approximation, and where it holds."""

    level: int
    approximation: Signal
    frequency: float  # Hz
    confidence: float
    amplitude: float
    phase: float  # radians
    valid_ranges: Ranges

    def correlation(self) -> FloatArray:
        """Of cosine and approximation, for each window of one period."""
        return sliding_correlation(self.approximation, frequency=self.frequency, phase=self.phase)


def find_period(
    signal: Signal, *, wavelet: str = "haar", level: int | None = None
) -> Period | None:
    """Return the dominant frequency of the approximation, or None if there is none."""
    found = analyse(signal, wavelet=wavelet, level=level)
    spectrum = periodogram(signal)
    if found is None or spectrum is None:
        return None
    peak = replace(harmonic.at_frequency(spectrum, found.frequency), frequency=found.frequency)
    return harmonic.describe(
        signal,
        spectrum,
        peak,
        method="hybrid",
        confidence=found.confidence,
        ranges=found.valid_ranges,
    )


def analyse(signal: Signal, *, wavelet: str = "haar", level: int | None = None) -> Hybrid | None:
    """Smooth, transform and slide, as in the paper.

    Args:
        signal: the signal.
        wavelet: the mother wavelet.
        level: of the decomposition; None for the smoothest that keeps eight samples per
            period of the strongest frequency.
    """
    if level is None:
        level = _chosen_level(signal)
    smooth = approximate(signal, wavelet=wavelet, level=level)
    chosen = dft.fundamental(smooth, dft.dominant(dft.candidates(smooth)))
    span = signal.end - signal.start
    if chosen is None or round(chosen.frequency * span) < dft.FIRST_REPEATING:
        return None
    transform = np.fft.rfft(smooth.values - float(smooth.values.mean()))
    frequency = refine(transform, round(chosen.frequency * span)) / span
    amplitude, phase = cosine_at(smooth, frequency)
    ranges = valid_ranges(smooth, frequency=frequency, phase=phase)
    return Hybrid(level, smooth, frequency, chosen.confidence, amplitude, phase, ranges)


def _chosen_level(signal: Signal) -> int:
    frequencies, shares = power_spectrum(signal)
    repeating = shares[dft.FIRST_REPEATING - 1 :]
    if not repeating.any():
        return 0
    strongest = float(frequencies[dft.FIRST_REPEATING - 1 + int(np.argmax(repeating))])
    return choose_level(signal, frequency=strongest)
