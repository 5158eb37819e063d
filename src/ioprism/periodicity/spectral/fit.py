"""Which few cosine waves describe a signal best? Fourier fitting by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ioprism.errors import UsageError
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.describe import components, peaks, synthesise
from ioprism.periodicity.results import Component, WaveFit

DEFAULT_WAVES = 10  # waves, where no number is asked for
MAX_WORK = 2**28  # samples times the square of the waves: 40 s of one core
MAX_STEPS = 40
MIN_CYCLES = 0.75  # bins; a slower wave is a trend, and cancels the mean
RIDGE = 1e-9  # of the samples: as little as rounding needs
STRONGER_RIDGE = 10.0
MIN_GAIN = 1e-6  # relative gain of a step below which it is the last
MAX_SHIFT = 1.0  # bins a frequency may move
MIN_SEPARATION = 0.75  # bins that two frequencies keep apart: closer waves cancel each other


def fit_waves(signal: Signal, *, count: int) -> WaveFit:
    """Fit frequencies, amplitudes and phases, starting from the strongest of the spectrum.

    A frequency stays within one bin of where it starts and apart from the others, no amplitude
    exceeds the signal's own range, and a step is only taken if it lowers the error, so the fit
    is never worse than the spectrum's own components.

    Args:
        signal: the signal.
        count: how many cosine waves, the mean besides.

    Raises:
        UsageError: that number of waves would take minutes, and gigabytes.
    """
    samples = len(signal.values)
    most = max(DEFAULT_WAVES, math.isqrt(MAX_WORK // samples))
    if min(count, samples // 2) > most:
        raise UsageError(
            f"{count} waves are too many to fit to {samples} samples.\n"
            f"Hint: use --components {most}, a lower --frequency, or leave --fit out."
        )
    strongest = components(signal, count=count)
    before = mean_square_error(signal, strongest)
    tried = [
        _fit_frequencies(signal, [wave.frequency for wave in start if wave.frequency > 0.0])
        for start in (peaks(signal, count=count), strongest)
    ]
    best = min(tried, key=lambda waves: mean_square_error(signal, waves))
    after = mean_square_error(signal, best)
    return WaveFit(best, before, after) if after < before else WaveFit(strongest, before, before)


def mean_square_error(signal: Signal, waves: Sequence[Component]) -> float:
    """Mean squared difference of a signal and the sum of cosine waves."""
    return float(np.mean((signal.values - synthesise(waves, _centres(signal))) ** 2))


def _centres(signal: Signal) -> FloatArray:
    return signal.times + signal.interval / 2


def _fit_frequencies(signal: Signal, frequencies: Sequence[float]) -> tuple[Component, ...]:
    """Gauss-Newton with Levenberg's damping; amplitudes follow from frequencies linearly."""
    # In units of the signal's length, so that all unknowns are of one size.
    span = signal.end - signal.start
    times = (_centres(signal) - signal.start) / span
    start = np.array(frequencies) * span
    low, high = _bounds(start)
    now, damping = start, 1e-3
    weights, error = _linear(signal.values, times, now)
    for _ in range(MAX_STEPS):
        try:
            step = _step(signal.values, times, now, weights, damping)
        except np.linalg.LinAlgError:  # more waves than samples can tell apart
            break
        trial = np.clip(now + step, low, high)
        trial_weights, trial_error = _linear(signal.values, times, trial)
        if trial_error >= error:
            damping *= 10.0
            if damping > 1e6:
                break
            continue
        gain = (error - trial_error) / error
        now, weights, error, damping = trial, trial_weights, trial_error, damping / 10.0
        if gain < MIN_GAIN:
            break
    return _as_components(now / span, weights, signal.start)


def _bounds(start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Between which frequencies (bins) each one may move without coming close to another."""
    order = np.argsort(start)
    room = np.maximum(0.0, (np.diff(start[order]) - MIN_SEPARATION) / 2)
    below, above = np.full(len(start), MAX_SHIFT), np.full(len(start), MAX_SHIFT)
    below[order[1:]] = np.minimum(MAX_SHIFT, room)
    above[order[:-1]] = np.minimum(MAX_SHIFT, room)
    return np.maximum(start - below, np.minimum(start, MIN_CYCLES)), start + above


def _design(times: FloatArray, cycles: FloatArray) -> FloatArray:
    angles = 2 * math.pi * times[:, None] * cycles
    return np.hstack((np.ones((len(times), 1)), np.cos(angles), np.sin(angles)))


def _linear(values: FloatArray, times: FloatArray, cycles: FloatArray) -> tuple[FloatArray, float]:
    """The best mean, cosines and sines of given frequencies, and the error they leave."""
    design = _design(times, cycles)
    scale = float(np.abs(values).max()) or 1.0
    highest = (float(np.ptp(values)) or scale) / scale
    products, right = design.T @ design, design.T @ (values / scale)
    ridge = RIDGE
    while True:
        normal = products + ridge * len(times) * np.eye(design.shape[1])
        solved = np.linalg.solve(normal, right)
        count = (len(solved) - 1) // 2
        amplitudes = np.hypot(solved[1 : count + 1], solved[count + 1 :])
        # Waves that nearly cancel grow without limit; ridge holds them within the signal.
        if not len(amplitudes) or float(amplitudes.max()) <= highest or ridge > 1.0:
            break
        ridge *= STRONGER_RIDGE
    weights = np.asarray(scale * solved, dtype=np.float64)
    return weights, float(np.mean((values - design @ weights) ** 2))


def _step(
    values: FloatArray, times: FloatArray, cycles: FloatArray, weights: FloatArray, damping: float
) -> FloatArray:
    """How far to move the frequencies, the other unknowns moving along."""
    count = len(cycles)
    design = _design(times, cycles)
    cosines, sines = design[:, 1 : count + 1], design[:, count + 1 :]
    slopes = 2 * math.pi * times[:, None] * (
        weights[count + 1 :] * cosines - weights[1 : count + 1] * sines
    )  # fmt: skip
    jacobian: FloatArray = np.hstack((design, slopes))
    scale: FloatArray = np.maximum(np.sqrt(np.mean(jacobian**2, axis=0)), 1e-300)
    jacobian /= scale
    normal = jacobian.T @ jacobian / len(times)
    normal = normal + damping * np.eye(len(normal))
    gradient = jacobian.T @ (values - design @ weights) / len(times)
    move: FloatArray = np.linalg.solve(normal, gradient) / scale
    return move[-count:]


def _as_components(
    frequencies: FloatArray, weights: FloatArray, start: float
) -> tuple[Component, ...]:
    count = len(frequencies)
    waves = [_wave(0.0, float(weights[0]), 0.0, 0.0)]
    waves += [
        _wave(float(frequency), float(cosine), float(sine), start)
        for frequency, cosine, sine in zip(
            frequencies, weights[1 : count + 1], weights[count + 1 :], strict=True
        )
    ]
    return (waves[0], *sorted(waves[1:], key=lambda wave: -wave.amplitude))


def _wave(frequency: float, cosine: float, sine: float, start: float) -> Component:
    phase = math.atan2(-sine, cosine) - 2 * math.pi * frequency * start
    return Component(frequency, math.hypot(cosine, sine), math.remainder(phase, 2 * math.pi))
