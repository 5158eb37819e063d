"""How does the period change over time?

The confidence is the share of windows that show the period of the whole signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.scales import average_blocks
from ioprism.periodicity.results import Period
from ioprism.periodicity.spectral import harmonic
from ioprism.periodicity.spectral.spectrum import Ranges, periodogram
from ioprism.periodicity.spectral.wavelet import Scalogram

PERIODS_PER_WINDOW = 4
WINDOWS_PER_STEP = 4  # overlap: each instant is in this many windows
MIN_WINDOW = 16  # samples
PADDING = 4
WINDOW_SAMPLES = 512  # at most in a window of a picture
COLUMNS, ROWS = 512, 96  # of a picture


@dataclass(frozen=True, slots=True)
class Moment:
    """The strongest frequency in one window of time."""

    start: float  # seconds
    end: float
    frequency: float  # Hz; 0 if nothing happens in the window
    power_share: float  # of the window's variance, 0 to 1


def find_period(signal: Signal) -> Period | None:
    """Return the period that most windows agree on, valid where they do."""
    spectrum = periodogram(signal)
    whole = harmonic.find_period(signal)
    if spectrum is None or whole is None:
        return None
    moments = period_over_time(signal, window=PERIODS_PER_WINDOW * whole.seconds)
    agreeing = [moment for moment in moments if _agrees(moment, whole.frequency)]
    if not agreeing:
        return None
    frequencies = np.array([moment.frequency for moment in agreeing])
    evidence = harmonic.at_frequency(spectrum, whole.frequency)
    period = harmonic.describe(
        signal, spectrum, evidence, method="stft", confidence=len(agreeing) / len(moments)
    )
    ranges = _merge_ranges(agreeing)
    return replace(
        period,
        spread=float((1.0 / frequencies).std()),
        valid_ranges=ranges,
        repetitions=int(sum(end - start for start, end in ranges) / period.seconds + 1e-9),
    )


def period_over_time(signal: Signal, *, window: float) -> tuple[Moment, ...]:
    """Find the strongest frequency in overlapping windows.

    Args:
        signal: the signal.
        window: length of a window, in seconds.
    """
    samples = min(len(signal.values), max(MIN_WINDOW, round(window / signal.interval)))
    step = max(1, samples // WINDOWS_PER_STEP)
    pieces = np.lib.stride_tricks.sliding_window_view(signal.values, samples)[::step]
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * np.hanning(samples)
    power = np.abs(np.fft.rfft(pieces, PADDING * samples, axis=1)) ** 2
    first = PADDING * harmonic.MIN_REPETITIONS
    power[:, : int(np.ceil(first))] = 0.0
    strongest = power.argmax(axis=1)
    totals = np.maximum(power.sum(axis=1), 1e-300)
    peaks = np.take_along_axis(power, strongest[:, None], axis=1)[:, 0]
    starts = signal.start + signal.interval * step * np.arange(len(pieces))
    length = samples * signal.interval
    return tuple(
        Moment(float(start), float(start + length), float(bin_ / (PADDING * length)), float(share))
        for start, bin_, share in zip(starts, strongest, peaks / totals, strict=True)
    )


def spectrogram(signal: Signal, *, window: float) -> Scalogram:
    """Power over time and period in windows of equal length.

    Args:
        signal: the signal.
        window: length of a window, in seconds.
    """
    wanted = max(1, round(window / signal.interval / WINDOW_SAMPLES))
    values = average_blocks(signal, min(wanted, max(1, len(signal.values) // MIN_WINDOW)))
    samples = min(len(values.values), max(MIN_WINDOW, round(window / values.interval)))
    step = max(1, (len(values.values) - samples) // COLUMNS)
    pieces = np.lib.stride_tricks.sliding_window_view(values.values, samples)[::step]
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * np.hanning(samples)
    power = np.abs(np.fft.rfft(pieces, PADDING * samples, axis=1)) ** 2
    frequencies = np.arange(power.shape[1]) / (PADDING * samples * values.interval)
    shortest, longest = 2.0 * values.interval, samples * values.interval
    periods = np.geomspace(shortest, longest, ROWS)
    rows = np.array([np.interp(1.0 / periods, frequencies, column) for column in power]).T
    return _over_all_time(values, rows, periods, samples=samples, step=step)


def _over_all_time(
    signal: Signal, rows: FloatArray, periods: FloatArray, *, samples: int, step: int
) -> Scalogram:
    """Give every moment the window whose middle is nearest, up to both ends."""
    times = np.linspace(signal.start, signal.end, COLUMNS)
    middles = (times - signal.start) / signal.interval - samples / 2
    nearest = np.clip(np.rint(middles / step).astype(np.int64), 0, rows.shape[1] - 1)
    return Scalogram(times, periods, rows[:, nearest])


def _agrees(moment: Moment, frequency: float) -> bool:
    resolution = 1.0 / (moment.end - moment.start)
    return moment.frequency > 0.0 and abs(moment.frequency - frequency) <= resolution


def _merge_ranges(moments: Sequence[Moment]) -> Ranges:
    ranges: list[tuple[float, float]] = []
    for moment in moments:
        if ranges and moment.start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], moment.end)
        else:
            ranges.append((moment.start, moment.end))
    return tuple(ranges)
