"""After how long does a signal resemble itself?

The confidence is the correlation of the signal with itself one period later. The
false-alarm probability is that of the frequency and its multiples in the spectrum, which
holds the same information.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.results import Period
from ioprism.periodicity.spectral import harmonic
from ioprism.periodicity.spectral.spectrum import periodogram

MIN_REPETITIONS = 2
MIN_HEIGHT_RATIO = 0.8  # a peak at a fraction of the lag that is as high shows the real period
PEAK_RANGE = 0.1  # of the lag


def find_period(signal: Signal) -> Period | None:
    """Return the lag at which the signal resembles itself most, or None if it never does."""
    spectrum = periodogram(signal)
    if spectrum is None:
        return None
    correlation = autocorrelation(signal)
    lag = _fundamental(correlation, _highest(correlation))
    if lag == 0:
        return None
    peaks = _multiples(correlation, lag)
    seconds = signal.interval * float(np.mean(peaks / np.arange(1, len(peaks) + 1)))
    peak = replace(harmonic.at_frequency(spectrum, 1.0 / seconds), frequency=1.0 / seconds)
    confidence = float(np.clip(correlation[lag], 0.0, 1.0))
    period = harmonic.describe(
        signal, spectrum, peak, method="autocorrelation", confidence=confidence
    )
    distances = np.diff(peaks, prepend=0.0) * signal.interval
    return replace(period, spread=float(distances.std())) if len(peaks) > 1 else period


def autocorrelation(signal: Signal) -> FloatArray:
    """Correlation of a signal with itself, by lag in samples, up to half its length."""
    values = signal.values - float(signal.values.mean())
    samples = len(values)
    power = np.abs(np.fft.rfft(values, 2 ** (2 * samples - 1).bit_length())) ** 2
    lags = samples // MIN_REPETITIONS + 1
    products = np.fft.irfft(power)[:lags] / np.arange(samples, samples - lags, -1)
    scaled: FloatArray = products / products[0]
    return scaled


def _highest(correlation: FloatArray) -> int:
    """The lag of the highest correlation after it first vanished, or 0."""
    vanished = np.flatnonzero(correlation <= 0.0)
    if len(vanished) == 0:
        return 0
    lag = int(vanished[0]) + int(np.argmax(correlation[vanished[0] :]))
    at_the_end = lag == len(correlation) - 1
    return 0 if at_the_end or correlation[lag] <= 0.0 else lag


def _fundamental(correlation: FloatArray, lag: int) -> int:
    best = lag
    for divisor in range(2, max(2, lag // 4)):
        near = _peak_near(correlation, lag / divisor, reach=PEAK_RANGE * lag / divisor)
        if near is not None and correlation[near] >= MIN_HEIGHT_RATIO * correlation[lag]:
            best = near
    return best


def _multiples(correlation: FloatArray, lag: int) -> FloatArray:
    """Where the correlation peaks at the lag and its multiples, as fractions of a sample."""
    peaks = [_between_samples(correlation, lag)]
    for multiple in range(2, len(correlation) // lag + 1):
        expected = peaks[-1] * multiple / (multiple - 1)
        near = _peak_near(correlation, expected, reach=PEAK_RANGE * lag)
        if near is None or correlation[near] < correlation[lag] / 2:
            break
        peaks.append(_between_samples(correlation, near))
    return np.array(peaks)


def _peak_near(correlation: FloatArray, lag: float, *, reach: float) -> int | None:
    around = max(1, round(reach))
    low, high = max(1, round(lag) - around), round(lag) + around + 1
    if high >= len(correlation) or low >= high:
        return None
    peak = low + int(np.argmax(correlation[low:high]))
    return peak if low < peak < high - 1 else None


def _between_samples(correlation: FloatArray, lag: int) -> float:
    if not 0 < lag < len(correlation) - 1:
        return float(lag)
    before, here, after = (float(x) for x in correlation[lag - 1 : lag + 2])
    curvature = before - 2 * here + after
    return lag + 0.5 * (before - after) / curvature if curvature < 0.0 else float(lag)
