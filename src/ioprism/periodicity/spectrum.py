"""Which frequencies is a signal made of, and when does each hold?"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import TINY, FloatArray, Signal, quantile
from ioprism.periodicity.limits import MAX_CLEAR_LOG_CHANCE, MIN_SURE_REPETITIONS, TYPICAL_QUANTILE

OVERSAMPLING = 8  # bins of the padded spectrum per bin of the plain one
ROUNDING = 1e-20  # of a power, relative to the largest one
BLOCK = 24  # plain bins to take a median of: wide for lines, narrow for the shape of a burst
FREEDOM = 0.5 * BLOCK  # the median is half as efficient as the mean


@dataclass(frozen=True, slots=True, eq=False)
class Periodogram:
    """Power between the bins too, and how far it stands out of the noise around it."""

    step: float  # Hz between two entries
    oversampling: int  # entries per independent bin
    power: FloatArray
    evidence: FloatArray  # negative log of the chance that noise has this power

    def share(self, frequency: float, *, harmonics: int) -> float:
        """Share of the variance at a frequency (Hz) and its multiples."""
        half, total = self.oversampling // 2, float(self.power[1:].sum())
        bins = [round(frequency * h / self.step) for h in range(1, harmonics + 1)]
        power = sum(float(self.power[max(1, b - half) : b + half + 1].sum()) for b in bins)
        return min(1.0, power / total) if total > 0.0 else 0.0

    def evidence_at(self, frequency: float) -> float:
        """The evidence for a line at a frequency (Hz), within half a bin."""
        half, bin_ = self.oversampling // 2, round(frequency / self.step)
        return float(self.evidence[max(1, bin_ - half) : bin_ + half + 1].max(initial=0.0))

    def line_width(self, frequency: float) -> float:
        """Half the width, in Hz, at half the height of the peak at a frequency."""
        bin_ = min(round(frequency / self.step), len(self.power) - 1)
        low = high = bin_
        half = self.power[bin_] / 2
        while low > 1 and self.power[low] > half:
            low -= 1
        while high < len(self.power) - 1 and self.power[high] > half:
            high += 1
        return self.step * (high - low) / 2


def cosine_at(signal: Signal, frequency: float) -> tuple[float, float]:
    """Amplitude and phase (radians, at time zero) of the cosine of this frequency (Hz)."""
    values = signal.values - float(signal.values.mean())
    angles = 2 * math.pi * frequency * signal.interval * np.arange(len(values))
    total = complex(values @ np.cos(angles), -(values @ np.sin(angles)))
    # Half an interval later: a sample is the mean over its interval.
    first = signal.start + signal.interval / 2
    total *= 2.0 / len(values) * cmath.exp(-2j * math.pi * frequency * first)
    return abs(total), math.atan2(total.imag, total.real)


def refine(transform: npt.NDArray[np.complex128], bin_: int) -> float:
    """Where between the bins a line is, from its three strongest bins (Jacobsen's formula).

    The transform is not windowed; the answer is at most half a bin away.
    """
    if not 0 < bin_ < len(transform) - 1:
        return float(bin_)
    before, here, after = (complex(x) for x in transform[bin_ - 1 : bin_ + 2])
    curvature = 2 * here - before - after
    shift = ((before - after) / curvature).real if curvature != 0 else 0.0
    return bin_ + min(0.5, max(-0.5, shift))


def power_spectrum(signal: Signal) -> tuple[FloatArray, FloatArray]:
    """Split a signal's variance over frequencies.

    Returns:
        Frequencies in Hz from the first bin to Nyquist, and the share of variance at
        each. Shares sum to 1, or are all zero for a constant signal.
    """
    samples = len(signal.values)
    mean = float(signal.values.mean())
    frequencies = np.arange(1, samples // 2 + 1) / (samples * signal.interval)
    power: FloatArray = np.abs(np.fft.rfft(signal.values - mean)[1:]) ** 2
    if samples % 2 == 0:
        power[-1] /= 2.0  # the Nyquist bin has no mirror image
    total = float(power.sum())
    if total <= ROUNDING * samples**2 * max(mean**2, TINY):
        return frequencies, np.zeros_like(frequencies)
    return frequencies, power / total


def periodogram(signal: Signal) -> Periodogram | None:
    """The spectrum of a signal without its trend, against the noise; None if there is none."""
    values = _without_trend(signal.values)
    scale = float(np.abs(signal.values).max())
    if float(np.abs(values).max()) <= 1e-9 * scale or not float(np.dot(values, values)) > 0.0:
        return None
    samples = len(values)
    padded = OVERSAMPLING * 2 ** math.ceil(math.log2(samples))
    power = np.abs(np.fft.rfft(values, padded)) ** 2
    step = 1.0 / (padded * signal.interval)
    per_bin = padded / samples
    white = power / _red_noise(values, step * signal.interval * np.arange(len(power)))
    # A ratio of exponential variables, the lower one averaged over `FREEDOM` of them.
    evidence = FREEDOM * np.log1p(white / _background(white, per_bin) / FREEDOM)
    return Periodogram(step, round(per_bin), power, evidence)


def _without_trend(values: FloatArray) -> FloatArray:
    ramp = np.linspace(-1.0, 1.0, len(values))
    centred = values - values.mean()
    slope = float(np.dot(centred, ramp)) / float(np.dot(ramp, ramp))
    level: FloatArray = centred - slope * ramp
    return level


def _red_noise(values: FloatArray, cycles: FloatArray) -> FloatArray:
    """Spectrum, by cycles per sample, of a first-order autoregression with the memory of values."""
    memory = float(np.dot(values[1:], values[:-1])) / float(np.dot(values, values))
    memory = min(max(memory, 0.0), 1.0 - 1.0 / len(values))
    return 1.0 / (1.0 + memory**2 - 2.0 * memory * np.cos(2 * math.pi * cycles))


def _background(power: FloatArray, per_bin: float) -> FloatArray:
    """Level of the noise at each entry: the median of the block around it."""
    width = round(BLOCK * per_bin)
    blocks = max(1, len(power) // width)
    rows = power[: blocks * width].reshape(blocks, -1)
    middle = rows.shape[1] // 2
    medians = np.partition(rows, middle, axis=1)[:, middle]
    levels = np.maximum(medians / math.log(2), 1e-12 * float(power.max()))
    centres = width * (np.arange(blocks) + 0.5)
    return np.exp(np.interp(np.arange(len(power)), centres, np.log(levels)))


def has_line(signal: Signal) -> bool:
    """Whether some frequency holds more of the variance than white noise would give it.

    Fisher's g-test (1929), the first term of his series. Noise that is not white often passes,
    too; the methods that are asked next know better.
    """
    _, shares = power_spectrum(signal)
    inner = shares[MIN_SURE_REPETITIONS - 1 :]
    total = float(inner.sum())
    if len(inner) < 2 or total <= 0.0:
        return False
    largest = float(np.max(inner)) / total
    count = len(inner)
    return (
        math.log(count) + (count - 1) * math.log1p(-min(largest, 1 - 1e-12)) <= MAX_CLEAR_LOG_CHANCE
    )


Ranges = tuple[tuple[float, float], ...]


def valid_ranges(signal: Signal, *, frequency: float, phase: float) -> Ranges:
    """Where the cosine of this frequency (Hz) and phase goes along with the signal.

    A window of one period slides over the signal. Where signal and cosine correlate, the
    period holds; stretches shorter than a period are dropped, and those less than a period
    apart are joined. A window half of which is in a periodic stretch correlates half as
    much as one within it, so the stretch begins and ends at the centre of such a window.
    """
    window = _window(signal, frequency)
    if window < 2 or window >= len(signal.values):
        return ()
    correlation = sliding_correlation(signal, frequency=frequency, phase=phase)
    positive = correlation[correlation > 0.0]
    if len(positive) == 0:
        return ()
    least = quantile(positive, TYPICAL_QUANTILE) / 2
    return _join_ranges(signal, correlation > least, window)


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
    np.divide(covariance, np.sqrt(product), out=correlation, where=product > ROUNDING)
    return correlation


def _window(signal: Signal, frequency: float) -> int:
    return round(1.0 / (frequency * signal.interval))


def _join_ranges(signal: Signal, holds: npt.NDArray[np.bool_], window: int) -> Ranges:
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
