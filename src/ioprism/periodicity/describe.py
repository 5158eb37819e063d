"""What does a periodic signal look like: its cosine waves, its bursts, its next phase?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ioprism.errors import UsageError
from ioprism.model.arrays import TINY, FloatArray, Signal, median
from ioprism.periodicity import limits
from ioprism.periodicity.phase_starts import find_train
from ioprism.periodicity.results import Burst, Component, NextPhase, Period, Ranges, WaveFit
from ioprism.periodicity.segments import beats, segments

PROFILE_BINS = 200
TimeSpan = tuple[float, float]  # start and end, in seconds


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
    """Width, duty cycle and volume of a typical phase of a period.

    A phase lasts from where it begins until `MOST` of what its period moves above the resting
    level is moved, stragglers included; its bytes are those moved in that time. So width and
    bytes are possible together: their ratio never exceeds the highest bandwidth.
    """
    windows = burst_windows(signal, period)
    if not windows:
        return Burst(0.0, 0.0, 0.0)
    width = min(median(np.array([end - start for start, end in windows])), period.seconds)
    volume = median(phase_volumes(signal, windows))
    most = float(signal.values.max()) * width
    return Burst(width, width / period.seconds, min(volume, most))


def find_phases_of(signal: Signal, period: Period) -> Ranges:
    """Start and end of the phases of a period that a spectrum showed, in seconds.

    They are the busy stretches about a period apart, where the signal has such. Otherwise the
    signal is cut into periods where it is lowest on average; a phase is where each is busiest.
    """
    low, high = period.valid_ranges[0][0], period.valid_ranges[-1][1]
    for spans in _busy_stretches(signal, period):
        inside = tuple((a, b) for a, b in spans if low - period.seconds <= a <= high)
        if 2 * float(phase_volumes(signal, inside).sum()) >= _volume(signal, low, high):
            return inside
    profile = _profile(signal, period)
    # The middle of the quietest quarter of a period, around the turn.
    around = max(1, len(profile) // 4)
    quiet = np.convolve(np.concatenate((profile, profile[: around - 1])), np.ones(around), "valid")
    cut = (int(np.argmin(quiet)) + around / 2) / len(profile) * period.seconds
    first = cut + period.seconds * math.floor((low - cut) / period.seconds)
    # A wave has no edges: it is busy for as long as it is above half its height.
    width = period.seconds * float(np.mean(profile > (profile.min() + profile.max()) / 2))
    cells = np.arange(first, high, period.seconds).tolist()
    busiest = [_busiest(signal, begin, begin + period.seconds, width) for begin in cells]
    return tuple(span for span in busiest if span is not None)


def _busiest(signal: Signal, begin: float, until: float, width: float) -> TimeSpan | None:
    """The stretch of a width (seconds) that moves most between two moments, if any is moved."""
    low = max(0, round((begin - signal.start) / signal.interval))
    high = min(len(signal.values), round((until - signal.start) / signal.interval))
    size = max(1, round(width / signal.interval))
    if high - low < size:
        return None
    volume = np.concatenate(([0.0], np.cumsum(signal.values[low:high])))
    moved = volume[size:] - volume[:-size]
    best = int(np.argmax(moved))
    if not moved[best] > 0.0:
        return None
    start = signal.start + signal.interval * (low + best)
    return start, start + size * signal.interval


def _busy_stretches(signal: Signal, period: Period) -> Iterator[Ranges]:
    """Phases about a period apart: by the ways of `beats`, then at any scale."""
    phases = beats(segments(signal), period)
    if phases is not None:
        yield tuple(zip(phases.starts.tolist(), phases.ends.tolist(), strict=True))
    train = find_train(signal)
    if (
        train is not None
        and abs(train.seconds - period.seconds) <= limits.MAX_OFFSET * period.seconds
    ):
        yield tuple((beat.start, beat.end) for beat in train.beats)


def _volume(signal: Signal, low: float, high: float) -> float:
    return float(phase_volumes(signal, [(low, high)])[0])


def burst_windows(signal: Signal, period: Period) -> list[tuple[float, float]]:
    """When the phases of a period move nearly all that they move."""
    if not period.phases:
        return list(find_phases_of(signal, period))
    low, high = period.valid_ranges[0][0], period.valid_ranges[-1][1]
    if period.method != "phases" or float(
        phase_volumes(signal, period.phases).sum()
    ) >= limits.NEARLY_ALL * _volume(signal, low, high):
        return list(period.phases)
    above = np.maximum(signal.values - float(_profile(signal, period).min()), 0.0)
    moved = Signal(signal.start, signal.interval, above)  # above the resting level
    early = limits.SAME * period.seconds
    windows = [_window(moved, b - early, b - early + period.seconds) for b, _ in period.phases]
    return [window for window in windows if window[1] > window[0]]


def predict_next_phase(
    signal: Signal, period: Period, *, burst: Burst | None = None, now: float | None = None
) -> NextPhase | None:
    """When the next phase is due after now (seconds), or None if the period is over."""
    now = signal.end if now is None else now
    if now - period.valid_ranges[-1][1] > limits.MAX_SILENT_PERIODS * period.seconds:
        return None
    burst = burst or describe_burst(signal, period)
    if len(period.phases) > 1:
        start, distance = _latest(period)
    else:
        # The last peak of the period's wave, where the period holds.
        turn = -period.phase / (2 * math.pi)
        low, high = period.valid_ranges[0][0], period.valid_ranges[-1][1]
        last = max(math.ceil(low / period.seconds - turn), math.floor(high / period.seconds - turn))
        start, distance = (last + turn) * period.seconds - burst.width / 2, period.seconds
    late = max(signal.interval, min(period.spread, limits.QUARTER * distance))
    start = first_due(start + distance, distance, now=now, late=late)
    return NextPhase(start, start + burst.width, burst.bytes)


def first_due(start: float, distance: float, *, now: float, late: float) -> float:
    """When the first phase that may still begin is due, in seconds: now if it is late.

    Args:
        start: when a phase is due.
        distance: seconds from one phase to the next.
        now: seconds.
        late: seconds that a phase may begin after it is due.
    """
    skipped = max(0, math.ceil((now - late - start) / distance))
    return max(start + skipped * distance, now)


def _latest(period: Period) -> tuple[float, float]:
    """Where the latest phase began, and how many seconds later the next one does.

    A program that computes for as long after every phase is late for good once it is late: only
    the latest phase and the usual distance count. One that goes by a clock makes up for it, so
    that a long distance comes after a short one: then a line through all phases tells better.
    """
    starts = np.array([start for start, _ in period.phases])[-limits.RECENT_DISTANCES - 1 :]
    distances = np.diff(starts)
    near = distances[np.abs(distances - period.seconds) < period.seconds / 2]
    if not len(near):
        return float(starts[-1]), period.seconds
    off = distances - distances.mean()
    # A long distance comes after a short one: neighbours are correlated by -0.5 then.
    makes_up = len(off) >= limits.MIN_SURE_REPETITIONS and float(
        off[1:] @ off[:-1]
    ) < limits.MAX_CLOCK_CORRELATION * float(off @ off)
    if len(near) < len(distances) or not makes_up:
        return float(starts[-1]), median(near)
    numbers = np.arange(len(starts)) - (len(starts) - 1) / 2
    slope = float(numbers @ starts / (numbers @ numbers))
    return float(starts.mean()) + slope * float(numbers[-1]), slope


def _profile(signal: Signal, period: Period) -> FloatArray:
    """The signal folded by its period: its mean at each part of one."""
    times = signal.times
    inside = np.zeros(len(times), dtype=bool)
    for start, end in period.valid_ranges:
        inside |= (times >= start) & (times < end)
    chosen = inside if inside.any() else ~inside
    turns = (signal.times[chosen] + signal.interval / 2) / period.seconds % 1.0
    bins = max(4, min(PROFILE_BINS, round(period.seconds / signal.interval)))
    place = np.minimum((turns * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = np.bincount(place, weights=signal.values[chosen], minlength=bins)
    return np.asarray(sums[counts > 0] / counts[counts > 0], dtype=np.float64)


def _window(moved: Signal, begin: float, until: float) -> tuple[float, float]:
    """From where to where most of a stretch's volume is moved; evenly moved, all of it."""
    low = max(0, math.floor((begin - moved.start) / moved.interval))
    high = min(len(moved.values), math.ceil((until - moved.start) / moved.interval))
    volume = np.concatenate(([0.0], np.cumsum(moved.values[low:high])))
    if not volume[-1] > 0.0:
        return begin, begin
    aside = (1.0 - limits.NEARLY_ALL_BYTES) / 2 * volume[-1]
    first, last = np.interp([aside, volume[-1] - aside], volume, np.arange(len(volume)))
    margin = aside / volume[-1] * (last - first) / limits.NEARLY_ALL_BYTES
    start = moved.start + moved.interval * (low + first - margin)
    return float(start), float(start + moved.interval * (last - first + 2 * margin))


def _transform(signal: Signal) -> npt.NDArray[np.complex128]:
    return np.fft.rfft(signal.values) / len(signal.values)


def _strongest(waves: FloatArray, count: int) -> npt.NDArray[np.int64]:
    if count < 1:
        raise UsageError(f"{count} components make no sense: ask for at least one.")
    count = min(count, len(waves))
    places = np.argpartition(waves, len(waves) - count)[len(waves) - count :]
    return places[np.argsort(-waves[places], kind="stable")]


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


def phase_volumes(signal: Signal, ranges: Sequence[tuple[float, float]]) -> FloatArray:
    """Integral of the signal over each range of time (seconds): bytes for a bandwidth."""
    edges = signal.start + signal.interval * np.arange(len(signal.values) + 1)
    volume = np.concatenate(([0.0], np.cumsum(signal.values * signal.interval)))
    bounds = np.array(ranges, dtype=np.float64).reshape(-1, 2)
    return np.interp(bounds[:, 1], edges, volume) - np.interp(bounds[:, 0], edges, volume)


DEFAULT_WAVES = 10  # waves, where no number is asked for
MAX_WORK = 2**28  # samples times the square of the waves: 40 s of one core
MAX_STEPS = 40
RIDGE = 1e-9  # of the samples: as little as rounding needs
MIN_GAIN = 1e-6  # relative gain of a step below which it is the last
MIN_SEPARATION = 0.75  # bins between frequencies, and from 0: closer waves cancel each other


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
    """Between which frequencies (bins) each may move: by one bin, and not close to another."""
    order = np.argsort(start)
    room = np.maximum(0.0, (np.diff(start[order]) - MIN_SEPARATION) / 2)
    below, above = np.ones(len(start)), np.ones(len(start))
    below[order[1:]] = np.minimum(1.0, room)
    above[order[:-1]] = np.minimum(1.0, room)
    return np.maximum(start - below, np.minimum(start, MIN_SEPARATION)), start + above


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
        ridge *= 10.0
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
    scale: FloatArray = np.maximum(np.sqrt(np.mean(jacobian**2, axis=0)), TINY)
    jacobian /= scale
    normal = jacobian.T @ jacobian / len(times)
    normal = normal + damping * np.eye(len(normal))
    gradient = jacobian.T @ (values - design @ weights) / len(times)
    move: FloatArray = np.linalg.solve(normal, gradient) / scale
    return move[-count:]


def _as_components(
    frequencies: FloatArray, weights: FloatArray, start: float
) -> tuple[Component, ...]:
    every = np.append(0.0, frequencies).tolist()
    cosines = weights[: len(every)].tolist()
    sines = [0.0, *weights[len(every) :].tolist()]
    waves = []
    for frequency, cosine, sine in zip(every, cosines, sines, strict=True):
        phase = math.atan2(-sine, cosine) - 2 * math.pi * frequency * start
        amplitude = math.hypot(cosine, sine)
        waves.append(Component(frequency, amplitude, math.remainder(phase, 2 * math.pi)))
    return (waves[0], *sorted(waves[1:], key=lambda wave: -wave.amplitude))
