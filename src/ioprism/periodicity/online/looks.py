"""What does one look at a running job find, and is it worth taking?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.detect import UNSURE, Options, accepted, detect
from ioprism.periodicity.online.change import relative_difference
from ioprism.periodicity.online.ring import FEW_SAMPLES
from ioprism.periodicity.online.spending import MIN_PHASES, look_at, share_of_look
from ioprism.periodicity.onsets.beats import Segments, beats
from ioprism.periodicity.onsets.phase_starts import (
    Train,
    describe,
    find_train,
    train_of_all,
)
from ioprism.periodicity.onsets.regularity import may_wander
from ioprism.periodicity.results import Period

AGREEMENT = 0.1  # answers closer than this share are the same rhythm
CLEAR_SHARE = 0.3  # of the variance
DOUBT_SHARE = 0.1  # of the level, up to which a period is announced as one beyond doubt
QUARTERS = 4  # of a usual phase, by which the latest one grows until it says something new


def what_is_seen(parts: Segments) -> tuple[int, ...]:
    """How many phases there are, and how far the latest one has come: what a look depends on."""
    seen = []
    for phases in (parts.by_levels, parts.by_pauses, parts.of_job):
        if phases is None or not len(phases):
            seen += [0, 0]
            continue
        lengths = phases.ends - phases.starts
        grown = QUARTERS * float(lengths[-1]) / median(lengths)
        seen += [len(phases), min(QUARTERS, int(grown))]
    return tuple(seen)


def by_phases(
    signal: Signal, parts: Segments, *, level: float, known: Period | None = None
) -> Period | None:
    """The rhythm of a signal's phases, if chance gives it no more often than the level.

    Args:
        signal: the signal.
        parts: its phases.
        level: the highest false-alarm probability, of all looks where no rhythm is known.
        known: a rhythm that may go on; if its phases say so, no other is sought.
    """
    train = None if known is None else _going_on(parts, known, level=level)
    train = train or find_train(signal, finest=parts.by_levels)
    if train is None:
        return None
    chances, share = train.chances, share_of_look(_look(parts, train))
    if (chances.at_look(share) if known is None else chances.told) > math.log(level):
        return None
    found = describe(signal, train)
    taken = _periodic(accepted(signal, found, Options("phases", level, maybe=False, confirm=False)))
    return taken if chances.doubt <= math.log(DOUBT_SHARE * level) else _possible(taken)


def _possible(found: Period | None) -> Period | None:
    """The same as a possibility: distances that wander would look like this often enough."""
    if found is None:
        return None
    return replace(found, certainty="maybe", confidence=min(found.confidence, UNSURE))


def _periodic(found: Period | None) -> Period | None:
    """The period, unless its phases come at random slots: they tell nothing of the next one."""
    return None if found is None or found.pattern == "slotted" else found


def _look(parts: Segments, train: Train) -> int:
    """Which look at its phases this is, by the way of splitting that tells them.

    A burst of many requests is one phase by one way and many by another: each way has looks of
    its own. Other scales come and go as the signal grows; theirs are those of the most phases.
    """
    return look_at(train.among if train.among in parts.counts else max(parts.counts))


def _going_on(parts: Segments, known: Period, *, level: float) -> Train | None:
    """The phases at the distances of a known rhythm, if they show it by themselves."""
    phases = beats(parts, known)
    if phases is None or len(phases) < MIN_PHASES:
        return None
    train = train_of_all(phases)
    same = relative_difference(train.seconds, known.seconds) <= AGREEMENT
    return train if same and train.chances.told <= math.log(level) else None


def with_spectrum(signal: Signal, parts: Segments, *, level: float) -> Period | None:
    """The rhythm of phases or of the spectrum, if chance gives it no more often than the level.

    Where phases are sharp and show no rhythm, the spectrum must explain a good part of the signal:
    serial streams, and pairs of bursts at random times, have a line in it, too.
    """
    found = _periodic(detect(signal, options=Options("auto", level, maybe=False, confirm=False)))
    phases = parts.by_levels if len(signal.values) > FEW_SAMPLES else None
    if found is None or found.method == "phases" or phases is None:
        return found
    if found.confidence < CLEAR_SHARE:
        return None
    wanders = len(phases) >= MIN_PHASES and may_wander(phases, level=DOUBT_SHARE * level)
    return _possible(found) if wanders else found


def phase_starts(parts: Segments, known: Period) -> FloatArray | None:
    """When phases begin, by the way of splitting whose distances are closest to the rhythm's."""
    found = beats(parts, known) or parts.by_levels
    return None if found is None else found.starts


def latest_distance(parts: Segments) -> float:
    """Seconds between the last two phases; a faster rhythm asks for a closer look."""
    phases = parts.by_levels
    if phases is None or len(phases) < 2:
        return math.inf
    return float(phases.starts[-1] - phases.starts[-2])


def usual_distance(parts: Segments) -> float | None:
    """Seconds between phases so far, period or not; None until there are two."""
    phases = parts.by_levels or parts.of_job
    if phases is None or len(phases) < 2:
        return None
    return median(np.diff(phases.starts))


def silence(signal: Signal, period: Period) -> float:
    """How many periods ago the rhythm was last seen."""
    if not period.valid_ranges:
        return math.inf
    return (signal.end - period.valid_ranges[-1][1]) / period.seconds


def held_since(period: Period, now: float) -> float:
    """Since when a rhythm holds, in seconds."""
    return period.valid_ranges[-1][0] if period.valid_ranges else now
