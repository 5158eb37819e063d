"""In which stretches of time does a period hold?"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import quantile
from ioprism.model.signal import FloatArray, Signal

Ranges = tuple[tuple[float, float], ...]
TYPICAL = 0.75  # quantile of the positive correlations
MATCHING = 0.5  # share of the typical correlation in a window half of which is periodic


def valid_ranges(signal: Signal, *, frequency: float, phase: float) -> Ranges:
    """Where the cosine of this frequency (Hz) and phase goes along with the signal.

    A window of one period slides over the signal. Where signal and cosine correlate, the
    period holds; stretches shorter than a period are dropped, and those less than a period
    apart are joined. A window half of which lies in a periodic stretch correlates half as
    much as one within it, so the stretch begins and ends at the centre of such a window.
    """
    window = _window(signal, frequency)
    if window < 2 or window >= len(signal.values):
        return ()
    correlation = sliding_correlation(signal, frequency=frequency, phase=phase)
    positive = correlation[correlation > 0.0]
    if len(positive) == 0:
        return ()
    least = MATCHING * quantile(positive, TYPICAL)
    return _joined(signal, correlation > least, window)


def sliding_correlation(signal: Signal, *, frequency: float, phase: float) -> FloatArray:
    """Pearson correlation of signal and cosine in each window of one period.

    Entry ``i`` belongs to the window that begins with sample ``i``. Cumulative sums make
    it linear in the number of samples.
    """
    window = _window(signal, frequency)
    times = signal.times + signal.interval / 2
    cosine = np.cos(2 * math.pi * frequency * times + phase)
    scale = float(np.abs(signal.values).max()) or 1.0
    values = (signal.values - float(signal.values.mean())) / scale
    mean_value, mean_cosine = _moving_mean(values, window), _moving_mean(cosine, window)
    covariance = _moving_mean(values * cosine, window) - mean_value * mean_cosine
    value_variance = _moving_mean(values**2, window) - mean_value**2
    cosine_variance = _moving_mean(cosine**2, window) - mean_cosine**2
    product = np.maximum(value_variance, 0.0) * np.maximum(cosine_variance, 0.0)
    # Rounding leaves a trace of variance in constant windows: they go along with nothing.
    correlation = np.zeros_like(product)
    np.divide(covariance, np.sqrt(product), out=correlation, where=product > 1e-20)
    return correlation


def _window(signal: Signal, frequency: float) -> int:
    return round(1.0 / (frequency * signal.interval))


def _joined(signal: Signal, holds: npt.NDArray[np.bool_], window: int) -> Ranges:
    change = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    starts, ends = change[0::2], change[1::2]
    first, last = starts == 0, ends == len(holds)
    starts = np.where(first, 0, starts + window // 2)
    ends = np.where(last, len(signal.values), ends + window // 2)
    long_enough = ends - starts >= window
    starts, ends = starts[long_enough], ends[long_enough]
    if len(starts) == 0:
        return ()
    apart = starts[1:] - ends[:-1] > window
    starts, ends = starts[np.append(True, apart)], ends[np.append(apart, True)]
    seconds = signal.start + signal.interval * np.stack((starts, ends), axis=1)
    return tuple((float(start), float(end)) for start, end in seconds)


def _moving_mean(numbers: FloatArray, window: int) -> FloatArray:
    total = np.concatenate(([0.0], np.cumsum(numbers)))
    return (total[window:] - total[:-window]) / window
