"""All about the periodicity of one signal: its periods, its typical phase, the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.errors import SignalTooShortError
from ioprism.model.arrays import Signal, median
from ioprism.periodicity import dft
from ioprism.periodicity.describe import (
    DEFAULT_WAVES,
    describe_burst,
    fit_waves,
    predict_next_phase,
)
from ioprism.periodicity.describe import components as strongest_components
from ioprism.periodicity.detect import DEFAULTS, Options, detect, with_shares
from ioprism.periodicity.limits import MINOR, SAME, SAME_PERIOD
from ioprism.periodicity.results import NamedPeriod, Period, Periodicity, only_periodic
from ioprism.periodicity.sampling import MIN_SAMPLES, is_coarse
from ioprism.periodicity.segments import average_blocks
from ioprism.periodicity.spectrum import cosine_at
from ioprism.views.bandwidth import DIRECTIONS

LOOKS = 3  # before, after, and at the same time
MAX_LOOK_SAMPLES = 2**14  # more are averaged


def signal_periodicity(
    signal: Signal, *, options: Options = DEFAULTS, components: int = 0, fit: bool = False
) -> Periodicity:
    """Find the periods of a signal and describe the dominant one."""
    return describe_periodicity(
        signal, detect(signal, options=options), options=options, components=components, fit=fit
    )


def describe_periodicity(
    signal: Signal,
    dominant: Period | None,
    *,
    options: Options = DEFAULTS,
    components: int = 0,
    fit: bool = False,
    direction: str = "both",
) -> Periodicity:
    """Describe the dominant period of a signal, and find its other ones.

    Args:
        signal: the signal.
        dominant: its dominant period, if it has one.
        options: how to look for others.
        components: how many cosine waves to describe the signal by; 0 for none.
        fit: whether to fit them by least squares (ten if ``components`` is 0).
        direction: read, write or both: what the signal is.
    """
    slotted = dominant if dominant is not None and dominant.pattern == "slotted" else None
    dominant = None if slotted is not None else dominant
    periods = [] if dominant is None else [dominant]
    if dominant is not None and not is_coarse(signal):
        periods += _other_periods(signal, dominant, options)
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
    return [with_shares(signal, period) for period in periods[1:]]


def _looks(signal: Signal, dominant: Period) -> Iterator[Signal]:
    first, last = dominant.valid_ranges[0][0], dominant.valid_ranges[-1][1]
    shortest = MINOR * (signal.end - signal.start)
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
    margin = SAME * period.seconds
    edges = np.stack((starts - margin, ends + margin), axis=1)
    places = np.clip(
        np.rint((edges - signal.start) / signal.interval).astype(np.int64), 0, len(signal.values)
    )
    values = signal.values.copy()
    for low, high in places.tolist():
        values[low:high] = 0.0
    return Signal(signal.start, signal.interval, values)


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
    """The period of all I/O or of one direction, if it has one, and the signal."""

    direction: str  # read, write or both
    signal: Signal
    period: Period | None
    takes_turns: bool = False  # reads and writes alternate
    others: tuple[NamedPeriod, ...] = ()  # periods of other directions


Confirm = Callable[[Signal, Period], Period | None]


def answer_of_directions(
    signals: Mapping[str, Signal], options: Options, *, confirm: Confirm | None = None
) -> DirectionPeriod:
    """Return the period that answers for a job: of all I/O, of reads or of writes.

    A certain period comes before a possible one; among those the bytes of the job that it
    explains count, times the share of the time in which it holds.

    Args:
        signals: of `both` directions, and of `read` and `write` where they are known; or of one.
        options: how to look for the period.
        confirm: asked for every period; None drops it.

    Raises:
        SignalTooShortError: there is too little I/O for a period.
    """
    names = [name for name in DIRECTIONS if name in signals]
    if len(names) == 1 or "both" not in signals:
        return DirectionPeriod(
            names[0], signals[names[0]], _detect(signals[names[0]], options, confirm)
        )
    whole = signals["both"]
    both = DirectionPeriod("both", whole, _detect(whole, options, confirm))
    # Each direction is one more test (Bonferroni).
    strict = replace(
        options, max_false_alarm=options.max_false_alarm / len(DIRECTIONS), maybe=False
    )
    directions = []
    for name in names:
        try:
            period = only_periodic(_detect(signals[name], strict, confirm))
        except SignalTooShortError:
            continue
        if period is not None:
            directions.append(DirectionPeriod(name, signals[name], period))
    main = [one for one in directions if one.period is not None and not one.period.is_minor]
    of_all = only_periodic(both.period)
    turns = (
        of_all is not None
        and len(directions) == len(DIRECTIONS)
        and all(
            one.period is not None and abs(2.0 * of_all.seconds / one.period.seconds - 1.0) <= SAME
            for one in directions
        )
    )
    best = max(main, key=lambda one: _rank(one, whole), default=both)
    if turns or (
        of_all is not None
        and not of_all.is_minor
        and _rank_of_whole(both, main) >= _rank(best, whole)
    ):
        best = both
    others = [
        NamedPeriod(one.period, one.direction)
        for one in (both, *directions)
        if one is not best and one.period is not None and one.period.pattern == "periodic"
    ]
    if best.period is not None and best.period.certainty == "sure":
        # What is only possible says nothing beside it.
        others = [one for one in others if one.period.certainty == "sure"]
    return replace(best, takes_turns=turns, others=tuple(others))


def main_period(answer: DirectionPeriod) -> Period | None:
    """The period that answers for a job; slots and details do not."""
    period = only_periodic(answer.period)
    if period is None or period.is_minor:
        return None
    return every_second_phase(answer.signal, period) if answer.takes_turns else period


def _detect(signal: Signal, options: Options, confirm: Confirm | None) -> Period | None:
    period = detect(signal, options=options)
    if period is None or confirm is None or period.pattern == "slotted":
        return period
    return confirm(signal, period)


def _rank(one: DirectionPeriod, whole: Signal) -> tuple[bool, float]:
    """How well the period of a direction explains all I/O of the job."""
    if one.period is None:
        return False, 0.0
    total, own = (float(signal.values.sum()) * signal.interval for signal in (whole, one.signal))
    bytes_share = (one.period.bytes_share or 0.0) * own / total if total > 0.0 else 0.0
    return one.period.certainty == "sure", bytes_share * (one.period.time_share or 0.0)


def _rank_of_whole(
    both: DirectionPeriod, directions: Sequence[DirectionPeriod]
) -> tuple[bool, float]:
    """The same for all I/O; directions that share its period count, too."""
    same = [
        _rank(one, both.signal)[1]
        for one in directions
        if both.period is not None
        and one.period is not None
        and one.period.is_near(both.period, tolerance=SAME)
    ]
    sure, own = _rank(both, both.signal)
    return sure, max(own, sum(same))
