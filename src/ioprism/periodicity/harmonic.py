"""Which frequency, together with its multiples, stands out of the noise?

Short bursts spread their power evenly over many multiples of their frequency, so that no
single one stands out; their sum does. The false-alarm probability is that of noise with any
smooth spectrum (white, red, or that of bursts at random times). The confidence is the share
of the variance that the frequency and its multiples explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.arrays import FloatArray, Signal, median
from ioprism.periodicity import limits
from ioprism.periodicity.chance import CERTAIN, log_sum_of_evidence, probability
from ioprism.periodicity.results import Period
from ioprism.periodicity.spectrum import Periodogram, Ranges, cosine_at, periodogram, valid_ranges


@dataclass(frozen=True, slots=True)
class Peak:
    """A frequency, how many multiples were summed, and the chance of so high a sum."""

    frequency: float  # Hz
    harmonics: int
    log_chance: float


def find_period(signal: Signal) -> Period | None:
    """Return the most prominent frequency with its multiples, however prominent."""
    spectrum = periodogram(signal)
    if spectrum is None:
        return None
    peak = strongest(spectrum)
    if peak is None:
        return None
    confidence = spectrum.share(peak.frequency, harmonics=peak.harmonics)
    return describe(signal, spectrum, peak.frequency, method="harmonic", confidence=confidence)


def find_line(signal: Signal) -> Period | None:
    """Return the strongest frequency by itself, up to half the sampling frequency.

    For samples so coarse that all its multiples are folded; the frequency may itself be folded.
    """
    spectrum = periodogram(signal)
    if spectrum is None:
        return None
    first = math.ceil(limits.MIN_SPECTRUM_REPETITIONS * spectrum.oversampling)
    highest = first + int(np.argmax(spectrum.power[first:]))
    frequency = _between_bins(spectrum, highest, 1)
    return describe(
        signal,
        spectrum,
        frequency,
        method="harmonic",
        confidence=spectrum.share(frequency, harmonics=1),
        ranges=((signal.start, signal.end),),
    )


def describe(
    signal: Signal,
    spectrum: Periodogram,
    frequency: float,
    *,
    method: str,
    confidence: float,
    ranges: Ranges | None = None,
) -> Period:
    """Say all about a frequency (Hz) found by any spectral method."""
    seconds = 1.0 / frequency
    amplitude, phase = cosine_at(signal, frequency)
    if ranges is None:
        ranges = valid_ranges(signal, frequency=frequency, phase=phase)
    log_chance = _log_chance(signal, spectrum, frequency) + math.log(trials(spectrum))
    return Period(
        seconds=seconds,
        frequency=frequency,
        confidence=confidence,
        false_alarm_probability=probability(min(CERTAIN, log_chance)),
        valid_ranges=ranges,
        amplitude=amplitude,
        phase=phase,
        spread=seconds**2 * spectrum.line_width(frequency),
        method=method,
        repetitions=int(sum(end - start for start, end in ranges) / seconds + 1e-9),
    )


def strongest(spectrum: Periodogram) -> Peak | None:
    """The frequency that explains most of the signal among those that noise does not explain.

    The least likely multiples are not always those of the fundamental: where noise is low,
    high multiples stand out most. The fundamental is where most of the power is.
    """
    first = math.ceil(limits.MIN_SPECTRUM_REPETITIONS * spectrum.oversampling)
    last = int(len(spectrum.evidence) * 2 / limits.MIN_SAMPLES_PER_PERIOD)
    if first >= last:
        return None
    clearest = _clearest(spectrum, first, last)
    highest = first + int(np.argmax(spectrum.power[first:last]))
    peaks = [clearest, at_frequency(spectrum, highest * spectrum.step)]
    peaks += [
        at_frequency(spectrum, clearest.frequency / divisor)
        for divisor in range(2, limits.MAX_DIVISOR + 1)
        if clearest.frequency / divisor >= first * spectrum.step
    ]
    enough = limits.MAX_CLEAR_LOG_CHANCE - math.log(trials(spectrum))
    clear = [peak for peak in peaks if peak.log_chance <= enough]
    if not clear:
        return min(peaks, key=lambda peak: peak.log_chance)
    return _fundamental(spectrum, clear)


def _fundamental(spectrum: Periodogram, clear: list[Peak]) -> Peak:
    """The lowest of the frequencies that explain most: their multiples explain as much.

    A fraction of the fundamental explains it too, but has no separate line.
    """
    present = [
        peak for peak in clear if spectrum.evidence_at(peak.frequency) >= limits.MIN_LINE_EVIDENCE
    ] or clear
    highest = max(limits.HARMONICS) * max(peak.frequency for peak in present)
    shares = [
        spectrum.share(peak.frequency, harmonics=round(highest / peak.frequency))
        for peak in present
    ]
    most = [
        peak
        for peak, share in zip(present, shares, strict=True)
        if share >= limits.NEARLY_ALL * max(shares)
    ]
    return min(most, key=lambda peak: peak.frequency)


def _clearest(spectrum: Periodogram, first: int, last: int) -> Peak:
    """The frequency whose multiples are the least likely to be noise."""
    best = Peak(first * spectrum.step, 1, CERTAIN)
    total = np.zeros(last - first)
    for harmonic in range(1, max(limits.HARMONICS) + 1):
        part = spectrum.evidence[first * harmonic : last * harmonic : harmonic]
        total[: len(part)] += part
        if harmonic not in limits.HARMONICS or len(part) == 0:
            continue
        at = int(np.argmax(total[: len(part)]))
        chance = log_sum_of_evidence(tests=harmonic, evidence=float(total[at]))
        if chance < best.log_chance:
            best = Peak(_between_bins(spectrum, first + at, harmonic), harmonic, chance)
    return best


def at_frequency(spectrum: Periodogram, frequency: float) -> Peak:
    """The evidence for a frequency (Hz) found by other means, within half a bin."""
    best = Peak(frequency, 1, CERTAIN)
    for bin_ in _bins_near(spectrum, frequency):
        for harmonics, chance in _log_chances(spectrum, bin_):
            if chance < best.log_chance:
                best = Peak(_between_bins(spectrum, bin_, harmonics), harmonics, chance)
    return best


def _bins_near(spectrum: Periodogram, frequency: float) -> range:
    centre, near = round(frequency / spectrum.step), max(1, spectrum.oversampling // 2)
    return range(max(1, centre - near), centre + near + 1)


def _log_chances(spectrum: Periodogram, bin_: int) -> list[tuple[int, float]]:
    """How likely noise gives as much evidence, for each number of multiples summed."""
    total = np.cumsum(spectrum.evidence[bin_ : bin_ * max(limits.HARMONICS) + 1 : bin_])
    return [
        (harmonics, log_sum_of_evidence(tests=harmonics, evidence=float(total[harmonics - 1])))
        for harmonics in limits.HARMONICS
        if harmonics <= len(total)
    ]


def _log_chance(signal: Signal, spectrum: Periodogram, frequency: float) -> float:
    """The chance of a frequency, as small as the periods that carry the signal allow."""
    repeated = max(0.0, carrying_periods(signal, 1.0 / frequency) - 1.0)
    # Few bursts agree in all multiples as soon as they agree in one, so the evidence of the
    # multiples does not add up: each burst after the first is placed to one part in
    # 1 + 2 * harmonics, and no better.
    return min(
        max(chance, -repeated * math.log(1.0 + 2.0 * harmonics))
        for bin_ in _bins_near(spectrum, frequency)
        for harmonics, chance in [(1, CERTAIN), *_log_chances(spectrum, bin_)]
    )


def trials(spectrum: Periodogram) -> int:
    """How many independent questions the search asks."""
    return max(1, len(spectrum.evidence) // spectrum.oversampling) * max(limits.HARMONICS)


def carrying_periods(signal: Signal, period: float) -> float:
    """How many periods share the energy of the signal."""
    per_period = max(1, round(period / signal.interval))
    deviation = (signal.values - median(signal.values)) ** 2
    energy = np.add.reduceat(deviation, np.arange(0, len(deviation), per_period))
    squares = float(np.sum(energy**2))
    return float(energy.sum()) ** 2 / squares if squares > 0.0 else 1.0


def _between_bins(spectrum: Periodogram, bin_: int, harmonics: int) -> float:
    """Refine a frequency by the parabola through the summed power of three bins."""
    near = (bin_ - 1, bin_, bin_ + 1)
    around = [float(spectrum.power[b : b * harmonics + 1 : b].sum()) for b in near]
    curvature = around[0] - 2 * around[1] + around[2]
    shift = 0.5 * (around[0] - around[2]) / curvature if curvature < 0.0 else 0.0
    return (bin_ + min(0.5, max(-0.5, shift))) * spectrum.step


def find_by_autocorrelation(signal: Signal) -> Period | None:
    """Return the lag at which the signal resembles itself most, or None if it never does."""
    spectrum = periodogram(signal)
    if spectrum is None:
        return None
    correlation = autocorrelation(signal)
    lag = _shortest_lag(correlation, _highest(correlation))
    if lag == 0:
        return None
    peaks = _multiples(correlation, lag)
    seconds = signal.interval * float(np.mean(peaks / np.arange(1, len(peaks) + 1)))
    confidence = float(np.clip(correlation[lag], 0.0, 1.0))
    period = describe(
        signal, spectrum, 1.0 / seconds, method="autocorrelation", confidence=confidence
    )
    distances = np.diff(peaks, prepend=0.0) * signal.interval
    return replace(period, spread=float(distances.std())) if len(peaks) > 1 else period


def autocorrelation(signal: Signal) -> FloatArray:
    """Correlation of a signal with itself, by lag in samples, up to half its length."""
    values = signal.values - float(signal.values.mean())
    samples = len(values)
    power = np.abs(np.fft.rfft(values, 2 ** (2 * samples - 1).bit_length())) ** 2
    lags = samples // limits.FEWEST_REPETITIONS + 1
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


def _shortest_lag(correlation: FloatArray, lag: int) -> int:
    """The shortest fraction of a lag at which the correlation is as high: the real period."""
    best = lag
    for divisor in range(2, max(2, lag // 4)):
        near = _peak_near(correlation, lag / divisor, reach=limits.SAME_PERIOD * lag / divisor)
        if near is not None and correlation[near] >= limits.TOLERANCE * correlation[lag]:
            best = near
    return best


def _multiples(correlation: FloatArray, lag: int) -> FloatArray:
    """Where the correlation peaks at the lag and its multiples, as fractions of a sample."""
    peaks = [_between_samples(correlation, lag)]
    for multiple in range(2, len(correlation) // lag + 1):
        expected = peaks[-1] * multiple / (multiple - 1)
        near = _peak_near(correlation, expected, reach=limits.SAME_PERIOD * lag)
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
