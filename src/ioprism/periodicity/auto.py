"""Which method has the best evidence for a rhythm?

Phase starts are asked first and, if they leave a doubt, the spectrum; the answer that chance
explains worst is taken. Asking two questions is paid for: the probabilities are divided by the
weights below, which sum to one.
"""

from __future__ import annotations

from dataclasses import replace

from ioprism.model.signal import Signal
from ioprism.periodicity.onsets import phase_starts
from ioprism.periodicity.onsets.regularity import SHORT_PAUSE
from ioprism.periodicity.onsets.scales import averaged
from ioprism.periodicity.results import Period
from ioprism.periodicity.spectral import harmonic

PHASES_WEIGHT = 0.8
BEYOND_DOUBT = 1e-5  # no need to look at the spectrum
MIN_SHARE = 0.15  # of the variance; bursts that come in pairs at random times give less
MIN_COVERED = 0.4  # share of the periods; bursts at few multiples of a time are no rhythm
PARTS_OF_PERIOD = 16
CONFIRMED = 20.0  # what a clear line in the spectrum is worth for phases that agree with it
AGREEMENT = 0.05  # of the period
STEADY = 0.15  # relative spread of the distances of phases that show a rhythm by themselves
MOSTLY = 0.7  # share of the time that the spectrum's rhythm holds
SUGGESTIVE = 0.2  # phases less likely by chance tell which frequencies matter
SAMPLES_PER_PERIOD = 256  # that the spectrum needs to judge a period that phases suggest
FEWEST_SAMPLES = 4096


def find_period(signal: Signal) -> Period | None:
    """Return the better of the answers from phase starts and from the harmonic spectrum."""
    by_phases = phase_starts.find_period(signal)
    if by_phases is not None and by_phases.false_alarm_probability <= BEYOND_DOUBT:
        return _weighted(by_phases, PHASES_WEIGHT)
    by_spectrum = _clear_period(_for_spectrum(signal, by_phases))
    if by_phases is None or by_spectrum is None:
        return by_phases or by_spectrum
    by_phases = _weighted(by_phases, PHASES_WEIGHT)
    by_spectrum = _weighted(by_spectrum, 1.0 - PHASES_WEIGHT)
    if not _agree(by_phases, by_spectrum):
        return min(by_phases, by_spectrum, key=_least_chance)
    return _confirmed(by_phases, by_spectrum)


def _confirmed(by_phases: Period, by_spectrum: Period) -> Period:
    """One answer where phases and spectrum agree.

    A serial stream, one request after the other, has a peak in its spectrum, too: what its
    phases say counts, and a clear line confirms it. Otherwise steady phases, which have edges,
    say best where the rhythm begins and ends, and the better evidence says how sure it is.
    """
    chance = by_spectrum.false_alarm_probability
    busy = sum(end - start for start, end in by_phases.phases) / len(by_phases.phases)
    if busy > (1.0 - SHORT_PAUSE) * by_phases.seconds and by_phases.alike:
        return _weighted(by_phases, CONFIRMED) if chance <= BEYOND_DOUBT else by_phases
    steady = by_phases.spread <= STEADY * by_phases.seconds
    if not steady or _held(by_phases) < MOSTLY * _held(by_spectrum):
        return min(by_phases, by_spectrum, key=_least_chance)
    least = min(chance, by_phases.false_alarm_probability)
    return replace(by_phases, false_alarm_probability=least)


def _held(period: Period) -> float:
    """Seconds for which a period holds."""
    return sum(end - start for start, end in period.valid_ranges)


def _for_spectrum(signal: Signal, suggested: Period | None) -> Signal:
    """The signal, as coarse as the spectrum may see it where phases suggest a period.

    The spectrum is what costs most; a period and its multiples need no finer samples.
    """
    if suggested is None or _least_chance(suggested) > SUGGESTIVE:
        return signal
    per_period = suggested.seconds / signal.interval
    block = min(per_period / SAMPLES_PER_PERIOD, len(signal.values) / FEWEST_SAMPLES)
    return averaged(signal, max(1, int(block)))


def _least_chance(period: Period) -> float:
    """The lower of both chances: equal phases speak for a loop in the program."""
    return min(period.false_alarm_probability, period.chance_of_random_bursts)


def _clear_period(signal: Signal) -> Period | None:
    """The period of the spectrum, unless it explains next to nothing of the signal.

    What is much shorter than the period, such as single requests at random times, has no say in
    that: the share is that of means over a part of the period.
    """
    found = harmonic.find_period(signal)
    if found is None or not _is_covered(signal, found):
        return None
    if found.confidence >= MIN_SHARE:
        return found
    block = int(found.seconds / signal.interval / PARTS_OF_PERIOD)
    if block < 2 or found.false_alarm_probability > SUGGESTIVE:
        return None
    coarse = harmonic.find_period(averaged(signal, block))
    if coarse is None or coarse.confidence < MIN_SHARE or not _agree(coarse, found):
        return None
    chance = min(coarse.false_alarm_probability, found.false_alarm_probability)
    return replace(coarse, false_alarm_probability=min(1.0, 2.0 * chance))


def _is_covered(signal: Signal, period: Period) -> bool:
    """Whether a fair share of the periods carries the signal: bursts at most ticks of a clock."""
    periods = (signal.end - signal.start) / period.seconds
    return harmonic.carrying_periods(signal, period.seconds) >= MIN_COVERED * periods


def _agree(one: Period, other: Period) -> bool:
    return abs(one.seconds - other.seconds) <= AGREEMENT * one.seconds


def _weighted(period: Period, weight: float) -> Period:
    probability = min(1.0, period.false_alarm_probability / weight)
    return replace(period, false_alarm_probability=probability)
