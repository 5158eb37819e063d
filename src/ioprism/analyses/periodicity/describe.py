"""What does a periodic signal look like: its cosine waves, its bursts, its next phase?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ioprism.analyses.periodicity.onsets.segments import Phases, find_phases, median
from ioprism.analyses.periodicity.results import Burst, Component, NextPhase, Period
from ioprism.errors import UsageError
from ioprism.model.signal import FloatArray, Signal

PROFILE_BINS = 200
STILL_RUNNING = 1.5  # periods without I/O after which a rhythm is over


def components(signal: Signal, *, count: int) -> tuple[Component, ...]:
    """The mean and the strongest cosine waves of the spectrum, the strongest first."""
    waves = np.abs(_transform(signal))[1:]
    return _at_bins(signal, _strongest(waves, count) + 1)


def peaks(signal: Signal, *, count: int) -> tuple[Component, ...]:
    """The mean and the strongest local maxima of the spectrum, the strongest first."""
    waves = np.abs(_transform(signal))[1:]
    around = np.concatenate(([0.0], waves, [0.0]))
    maxima = np.where((waves >= around[:-2]) & (waves >= around[2:]), waves, 0.0)
    return _at_bins(signal, _strongest(maxima, count) + 1)


def synthesise(waves: Iterable[Component], times: FloatArray) -> FloatArray:
    """Add up cosine waves at these times (seconds)."""
    total = np.zeros_like(times)
    for wave in waves:
        total += wave.amplitude * np.cos(2 * math.pi * wave.frequency * times + wave.phase)
    return total


def describe_burst(signal: Signal, period: Period) -> Burst:
    """Width, duty cycle and volume of a typical phase of a rhythm."""
    inside = _inside(signal, period)
    phases = _phases_in(find_phases(signal), period)
    if phases is not None:
        width = median(phases.ends - phases.starts)
    else:
        width = period.seconds * _busy_share(signal, period, inside)
    level = float(signal.values[inside].mean()) if inside.any() else float(signal.values.mean())
    return Burst(width, min(1.0, width / period.seconds), level * period.seconds)


def predict_next_phase(signal: Signal, period: Period) -> NextPhase | None:
    """When the next phase after the end of the signal is due, or None if the rhythm is over."""
    if not period.valid_ranges:
        return None
    last = period.valid_ranges[-1][1]
    if signal.end - last > STILL_RUNNING * period.seconds:
        return None
    burst = describe_burst(signal, period)
    phases = _phases_in(find_phases(signal), period)
    if phases is not None:
        start = float(phases.starts[-1])
    else:
        peak = -period.phase / (2 * math.pi) * period.seconds
        start = peak - burst.width / 2
    missing = math.floor((signal.end - start) / period.seconds) + 1
    start += max(1, missing) * period.seconds
    return NextPhase(start, start + burst.width, burst.bytes)


def _transform(signal: Signal) -> npt.NDArray[np.complex128]:
    return np.fft.rfft(signal.values) / len(signal.values)


def _strongest(waves: FloatArray, count: int) -> npt.NDArray[np.int64]:
    if count < 1:
        raise UsageError(f"{count} components make no sense: ask for at least one.")
    count = min(count, len(waves))
    found = np.argpartition(waves, len(waves) - count)[len(waves) - count :]
    return found[np.argsort(-waves[found], kind="stable")]


def _at_bins(signal: Signal, bins: npt.NDArray[np.int64]) -> tuple[Component, ...]:
    transform, samples = _transform(signal), len(signal.values)
    span = signal.end - signal.start
    mean = float(transform[0].real)
    waves = [Component(0.0, abs(mean), 0.0 if mean >= 0.0 else math.pi)]
    for k in bins.tolist():
        frequency = k / span
        weight = 1.0 if 2 * k == samples else 2.0
        # Phases refer to time zero, and a sample to the middle of its interval.
        first = signal.start + signal.interval / 2
        phase = float(np.angle(transform[k])) - 2 * math.pi * frequency * first
        amplitude = weight * float(np.abs(transform[k]))
        waves.append(Component(frequency, amplitude, math.remainder(phase, 2 * math.pi)))
    return tuple(waves)


def _inside(signal: Signal, period: Period) -> npt.NDArray[np.bool_]:
    times = signal.times
    inside = np.zeros(len(times), dtype=bool)
    for start, end in period.valid_ranges:
        inside |= (times >= start) & (times < end)
    return inside


def _phases_in(phases: Phases | None, period: Period) -> Phases | None:
    """The phases within the rhythm, if there is about one a period."""
    if phases is None or not period.valid_ranges:
        return None
    inside = np.zeros(len(phases), dtype=bool)
    slack = phases.resolution
    for start, end in period.valid_ranges:
        inside |= (phases.starts >= start - slack) & (phases.ends <= end + slack)
    count = int(inside.sum())
    if count == 0 or not 0.5 <= count / max(1, period.repetitions) <= 2.0:
        return None
    return Phases(
        phases.starts[inside],
        phases.ends[inside],
        phases.levels[inside],
        phases.shortest_gap,
        phases.resolution,
    )


def _busy_share(signal: Signal, period: Period, inside: npt.NDArray[np.bool_]) -> float:
    """Share of the period in which the folded signal is above half its height."""
    chosen = inside if inside.any() else np.ones(len(signal.values), dtype=bool)
    turns = (signal.times[chosen] + signal.interval / 2) / period.seconds % 1.0
    bins = max(4, min(PROFILE_BINS, round(period.seconds / signal.interval)))
    place = np.minimum((turns * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = np.bincount(place, weights=signal.values[chosen], minlength=bins)
    profile = sums[counts > 0] / counts[counts > 0]
    return float(np.mean(profile > (profile.min() + profile.max()) / 2))


def phase_volumes(signal: Signal, ranges: Sequence[tuple[float, float]]) -> FloatArray:
    """Integral of the signal over each range of time (seconds): bytes for a bandwidth."""
    edges = signal.start + signal.interval * np.arange(len(signal.values) + 1)
    volume = np.concatenate(([0.0], np.cumsum(signal.values * signal.interval)))
    bounds = np.array(ranges, dtype=np.float64).reshape(-1, 2)
    return np.interp(bounds[:, 1], edges, volume) - np.interp(bounds[:, 0], edges, volume)
