"""What does one look at a running job find, and is it worth announcing?"""

from __future__ import annotations

import math

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.detect import Options, accept_period, detect
from ioprism.periodicity.online.stream_buffers import MAX_EXACT_SAMPLES
from ioprism.periodicity.onsets.counting import MAD_TO_DEVIATION
from ioprism.periodicity.onsets.phase_starts import Train, describe, find_train, train_of_all
from ioprism.periodicity.onsets.regularity import may_wander
from ioprism.periodicity.onsets.scales import Segmentations, beats
from ioprism.periodicity.results import Period, only_periodic

AGREEMENT = 0.1  # answers closer than this share are the same period
MIN_SPECTRUM_SHARE = 0.3  # of the variance
DOUBT_SHARE = 0.1  # of the level, up to which a period is announced as one beyond doubt
GROWTH_STEPS = 4  # of a usual phase, by which the latest one grows until it says something new


def what_is_seen(parts: Segmentations) -> tuple[int, ...]:
    """How many phases there are, and how far the latest one has come: what a look depends on."""
    seen = []
    for phases in (parts.by_levels, parts.by_pauses, parts.of_job):
        if phases is None or not len(phases):
            seen += [0, 0]
            continue
        lengths = phases.ends - phases.starts
        grown = GROWTH_STEPS * float(lengths[-1]) / median(lengths)
        seen += [len(phases), min(GROWTH_STEPS, int(grown))]
    return tuple(seen)


def by_phases(
    signal: Signal, parts: Segmentations, *, level: float, known: Period | None = None
) -> Period | None:
    """The period of a signal's phases, if chance gives it no more often than the level.

    Args:
        signal: the signal.
        parts: its phases.
        level: the highest false-alarm probability, of all looks where no period is known.
        known: a period that may go on; if its phases say so, no other is sought.
    """
    train = None if known is None else _going_on(parts, known, level=level)
    train = train or find_train(signal, finest=parts.by_levels)
    if train is None:
        return None
    chances, share = train.chances, share_of_look(_look(parts, train))
    if (chances.at_look(share) if known is None else chances.single_look) > math.log(level):
        return None
    options = Options("phases", level, maybe=False, confirm=False)
    period = only_periodic(accept_period(signal, describe(signal, train), options))
    certain = chances.doubt <= math.log(DOUBT_SHARE * level)
    return period if period is None or certain else period.as_maybe()


def _look(parts: Segmentations, train: Train) -> int:
    """Which look at its phases this is, by the way of splitting that tells them.

    A burst of many requests is one phase by one way and many by another: each way has separate
    looks. Other scales come and go as the signal grows; theirs are those of the most phases.
    """
    return look_at(train.among if train.among in parts.counts else max(parts.counts))


def _going_on(parts: Segmentations, known: Period, *, level: float) -> Train | None:
    """The phases at the distances of a known period, if they show it by themselves."""
    phases = beats(parts, known)
    if phases is None or len(phases) < MIN_PHASES:
        return None
    train = train_of_all(phases)
    same = relative_difference(train.seconds, known.seconds) <= AGREEMENT
    return train if same and train.chances.single_look <= math.log(level) else None


def with_spectrum(signal: Signal, parts: Segmentations, *, level: float) -> Period | None:
    """The period of phases or of the spectrum, if chance gives it no more often than the level.

    Where phases are sharp and show no period, the spectrum must explain a good part of the signal:
    serial streams, and pairs of bursts at random times, have a line in it, too.
    """
    options = Options("auto", level, maybe=False, confirm=False)
    period = only_periodic(detect(signal, options=options))
    phases = parts.by_levels if len(signal.values) > MAX_EXACT_SAMPLES else None
    if period is None or period.method == "phases" or phases is None:
        return period
    if period.confidence < MIN_SPECTRUM_SHARE:
        return None
    wanders = len(phases) >= MIN_PHASES and may_wander(phases, level=DOUBT_SHARE * level)
    return period.as_maybe() if wanders else period


def phase_starts(parts: Segmentations, known: Period) -> FloatArray | None:
    """When phases begin, by the way of splitting whose distances are closest to the period's."""
    phases = beats(parts, known) or parts.by_levels
    return None if phases is None else phases.starts


def latest_distance(parts: Segmentations) -> float:
    """Seconds between the last two phases; a faster period asks for a closer look."""
    phases = parts.by_levels
    if phases is None or len(phases) < 2:
        return math.inf
    return float(phases.starts[-1] - phases.starts[-2])


def usual_distance(parts: Segmentations) -> float | None:
    """Seconds between phases so far, period or not; None until there are two."""
    phases = parts.by_levels or parts.of_job
    if phases is None or len(phases) < 2:
        return None
    return median(np.diff(phases.starts))


def silence(signal: Signal, period: Period) -> float:
    """How long ago the last phase was, in periods."""
    if not period.valid_ranges:
        return math.inf
    return (signal.end - period.valid_ranges[-1][1]) / period.seconds


def held_since(period: Period, now: float) -> float:
    """Since when a period holds, in seconds."""
    return period.valid_ranges[-1][0] if period.valid_ranges else now


MIN_PHASES = 4  # three periods; fewer are not announced
FIRST_SHARES = (0.3, 0.2, 0.2, 0.2)  # of the false-alarm level, for four to seven phases
PHASES_PER_LOOK = 1.25  # of the number of phases, until it is another look
NO_SHARE = 1e-12


def look_at(phases: int) -> int:
    """Return the number of the look that this many phases belong to; 0 if they are too few."""
    early = phases - MIN_PHASES + 1
    if early <= len(FIRST_SHARES):
        return max(0, early)
    growth = phases / (MIN_PHASES + len(FIRST_SHARES))
    return len(FIRST_SHARES) + 1 + math.floor(math.log(growth) / math.log(PHASES_PER_LOOK) + 1e-9)


def share_of_look(look: int) -> float:
    """The share of the false-alarm level that the k-th look may use; all looks make 1."""
    if look < 1:
        return NO_SHARE
    if look <= len(FIRST_SHARES):
        return FIRST_SHARES[look - 1]
    later = look - len(FIRST_SHARES)
    return (1.0 - sum(FIRST_SHARES)) / (later * (later + 1))


MIN_DISTANCES = 4  # to know what is usual, and two that are not
SPREAD_FLOOR = 0.05  # relative; jitter below this does not change the period
SCORE_SLACK = 0.5  # standard deviations, as usual for the sum of Page (1954)
MAX_DISTANCE_SCORE = 3.5  # standard deviations that one distance counts at most
ALARM_SCORE = 5.0  # standard deviations, as usual for Page (1954); one distance counts 3 at most


def change_point(starts: FloatArray) -> int | None:
    """Return the number of the phase that begins a new period, or None if there is none.

    Args:
        starts: when phases begin, ascending, in seconds.
    """
    distances = np.log(np.maximum(np.diff(starts), 1e-9))
    if len(distances) < MIN_DISTANCES:
        return None
    usual = distances[: max(2, len(distances) - 2)]
    centre = median(usual)
    spread = max(MAD_TO_DEVIATION * median(np.abs(usual - centre)), SPREAD_FLOOR)
    scores = np.clip(
        (distances - centre) / spread, -MAX_DISTANCE_SCORE, MAX_DISTANCE_SCORE
    ).tolist()
    places = [_alarm([sign * score for score in scores]) for sign in (1.0, -1.0)]
    alarms = [place for place in places if place is not None]
    return max(alarms) if alarms else None


def _alarm(scores: list[float]) -> int | None:
    """Where the sum that is above the threshold at the end began to rise."""
    total, began = 0.0, 0
    for place, score in enumerate(scores):
        total += score - SCORE_SLACK
        if total <= 0.0:
            total, began = 0.0, place + 1
    return began if total > ALARM_SCORE else None


def relative_difference(one: float, other: float) -> float:
    """How far two periods are apart, whichever is longer: 0 if equal, 1 for twice as long."""
    return math.expm1(abs(math.log(one / other)))
