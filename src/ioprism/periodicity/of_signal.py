"""All about the periodicity of one signal: its periods, its typical phase, the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.errors import AnalysisError
from ioprism.model.arrays import median
from ioprism.model.signal import Signal
from ioprism.periodicity.describe import components as strongest_components
from ioprism.periodicity.describe import describe_burst, predict_next_phase
from ioprism.periodicity.detect import DEFAULTS, Options, detect, with_shares
from ioprism.periodicity.onsets.scales import average_blocks
from ioprism.periodicity.results import NamedPeriod, Period, Periodicity, only_periodic
from ioprism.periodicity.sampling import MIN_SAMPLES
from ioprism.periodicity.spectral import dft
from ioprism.periodicity.spectral.fit import DEFAULT_WAVES, fit_waves
from ioprism.periodicity.spectral.spectrum import cosine_at

DIRECTIONS = ("read", "write")
MAX_PERIODS = 4
MIN_TIME_SHARE = 0.1  # of the signal, for a part in which another period is sought
SAME_PERIOD = 0.1  # relative difference of two periods of one signal that are the same
SAME_IN_DIRECTIONS = 0.05  # relative difference of the periods of reads and of writes
LOOKS = 3  # before, after, and at the same time
MAX_LOOK_SAMPLES = 2**14  # more are averaged
PHASE_MARGIN = 0.05  # of the period, around a phase that is removed


def signal_periodicity(
    signal: Signal,
    *,
    options: Options = DEFAULTS,
    components: int = 0,
    fit: bool = False,
    direction: str = "both",
    known: Period | None = None,
) -> Periodicity:
    """Find the periods of a signal and describe the dominant one.

    Args:
        signal: the signal.
        options: how to look for the period.
        components: how many cosine waves to describe the signal by; 0 for none.
        fit: whether to fit them by least squares (ten if ``components`` is 0).
        direction: read, write or both: what the signal is.
        known: its dominant period, if it is known already.
    """
    dominant = known or detect(signal, options=options)
    slotted = dominant if dominant is not None and dominant.pattern == "slotted" else None
    dominant = None if slotted is not None else dominant
    periods = [] if dominant is None else [dominant, *_other_periods(signal, dominant, options)]
    answer = Periodicity(
        signal=signal,
        period=None,
        candidates=dft.candidates(signal, outliers=options.outliers, tolerance=options.tolerance),
        components=strongest_components(signal, count=components) if components else (),
        fit=fit_waves(signal, count=components or DEFAULT_WAVES) if fit else None,
        burst=None,
        next_phase=None,
        periods=tuple(NamedPeriod(period, direction) for period in periods),
        direction=direction,
        slotted=slotted,
    )
    return answer if dominant is None or dominant.is_minor else with_period(answer, dominant)


def with_period(periodicity: Periodicity, period: Period) -> Periodicity:
    """Return the result with a period as its answer, its typical phase and the next one."""
    burst = describe_burst(periodicity.signal, period)
    following = predict_next_phase(periodicity.signal, period, burst=burst)
    return replace(periodicity, period=period, burst=burst, next_phase=following)


def _other_periods(signal: Signal, dominant: Period, options: Options) -> list[Period]:
    """The periods besides the dominant one.

    They may hold before it, after it, or at the same time; there the phases of the dominant one
    are removed first. Every look may use only its share of the false-alarm probability.
    """
    strict = replace(
        options, max_false_alarm=options.max_false_alarm / LOOKS, maybe=False, method="phases"
    )
    periods = [dominant]
    for look in _looks(signal, dominant):
        block = -(-len(look.values) // MAX_LOOK_SAMPLES)
        other = detect(average_blocks(look, block), options=strict)
        if other is not None and not any(
            other.is_near(one, tolerance=SAME_PERIOD) for one in periods
        ):
            periods.append(other)
    return [with_shares(signal, period) for period in periods[1:MAX_PERIODS]]


def _looks(signal: Signal, dominant: Period) -> Iterator[Signal]:
    first, last = dominant.valid_ranges[0][0], dominant.valid_ranges[-1][1]
    shortest = MIN_TIME_SHARE * (signal.end - signal.start)
    for low, high in ((signal.start, first), (last, signal.end)):
        part = crop(signal, low, high)
        if high - low >= shortest and len(part.values) >= MIN_SAMPLES:
            yield part
    if dominant.phases:
        yield _remove_phases(signal, dominant)


def crop(signal: Signal, low: float, high: float) -> Signal:
    """Return the samples between two moments (seconds)."""
    first = max(0, round((low - signal.start) / signal.interval))
    last = max(first, round((high - signal.start) / signal.interval))
    start = signal.start + first * signal.interval
    return Signal(start, signal.interval, signal.values[first:last])


def _remove_phases(signal: Signal, period: Period) -> Signal:
    """Set the samples of a period's phases to zero."""
    starts, ends = np.array(period.phases).T
    # A phase that is longer than usual ran into one of another period: that part stays.
    ends = np.minimum(ends, starts + median(ends - starts))
    margin = PHASE_MARGIN * period.seconds
    edges = np.stack((starts - margin, ends + margin), axis=1)
    places = np.clip(
        np.rint((edges - signal.start) / signal.interval).astype(np.int64), 0, len(signal.values)
    )
    values = signal.values.copy()
    for low, high in places.tolist():
        values[low:high] = 0.0
    return Signal(signal.start, signal.interval, values)


def take_turns(both: Period, read: Period, write: Period) -> bool:
    """Whether reads and writes alternate, so that all I/O together repeats twice as often."""
    twice = replace(both, seconds=2.0 * both.seconds)
    return all(twice.is_near(one, tolerance=SAME_IN_DIRECTIONS) for one in (read, write))


def every_second_phase(signal: Signal, period: Period) -> Period:
    """Return the period of every second phase."""
    seconds, phases = 2.0 * period.seconds, period.phases[::2]
    amplitude, phase = cosine_at(signal, 1.0 / seconds)
    return replace(
        period,
        seconds=seconds,
        frequency=1.0 / seconds,
        amplitude=amplitude,
        phase=phase,
        repetitions=period.repetitions // 2,
        phases=phases,
        confirmed=None if period.confirmed is None else min(period.confirmed, len(phases)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class DirectionPeriod:
    """The period of one direction, and the signal that shows it."""

    direction: str  # read, write or both
    period: Period
    signal: Signal


def options_of_direction(options: Options) -> Options:
    """Divide the false-alarm level between the directions, each of which is a test (Bonferroni)."""
    level = options.max_false_alarm / len(DIRECTIONS)
    return replace(options, max_false_alarm=level, maybe=False)


def best_direction(
    whole: Signal, period: Period | None, directions: Sequence[DirectionPeriod]
) -> DirectionPeriod | None:
    """Return the direction that explains more than all I/O together, or None if none does.

    A certain period comes before a possible one; among those the bytes of the job that it
    explains count, times the share of the time in which it holds.

    Args:
        whole: all I/O.
        period: of all I/O, if it has one.
        directions: the periods of reads and of writes.
    """
    main = [one for one in directions if not one.period.is_minor]
    best = max(main, key=lambda one: _rank(one, whole), default=None)
    if best is None or period is None or period.is_minor:
        return best
    return None if _rank_of_whole(whole, period, main) >= _rank(best, whole) else best


def _rank(one: DirectionPeriod, whole: Signal) -> tuple[bool, float]:
    """How well the period of a direction explains all I/O of the job."""
    total, own = (float(signal.values.sum()) * signal.interval for signal in (whole, one.signal))
    bytes_share = (one.period.bytes_share or 0.0) * own / total if total > 0.0 else 0.0
    return one.period.certainty == "sure", bytes_share * (one.period.time_share or 0.0)


def _rank_of_whole(
    whole: Signal, period: Period, directions: Sequence[DirectionPeriod]
) -> tuple[bool, float]:
    """The same for all I/O; directions that share its period count, too."""
    same = [one for one in directions if one.period.is_near(period, tolerance=SAME_IN_DIRECTIONS)]
    own = (period.bytes_share or 0.0) * (period.time_share or 0.0)
    return period.certainty == "sure", max(own, sum(_rank(one, whole)[1] for one in same))


def answer_of_directions(
    signals: Mapping[str, Signal], options: Options
) -> tuple[str, Period | None, Signal]:
    """Return the direction, period and signal that answer for a job, as `ioprism period` does.

    Args:
        signals: of `both` directions, and of `read` and `write` where they are known.
        options: how to look for the period.
    """
    whole = signals["both"]
    period = only_periodic(detect(whole, options=options))
    directions = []
    for direction in DIRECTIONS:
        if direction in signals:
            try:
                own = only_periodic(
                    detect(signals[direction], options=options_of_direction(options))
                )
            except AnalysisError:
                continue
            if own is not None:
                directions.append(DirectionPeriod(direction, own, signals[direction]))
    best = best_direction(whole, period, directions)
    if best is not None:
        return best.direction, best.period, best.signal
    return "both", None if period is None or period.is_minor else period, whole
