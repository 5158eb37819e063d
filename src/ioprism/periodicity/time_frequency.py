"""Which periods does a signal contain, and when? Wavelets and windows of equal length.

The confidence is the share of the scalogram's power within a sixth of an octave, or the share of
windows that show the period of the whole signal.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import MissingPackageError, UsageError
from ioprism.model.arrays import FloatArray, Signal, unite
from ioprism.periodicity import dft, harmonic, limits
from ioprism.periodicity.results import Period
from ioprism.periodicity.sampling import MIN_SAMPLES
from ioprism.periodicity.segments import average_blocks
from ioprism.periodicity.spectrum import (
    Ranges,
    cosine_at,
    periodogram,
    power_spectrum,
    refine,
    sliding_correlation,
    valid_ranges,
)

HAAR = ("haar", "db1")
MORLET = 6.0  # radians per scale (Torrence and Compo, 1998)
SCALES_PER_OCTAVE = 6
COLUMNS = 1024  # instants of a scalogram, enough for any screen


@dataclass(frozen=True, slots=True, eq=False)
class Scalogram:
    """Power over time and period."""

    times: FloatArray  # seconds
    periods: FloatArray  # seconds, ascending
    power: FloatArray  # one row a period


def find_by_wavelet(signal: Signal) -> Period | None:
    """Return the period with the most power over all times."""
    spectrum = periodogram(signal)
    if spectrum is None:
        return None
    picture = scalogram(signal)
    if len(picture.periods) == 0:
        return None
    mean = picture.power.mean(axis=1)
    strongest = int(np.argmax(mean))
    frequency = 1.0 / float(picture.periods[strongest])
    low, high = (
        round(frequency * f / spectrum.step)
        for f in (1.0 - limits.SAME_PERIOD, 1.0 + limits.SAME_PERIOD)
    )
    bin_ = low + int(np.argmax(spectrum.power[low : high + 1]))
    frequency = harmonic.at_frequency(spectrum, bin_ * spectrum.step).frequency
    confidence = float(mean[strongest] / mean.sum())
    return harmonic.describe(signal, spectrum, frequency, method="wavelet", confidence=confidence)


def approximate(signal: Signal, *, wavelet: str = "haar", level: int) -> Signal:
    """The approximation of a level alone, upsampled to the length of the signal.

    Raises:
        UsageError: the wavelet is unknown, or the level is too high for the signal.
        MissingPackageError: a wavelet other than Haar needs PyWavelets.
    """
    most = highest_level(len(signal.values))
    if not 0 <= level <= most:
        raise UsageError(
            f"level {level} makes no sense for {len(signal.values)} samples: "
            f"it must be between 0 and {most}.\nHint: leave --level out to have it chosen."
        )
    smoother = _haar if wavelet in HAAR else _other(wavelet)
    return Signal(signal.start, signal.interval, smoother(signal.values, level))


def highest_level(samples: int) -> int:
    """The level that leaves as many samples as a period needs."""
    return max(0, int(math.log2(max(samples, 1) / MIN_SAMPLES)))


def choose_level(signal: Signal, *, frequency: float) -> int:
    """The smoothest level that keeps eight samples per period of a frequency (Hz)."""
    kept = 1.0 / (frequency * signal.interval * MIN_SAMPLES)
    wanted = int(math.log2(kept)) if kept >= 1.0 else 0
    return min(wanted, highest_level(len(signal.values)))


def scalogram(signal: Signal) -> Scalogram:
    """Continuous wavelet transform with Morlet's wavelet, by fast Fourier transform."""
    samples = len(signal.values)
    span = samples * signal.interval
    shortest = limits.MIN_SAMPLES_PER_PERIOD * signal.interval
    octaves = max(0.0, math.log2(span / limits.MIN_SPECTRUM_REPETITIONS / shortest))
    periods = shortest * 2 ** (np.arange(int(octaves * SCALES_PER_OCTAVE) + 1) / SCALES_PER_OCTAVE)
    transform = np.fft.fft(signal.values - float(signal.values.mean()))
    cycles = np.fft.fftfreq(samples, d=signal.interval).astype(np.float64)
    radians: FloatArray = 2 * math.pi * cycles
    block = -(-samples // COLUMNS)
    edges = np.arange(0, samples, block)
    sizes = np.diff(edges, append=samples)
    rows = [
        np.add.reduceat(_morlet_power(transform, radians, period), edges) / sizes
        for period in periods
    ]
    times = signal.start + signal.interval * (edges + sizes / 2)
    return Scalogram(times, periods, np.array(rows).reshape(len(periods), len(edges)))


def _morlet_power(
    transform: npt.NDArray[np.complex128], radians: FloatArray, period: float
) -> FloatArray:
    scale = period * (MORLET + math.sqrt(2 + MORLET**2)) / (4 * math.pi)
    # Without the usual factor sqrt(scale), cosines of equal amplitude get equal power.
    window = np.where(radians > 0, np.exp(-0.5 * (scale * radians - MORLET) ** 2), 0.0)
    return np.abs(np.fft.ifft(transform * window)) ** 2


def _haar(values: FloatArray, level: int) -> FloatArray:
    block = 2**level
    edges = np.arange(0, len(values), block)
    sizes = np.diff(edges, append=len(values))
    return np.repeat(np.add.reduceat(values, edges) / sizes, sizes)


def _other(wavelet: str) -> Any:  # noqa: ANN401 - PyWavelets has no types
    try:
        pywt: Any = importlib.import_module("pywt")
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            needed_by=f"the wavelet {wavelet}", package="PyWavelets", install="'ioprism[wavelets]'"
        ) from error
    if wavelet not in pywt.wavelist(kind="discrete"):
        raise UsageError(f"unknown discrete wavelet {wavelet!r}.\nHint: haar, db4, sym5, …")

    def smoother(values: FloatArray, level: int) -> FloatArray:
        coarse = values
        lengths = []
        for _ in range(level):
            lengths.append(len(coarse))
            coarse = pywt.dwt(coarse, wavelet)[0]
        for length in reversed(lengths):
            coarse = pywt.idwt(coarse, None, wavelet)[:length]
        return np.asarray(coarse, dtype=np.float64)

    return smoother


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


def find_hybrid_period(
    signal: Signal, *, wavelet: str = "haar", level: int | None = None
) -> Period | None:
    """Return the dominant frequency of the approximation, or None if there is none."""
    hybrid = analyse_hybrid(signal, wavelet=wavelet, level=level)
    spectrum = periodogram(signal)
    if hybrid is None or spectrum is None:
        return None
    return harmonic.describe(
        signal,
        spectrum,
        hybrid.frequency,
        method="hybrid",
        confidence=hybrid.confidence,
        ranges=hybrid.valid_ranges,
    )


def analyse_hybrid(
    signal: Signal, *, wavelet: str = "haar", level: int | None = None
) -> Hybrid | None:
    """Smooth, transform and slide, as in the paper.

    Without a level, the smoothest that keeps eight samples per period of the strongest frequency.
    """
    if level is None:
        frequencies, shares = power_spectrum(signal)
        repeating, level = shares[limits.FEWEST_REPETITIONS - 1 :], 0
        if repeating.any():
            strongest = limits.FEWEST_REPETITIONS - 1 + int(np.argmax(repeating))
            level = choose_level(signal, frequency=float(frequencies[strongest]))
    smooth = approximate(signal, wavelet=wavelet, level=level)
    chosen = dft.fundamental(smooth, dft.dominant(dft.candidates(smooth)))
    span = signal.end - signal.start
    if chosen is None or round(chosen.frequency * span) < limits.FEWEST_REPETITIONS:
        return None
    transform = np.fft.rfft(smooth.values - float(smooth.values.mean()))
    frequency = refine(transform, round(chosen.frequency * span)) / span
    amplitude, phase = cosine_at(smooth, frequency)
    ranges = valid_ranges(smooth, frequency=frequency, phase=phase)
    return Hybrid(level, smooth, frequency, chosen.confidence, amplitude, phase, ranges)


PERIODS_PER_WINDOW = 4  # each window begins a period after the last
MIN_WINDOW = 16  # samples
PADDING = 4
WINDOW_COLUMNS, WINDOW_ROWS = 512, 96  # of a picture, and samples in a window of it at most


def find_in_windows(signal: Signal) -> Period | None:
    """Return the period that most windows agree on, valid where they do."""
    spectrum = periodogram(signal)
    whole = harmonic.find_period(signal)
    if spectrum is None or whole is None:
        return None
    starts, ends, frequencies = frequency_over_time(
        signal, window=PERIODS_PER_WINDOW * whole.seconds
    )
    agrees = np.abs(frequencies - whole.frequency) <= 1.0 / (ends - starts)
    agrees &= frequencies > 0.0
    if not agrees.any():
        return None
    frequency = harmonic.at_frequency(spectrum, whole.frequency).frequency
    period = harmonic.describe(
        signal, spectrum, frequency, method="stft", confidence=float(agrees.mean())
    )
    first, last = unite(starts[agrees], ends[agrees])
    return replace(
        period,
        spread=float((1.0 / frequencies[agrees]).std()),
        valid_ranges=tuple(zip(first.tolist(), last.tolist(), strict=True)),
        repetitions=int(float((last - first).sum()) / period.seconds + 1e-9),
    )


def frequency_over_time(
    signal: Signal, *, window: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the strongest frequency in overlapping windows of a length (seconds).

    Returns:
        When windows start and end, in seconds, and the frequency in Hz; 0 if nothing happens.
    """
    samples = min(len(signal.values), max(MIN_WINDOW, round(window / signal.interval)))
    step = max(1, samples // PERIODS_PER_WINDOW)
    power = _power_in_windows(signal.values, samples, step)
    power[:, : math.ceil(PADDING * limits.MIN_SPECTRUM_REPETITIONS)] = 0.0
    starts = signal.start + signal.interval * step * np.arange(len(power), dtype=np.float64)
    length = samples * signal.interval
    frequencies = power.argmax(axis=1).astype(np.float64) / (PADDING * length)
    return starts, starts + length, frequencies


def _power_in_windows(values: FloatArray, samples: int, step: int) -> FloatArray:
    """The padded power spectrum of each window of so many samples, one row per window."""
    pieces = np.lib.stride_tricks.sliding_window_view(values, samples)[::step]
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * np.hanning(samples)
    power: FloatArray = np.abs(np.fft.rfft(pieces, PADDING * samples, axis=1)) ** 2
    return power


def spectrogram(signal: Signal, *, window: float) -> Scalogram:
    """Power over time and period in windows of equal length (seconds)."""
    wanted = max(1, round(window / signal.interval / WINDOW_COLUMNS))
    values = average_blocks(signal, min(wanted, max(1, len(signal.values) // MIN_WINDOW)))
    samples = min(len(values.values), max(MIN_WINDOW, round(window / values.interval)))
    step = max(1, (len(values.values) - samples) // WINDOW_COLUMNS)
    power = _power_in_windows(values.values, samples, step)
    frequencies = np.arange(power.shape[1]) / (PADDING * samples * values.interval)
    shortest, longest = 2.0 * values.interval, samples * values.interval
    periods = np.geomspace(shortest, longest, WINDOW_ROWS)
    rows = np.array([np.interp(1.0 / periods, frequencies, column) for column in power]).T
    # Every moment gets the window whose middle is nearest, up to both ends.
    times = np.linspace(values.start, values.end, WINDOW_COLUMNS)
    middles = (times - values.start) / values.interval - samples / 2
    nearest = np.clip(np.rint(middles / step).astype(np.int64), 0, rows.shape[1] - 1)
    return Scalogram(times, periods, rows[:, nearest])
