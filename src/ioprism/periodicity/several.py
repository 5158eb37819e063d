"""Which rhythms does a signal have besides the dominant one?

Others may hold before or after it, or at the same time. Outside its ranges the signal is looked
at as it is; inside them what belongs to the dominant rhythm is taken out first. Every look is
allowed only its share of the false-alarm probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import Signal
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.onsets.scales import averaged
from ioprism.periodicity.results import Period
from ioprism.periodicity.sampling import MIN_SAMPLES

MOST_RHYTHMS = 4
LEAST_SHARE = 0.1  # of the signal's time that another rhythm may hold in
ALIKE = 0.1  # periods closer than this share are the same rhythm
LOOKS = 3  # before, after, and at the same time
MOST_SAMPLES = 2**14  # of a look; more are averaged
MARGIN = 0.05  # of the period, around a phase that is taken out


def other_periods(signal: Signal, dominant: Period, *, options: Options) -> tuple[Period, ...]:
    """The other rhythms of a signal, in the order in which they are found."""
    strict = replace(
        options, max_false_alarm=options.max_false_alarm / LOOKS, maybe=False, method="phases"
    )
    found = [dominant]
    for look in _looks(signal, dominant):
        other = detect(averaged(look, -(-len(look.values) // MOST_SAMPLES)), options=strict)
        if other is not None and not any(_same(other, known) for known in found):
            found.append(other)
    return tuple(found[1:MOST_RHYTHMS])


def _looks(signal: Signal, dominant: Period) -> Iterator[Signal]:
    first, last = dominant.valid_ranges[0][0], dominant.valid_ranges[-1][1]
    least = LEAST_SHARE * (signal.end - signal.start)
    for low, high in ((signal.start, first), (last, signal.end)):
        part = cropped(signal, low, high)
        if high - low >= least and len(part.values) >= MIN_SAMPLES:
            yield part
    if dominant.phases:
        yield without_phases(signal, dominant)


def cropped(signal: Signal, low: float, high: float) -> Signal:
    """The samples that lie within a stretch of time."""
    first = max(0, round((low - signal.start) / signal.interval))
    last = max(first, round((high - signal.start) / signal.interval))
    return Signal(
        signal.start + first * signal.interval, signal.interval, signal.values[first:last]
    )


def without_phases(signal: Signal, period: Period) -> Signal:
    """The signal with the phases of a rhythm taken out."""
    starts, ends = np.array(period.phases).T
    # A phase that is longer than usual ran into one of another rhythm: that part stays.
    ends = np.minimum(ends, starts + median(ends - starts))
    margin = MARGIN * period.seconds
    edges = np.stack((starts - margin, ends + margin), axis=1)
    places = np.clip(
        np.rint((edges - signal.start) / signal.interval).astype(np.int64), 0, len(signal.values)
    )
    change = np.zeros(len(signal.values) + 1, dtype=np.int64)
    np.add.at(change, places[:, 0], 1)
    np.add.at(change, places[:, 1], -1)
    values = np.where(np.cumsum(change)[:-1] > 0, 0.0, signal.values)
    return Signal(signal.start, signal.interval, values)


def _same(one: Period, other: Period) -> bool:
    return abs(one.seconds / other.seconds - 1.0) <= ALIKE
