"""What does a periodic signal look like: its cosine waves, its bursts, its next phase?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ioprism.errors import UsageError
from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.onsets.phase_starts import find_train
from ioprism.periodicity.onsets.scales import (
    MAX_BEAT_OFFSET,
    MAX_MEDIAN_OFFSET,
    beats,
    segments,
)
from ioprism.periodicity.results import (
    MAX_SILENT_PERIODS,
    Burst,
    Component,
    NextPhase,
    Period,
    Ranges,
)

PROFILE_BINS = 200
TimeSpan = tuple[float, float]  # start and end, in seconds
QUIET_PARTS = 4  # of a period; phases are cut apart within the quietest one
START_MARGIN = 0.05  # of the period; phases may begin a little before they are found to
MIN_PHASE_SHARE = 0.9  # of the bytes in phases with edges, for nothing else to belong to them
BURST_VOLUME = 0.95  # share of a period's volume that is moved in its phase
RECENT_DISTANCES = 8  # distances that say when the next phase is due
MIN_CLOCK_DISTANCES = 3  # distances that can show a clock
MAX_CLOCK_CORRELATION = -0.3  # correlation of neighbouring distances, below which there is a clock


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
    around = max(1, len(profile) // QUIET_PARTS)
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
        and abs(train.seconds - period.seconds) <= MAX_MEDIAN_OFFSET * period.seconds
    ):
        yield tuple((beat.start, beat.end) for beat in train.beats)


def _volume(signal: Signal, low: float, high: float) -> float:
    return float(phase_volumes(signal, [(low, high)])[0])


def _above_rest(signal: Signal, profile: FloatArray) -> Signal:
    """What a signal moves above its resting level."""
    above = np.maximum(signal.values - float(profile.min()), 0.0)
    return Signal(signal.start, signal.interval, above)


def burst_windows(signal: Signal, period: Period) -> list[tuple[float, float]]:
    """When the phases of a period move nearly all that they move."""
    if not period.phases:
        return list(find_phases_of(signal, period))
    low, high = period.valid_ranges[0][0], period.valid_ranges[-1][1]
    if period.method != "phases":
        return list(period.phases)
    if float(phase_volumes(signal, period.phases).sum()) >= MIN_PHASE_SHARE * _volume(
        signal, low, high
    ):
        return list(period.phases)
    moved = _above_rest(signal, _profile(signal, period))
    early = START_MARGIN * period.seconds
    windows = [_window(moved, b - early, b - early + period.seconds) for b, _ in period.phases]
    return [window for window in windows if window[1] > window[0]]


def predict_next_phase(
    signal: Signal, period: Period, *, burst: Burst | None = None, now: float | None = None
) -> NextPhase | None:
    """When the next phase is due, or None if the period is over.

    Args:
        signal: the signal.
        period: its period.
        burst: its typical phase, if it is known already.
        now: seconds; the end of the signal if None.
    """
    now = signal.end if now is None else now
    if not period.valid_ranges:
        return None
    if now - period.valid_ranges[-1][1] > MAX_SILENT_PERIODS * period.seconds:
        return None
    burst = burst or describe_burst(signal, period)
    if len(period.phases) > 1:
        start, distance = _latest(period)
    else:
        start, distance = _peaks(period)[-1] - burst.width / 2, period.seconds
    start += max(1, math.floor((now - start) / distance) + 1) * distance
    return NextPhase(start, start + burst.width, burst.bytes)


def _latest(period: Period) -> tuple[float, float]:
    """Where the latest phase began, and how many seconds later the next one does.

    A program that computes for as long after every phase is late for good once it is late: only
    the latest phase and the usual distance count. One that goes by a clock makes up for it, so
    that a long distance comes after a short one: then a line through all phases tells better.
    """
    starts = np.array([start for start, _ in period.phases])[-RECENT_DISTANCES - 1 :]
    distances = np.diff(starts)
    near = distances[np.abs(distances - period.seconds) < MAX_BEAT_OFFSET * period.seconds]
    if not len(near):
        return float(starts[-1]), period.seconds
    if len(near) < len(distances) or not _makes_up(distances):
        return float(starts[-1]), median(near)
    numbers = np.arange(len(starts)) - (len(starts) - 1) / 2
    slope = float(numbers @ starts / (numbers @ numbers))
    return float(starts.mean()) + slope * float(numbers[-1]), slope


def _makes_up(distances: FloatArray) -> bool:
    """Whether a long distance comes after a short one: neighbours are correlated by -0.5 then."""
    off = distances - distances.mean()
    return len(off) >= MIN_CLOCK_DISTANCES and float(
        off[1:] @ off[:-1]
    ) < MAX_CLOCK_CORRELATION * float(off @ off)


def _peaks(period: Period) -> list[float]:
    """When the wave of a period is highest, where the period holds."""
    turn = -period.phase / (2 * math.pi)
    low, high = period.valid_ranges[0][0], period.valid_ranges[-1][1]
    first = math.ceil(low / period.seconds - turn)
    last = max(first, math.floor(high / period.seconds - turn))
    return [(number + turn) * period.seconds for number in range(first, last + 1)]


def _profile(signal: Signal, period: Period) -> FloatArray:
    """The signal folded by its period: its mean at each part of one."""
    inside = _inside(signal, period)
    chosen = inside if inside.any() else np.ones(len(signal.values), dtype=bool)
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
    aside = (1.0 - BURST_VOLUME) / 2 * volume[-1]
    first, last = np.interp([aside, volume[-1] - aside], volume, np.arange(len(volume)))
    margin = aside / volume[-1] * (last - first) / BURST_VOLUME
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


def _inside(signal: Signal, period: Period) -> npt.NDArray[np.bool_]:
    times = signal.times
    inside = np.zeros(len(times), dtype=bool)
    for start, end in period.valid_ranges:
        inside |= (times >= start) & (times < end)
    return inside


def phase_volumes(signal: Signal, ranges: Sequence[tuple[float, float]]) -> FloatArray:
    """Integral of the signal over each range of time (seconds): bytes for a bandwidth."""
    edges = signal.start + signal.interval * np.arange(len(signal.values) + 1)
    volume = np.concatenate(([0.0], np.cumsum(signal.values * signal.interval)))
    bounds = np.array(ranges, dtype=np.float64).reshape(-1, 2)
    return np.interp(bounds[:, 1], edges, volume) - np.interp(bounds[:, 0], edges, volume)
