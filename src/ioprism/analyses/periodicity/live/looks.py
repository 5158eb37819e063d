"""What does one look at a running job find, and is it worth taking?"""

from __future__ import annotations

import math

from ioprism.analyses.periodicity.detect import Options, accepted, detect
from ioprism.analyses.periodicity.onsets.beats import Segments, beats
from ioprism.analyses.periodicity.onsets.phase_starts import describe, find_train, sharpened
from ioprism.analyses.periodicity.results import Period
from ioprism.analyses.quantiles import median
from ioprism.model.signal import FloatArray, Signal

MIN_PHASES = 4  # three periods; fewer are not announced
QUARTERS = 4  # of a usual phase, by which the latest one grows until it says something new


def number_of_look(parts: Segments) -> int:
    """Which look this is: phases say something new with each one more."""
    return parts.count - MIN_PHASES + 1


def what_is_seen(parts: Segments) -> tuple[int, ...]:
    """How many phases there are, and how far the latest one has come: what a look depends on."""
    seen = []
    for phases in (parts.by_levels, parts.by_pauses):
        if phases is None or not len(phases):
            seen += [0, 0]
            continue
        lengths = phases.ends - phases.starts
        grown = QUARTERS * float(lengths[-1]) / median(lengths)
        seen += [len(phases), min(QUARTERS, int(grown))]
    return tuple(seen)


def by_phases(signal: Signal, parts: Segments, *, level: float) -> Period | None:
    """The rhythm of a signal's phases, if chance gives it no more often than the level."""
    train = find_train(signal, finest=parts.by_levels)
    if train is None or train.log_chance > math.log(level):
        return None
    found = describe(signal, sharpened(signal, train))
    return accepted(signal, found, Options("phases", level, maybe=False, confirm=False))


def by_spectrum(signal: Signal, *, level: float) -> Period | None:
    """The rhythm of a signal's spectrum, if chance gives it no more often than the level."""
    return detect(signal, options=Options("harmonic", level, maybe=False, confirm=False))


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


def silence(signal: Signal, period: Period) -> float:
    """How many periods ago the rhythm was last seen."""
    if not period.valid_ranges:
        return math.inf
    return (signal.end - period.valid_ranges[-1][1]) / period.seconds


def held_since(period: Period, now: float) -> float:
    """Since when a rhythm holds, in seconds."""
    return period.valid_ranges[-1][0] if period.valid_ranges else now
