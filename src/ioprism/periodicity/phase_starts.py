"""Do phases of I/O begin at regular distances, even if the distances jitter?

Phases are sought at several scales; the false-alarm probability counts every scale as a
question, the likely ones less. The confidence is one minus the coefficient of variation of the
distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.arrays import Signal
from ioprism.periodicity import limits
from ioprism.periodicity.chance import probability
from ioprism.periodicity.counting import Beat, count_beats, spread_of, whole_cycles
from ioprism.periodicity.regularity import (
    Chances,
    RegularStretch,
    all_of_them,
    matching_share,
    most_regular,
)
from ioprism.periodicity.results import Period
from ioprism.periodicity.segments import SignalPhases, distinct, find_scales
from ioprism.periodicity.spectrum import cosine_at


@dataclass(frozen=True, slots=True)
class Train:
    """The beats of a period, how they were found, and the chance of their regularity."""

    beats: tuple[Beat, ...]
    chances: Chances  # asking at several scales counted in
    alike: bool  # whether all phases are as long as each other
    matching: float  # share of the phases that are as long as the middle one
    resolution: float  # seconds, of starts and ends
    among: int  # phases that were looked at

    def at_weight(self, weight: float) -> Train:
        """The same, found by a question that is one of several."""
        return replace(self, chances=self.chances.at_price(-math.log(weight)))

    @property
    def repetitions(self) -> int:
        """Periods from the first to the last beat."""
        return sum(beat.periods for beat in self.beats[1:])

    @property
    def seconds(self) -> float:
        """The mean distance of two repetitions."""
        return (self.beats[-1].start - self.beats[0].start) / self.repetitions

    @property
    def variation(self) -> float:
        """Standard deviation of the distance of two repetitions, as a share of it."""
        return spread_of(self.beats, self.seconds) / self.seconds

    @property
    def span(self) -> float:
        """Seconds for which the period holds."""
        return self.beats[-1].end - self.beats[0].start


def find_period(signal: Signal) -> Period | None:
    """Return the mean distance of phase starts, or None with fewer than three phases."""
    train = find_train(signal)
    return None if train is None else describe(signal, train)


def find_train(signal: Signal, *, finest: SignalPhases | None = None) -> Train | None:
    """The beats of the period that holds longest among those that chance hardly explains.

    The finest phases are those by the signal's levels, if they are known already.
    """
    scales = find_scales(signal, finest=finest)
    first = next(scales, None)
    if first is None:
        return None
    whole = _train(first.phases, most_regular(first.phases))
    if _is_beyond_doubt(whole.at_weight(limits.FIRST_WEIGHT), signal):
        return whole.at_weight(limits.FIRST_WEIGHT)
    every = distinct([first, *scales])
    others = (scale.phases for scale in every[1:])
    trains = [whole, *(_train(phases, most_regular(phases)) for phases in others)]
    trains = [train.at_weight(scale.weight) for train, scale in zip(trains, every, strict=True)]
    clear = [train for train in trains if train.chances.least <= limits.MAX_CLEAR_LOG_CHANCE]
    if not clear:
        return _purest(min(trains, key=lambda train: train.chances.least), trains)
    longest = max(train.span for train in clear)
    covering = [train for train in clear if train.span >= limits.MIN_COMPARABLE * longest]
    return _purest(min(covering, key=lambda train: train.chances.least), trains)


def _purest(best: Train, trains: Sequence[Train]) -> Train:
    """The same period at the scale whose phases match best.

    A coarser scale may join a phase to the next one that comes too soon, a finer one may count
    a stray request as a phase: the period is seen at either, its period is that of the phases.
    Where distances are fairly even, a scale at which they vary more is not better.
    """
    similar = [
        train
        for train in trains
        if train.chances.least <= limits.MAX_SUGGESTIVE_LOG_CHANCE
        and limits.MOST <= len(train.beats) / len(best.beats) <= 1.0 / limits.MOST
        and train.matching > best.matching + limits.SAME
        and (train.variation <= best.variation or best.variation > limits.QUARTER)
    ]
    purest = max(similar, key=lambda train: train.matching, default=best)
    return replace(purest, chances=best.chances)


def _sharpen_starts(signal: Signal, train: Train) -> Train:
    """The train with its starts as sharp as the samples are, where it was seen in coarser ones.

    Within a coarse sample to either side, a phase begins where the signal first rises above a
    fair share of the highest there.
    """
    if train.resolution <= signal.interval:
        return train
    reach = max(1, round(train.resolution / signal.interval))
    beats = []
    for beat in train.beats:
        middle = round((beat.start - signal.start) / signal.interval)
        low = max(0, middle - reach)
        around = signal.values[low : middle + 2 * reach]
        highest, start = float(around.max(initial=0.0)), beat.start
        if highest > 0.0:
            first = low + int(np.argmax(around >= limits.MINOR * highest))
            start = signal.start + signal.interval * first
        beats.append(replace(beat, start=start))
    return replace(train, beats=tuple(beats), resolution=signal.interval)


def describe(signal: Signal, train: Train) -> Period:
    """Say all about a train of beats."""
    train = _sharpen_starts(signal, train)
    train = replace(train, beats=whole_cycles(train.beats, resolution=train.resolution))
    seconds, beats = train.seconds, train.beats
    spread = spread_of(beats, seconds)
    amplitude, phase = cosine_at(signal, 1.0 / seconds)
    return Period(
        seconds=seconds,
        frequency=1.0 / seconds,
        confidence=max(0.0, 1.0 - spread / seconds),
        false_alarm_probability=probability(train.chances.single_look),
        valid_ranges=((beats[0].start, beats[-1].end),),
        amplitude=amplitude,
        phase=phase,
        spread=spread,
        method="phases",
        repetitions=train.repetitions,
        alike=train.alike,
        chance_of_random_bursts=probability(train.chances.random),
        phases=tuple((beat.start, beat.end) for beat in beats),
    )


def _is_beyond_doubt(train: Train, signal: Signal) -> bool:
    """Whether no other scale needs to be looked at."""
    alike = (
        train.matching >= limits.MOST
        or train.chances.single_look <= 2.0 * limits.NEGLIGIBLE_LOG_CHANCE
    )
    lasting = train.span >= limits.MOST * (signal.end - signal.start)
    return train.chances.single_look <= limits.NEGLIGIBLE_LOG_CHANCE and alike and lasting


def train_of_all(phases: SignalPhases) -> Train:
    """All of these phases as one period, at the price of the scale that is looked at first."""
    return _train(phases, all_of_them(phases)).at_weight(limits.FIRST_WEIGHT)


def _train(phases: SignalPhases, stretch: RegularStretch) -> Train:
    beats = count_beats(phases, first=stretch.first, last=stretch.last, missing=stretch.missing)
    return Train(
        tuple(beats),
        stretch.chances,
        stretch.alike,
        matching_share(phases),
        phases.resolution,
        len(phases),
    )
