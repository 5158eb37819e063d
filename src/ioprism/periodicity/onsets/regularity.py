"""How regular are phases, and how easily do processes without rhythm give as much?

Which process to compare with follows from the phases themselves:

- Phases at some distance: a renewal process, or crossings of noise. Gaps are not memoryless
  (a program computes for a while, a server recovers), so that moderately even ones are no
  evidence: a gamma law whose waits vary by half, and none for distances that vary by more than a
  quarter, or by so little less that distances which vary by 30 % may well look like that. The
  chance of bursts at random times is told beside it: it is how far phases speak for a loop in
  the program, however much its distances jitter. Where all are alike, gaps are exponential
  then; where they differ, they may also be crossings of noise. Distances that wander or grow
  steadily are a loop at best, however even they are.
- Pauses much shorter than the phases: a serial stream, one request after the other. Requests
  take about as long as each other and pauses are what the program needs between them; both
  must be even far beyond that.
- Hardly any pause: one long phase with hiccups, in which there is nothing to repeat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ioprism.model.arrays import median
from ioprism.model.signal import FloatArray
from ioprism.periodicity.chance import (
    CERTAIN,
    log_alike,
    log_ever_even,
    log_ever_wandering,
    log_regular,
)
from ioprism.periodicity.onsets import stretches
from ioprism.periodicity.onsets.counting import periods_between
from ioprism.periodicity.onsets.segments import Phases

BEYOND_DOUBT = math.log(1e-9)  # of all phases, so that parts need not be looked at
STEADY = 0.1  # variation of the distances up to which there is one rhythm, not two
WORTH_A_LOOK = math.log(0.2)
ROUNDING = math.sqrt(1 / 6)  # standard deviation of a difference of two rounded times
# Of the evidence sought: in all phases, in all if some are missing, in stretches of them.
WHOLE_WEIGHT, MISSING_WEIGHT, PART_WEIGHT = 0.9, 0.03, 0.07
MOST_MISSING = 1 / 3  # share of the distances that may be twice as long as the others
NEARLY_DOUBLE = 0.15  # relative difference from twice the usual distance
MATCH = 0.07  # phases are alike if their lengths differ by less than this share
CHANCE_OF_MATCH = 0.15  # at most, for lengths that vary by a third or more
ALIKE = math.log(0.01)
NO_PAUSE = 0.02  # share of the period below which pauses separate nothing
SHORT_PAUSE = 0.25  # share of the period below which the stream may be serial
EXPONENTIAL = 1.0  # shapes of gamma laws
CROSSINGS = 2.5  # times between the crossings of noise: most vary by two thirds
RENEWAL = 4.0  # gaps, and crossings of smooth noise: they vary by half or more
EVEN = 11.0  # distances of a loader's steps: they vary by 30 % or more
RARE = math.log(0.25)  # how seldom a process without a clock is that even, beside others
RARE_EVER = math.log(0.15)  # the same at any moment, of which the chance is told too high
SERVICE = 25.0  # how long equal requests take: it varies by a fifth or more
MOST_VARIATION = 0.3  # of the distances; gaps may be even where they are not
SURE_VARIATION = 0.25  # of the distances, beyond which processes without a clock are as even
NEVER = -math.inf  # log of probability 0
UNLIKELY = 1.645  # standard errors; unrelated distances are as alike once in twenty times
LONG_STEP = 0.1  # from one distance to the next, as a logarithm: more than a rhythm wobbles
DRIFT = 0.1  # from the first distance to the last, as a logarithm; slower ones are a rhythm


@dataclass(frozen=True, slots=True)
class Chances:
    """How often processes without rhythm are as regular: logarithms of probabilities."""

    gaps: float = CERTAIN  # of a renewal process, or a serial stream
    steps: float = NEVER  # of a loader's steps
    ever: float = NEVER  # of a loader's steps at any moment until now
    walk: float = NEVER  # of distances that wander, at any moment until now
    random: float = CERTAIN  # of bursts that no program times, see above

    @property
    def told(self) -> float:
        """The false-alarm probability where one looks once."""
        return max(self.gaps, self.steps)

    @property
    def least(self) -> float:
        """The lower one of what is told and of random bursts, by which rhythms are compared."""
        return min(self.told, self.random)

    def at_look(self, share: float) -> float:
        """The false-alarm probability over all looks, of which this one has a share."""
        return max(self.gaps - math.log(share), self.ever)

    @property
    def doubt(self) -> float:
        """The chance of processes that look like a period for long, at any moment until now."""
        return max(self.ever, self.walk)

    def at_price(self, price: float) -> Chances:
        """The same, found by as many questions as the logarithm of the price says."""
        every = (self.gaps, self.steps, self.ever, self.walk, self.random)
        return Chances(*(min(CERTAIN, chance + price) for chance in every))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive phases from ``first`` to ``last`` (included), and the chances of their rhythm."""

    first: int
    last: int
    chances: Chances = Chances()
    alike: bool = False  # whether all phases are as long as each other
    missing: bool = False  # whether some distances are of two periods

    def at_price(self, price: float) -> Stretch:
        """The same, found by as many questions as the logarithm of the price says."""
        return replace(self, chances=self.chances.at_price(price))


def most_regular(phases: Phases) -> Stretch:
    """The stretch of phases that chance explains worst: all of them, or a part."""
    whole = all_of_them(phases)
    distances = np.diff(phases.starts)
    if whole.chances.told <= BEYOND_DOUBT and distances.std() <= STEADY * distances.mean():
        return whole
    every = (whole, _with_missing(phases), _best_part(phases))
    return min(every, key=lambda stretch: stretch.chances.least)


def all_of_them(phases: Phases) -> Stretch:
    """All phases, as one of the stretches that may be asked for."""
    return _judged(phases, 0, len(phases) - 1).at_price(-math.log(WHOLE_WEIGHT))


def _judged(phases: Phases, first: int, last: int) -> Stretch:
    """The chance of a stretch under the process that fits its phases."""
    part = phases.part(first, last)
    pause_share = float(part.gaps.mean() / np.diff(part.starts).mean())
    alike = log_alike_lengths(part) < ALIKE
    if pause_share < NO_PAUSE:
        return Stretch(first, last)
    if pause_share < SHORT_PAUSE:
        return Stretch(first, last, Chances(_serial(part)), alike)
    distances = np.diff(part.starts)
    variation = float(distances.std() / distances.mean())
    if not alike and variation > MOST_VARIATION:
        return Stretch(first, last)
    # Where phases are not alike, either distances or gaps may be even.
    spacings = [part.gaps] if alike else [distances, part.gaps]
    gaps, random = (
        min(_log_chance(part, waits, shape) for waits in spacings) + math.log(len(spacings))
        for shape in (RENEWAL, EXPONENTIAL if alike else CROSSINGS)
    )
    if variation > SURE_VARIATION or _wanders(distances):
        return Stretch(first, last, Chances(random=random), alike)
    steps = RARE + _log_chance(part, distances, EVEN)
    error = ROUNDING * part.resolution
    ever = RARE_EVER + log_ever_even(distances, shape=EVEN, error=error)
    # It is asked only of what could be announced at all.
    worth = gaps <= WORTH_A_LOOK
    walk = log_ever_wandering(distances, error=error) if worth else CERTAIN
    return Stretch(first, last, Chances(gaps, steps, ever, walk, random), alike)


def may_wander(phases: Phases, *, level: float) -> bool:
    """Whether distances that wander look like these more often than a false-alarm level."""
    error = ROUNDING * phases.resolution
    return log_ever_wandering(np.diff(phases.starts), error=error) > math.log(level)


def _wanders(distances: FloatArray) -> bool:
    """Whether distances change for good, little by little: no period holds for all of them.

    Then each is more like the one before than like the others, which the ratio of von Neumann
    (1941) tells: the mean square of the steps by the variance, 2 where distances are unrelated.
    Steps that are small, and do not add up, are how a clock or a file system wobbles.
    """
    logs, count = np.log(distances), len(distances)
    steps, off = np.diff(logs), logs - logs.mean()
    step = float(steps @ steps) / max(1, len(steps))
    error = 2.0 * math.sqrt((count - 2) / (count**2 - 1)) if count > 2 else math.inf
    if step * (count - 1) >= (2.0 - UNLIKELY * error) * float(off @ off):
        return False
    numbers = np.arange(count) - (count - 1) / 2
    trend = abs(float(numbers @ off)) / float(numbers @ numbers) * (count - 1)
    return math.sqrt(step) > LONG_STEP or trend > DRIFT


def _serial(phases: Phases) -> float:
    """Against a serial stream: lengths and pauses must both be even."""
    lengths, gaps = (phases.ends - phases.starts)[:-1], phases.gaps
    return max(
        _log_chance(phases, lengths, SERVICE),
        _log_chance(phases, gaps, RENEWAL),
    )


def _log_chance(phases: Phases, waits: FloatArray, shape: float) -> float:
    """Chance that waits are as even as these, given that short ones are not seen.

    Gaps shorter than the shortest or than a sample join two phases into one, which makes any
    process look more even. Exponential gaps being memoryless, what is left of the longer ones
    is exponential again; of other laws it is at least not more even.
    """
    mean = float(waits.mean()) - phases.shortest_gap - phases.resolution
    if mean <= 0.0:
        return CERTAIN
    deviation = max(float(waits.std()), ROUNDING * phases.resolution)
    return log_regular(waits=len(waits), variation=deviation / mean, shape=shape)


def log_alike_lengths(phases: Phases) -> float:
    """Chance that unrelated phases are as alike in length."""
    matching = round(matching_share(phases) * len(phases))
    return log_alike(phases=len(phases), matching=matching, chance_of_match=CHANCE_OF_MATCH)


def matching_share(phases: Phases) -> float:
    """Share of the phases that are as long as the middle one; 0 if samples are too coarse."""
    lengths = phases.ends - phases.starts
    middle = median(lengths)
    if phases.resolution > MATCH * middle:
        return 0.0
    return float(np.mean(np.abs(lengths - middle) <= MATCH * middle))


def _with_missing(phases: Phases) -> Stretch:
    """All phases, where some distances are twice the usual one: a phase is missing there.

    Closed up, they are judged like others. Which distances are halved is a choice that is paid
    for, and so is that a distance halved may be off by twice as much.
    """
    distances = np.diff(phases.starts)
    periods = periods_between(distances)
    double, count = periods == 2.0, len(distances)
    missing = int(np.count_nonzero(double))
    off = np.abs(distances / (2.0 * median(distances)) - 1.0)[double]
    possible = 1 <= missing <= max(1.0, MOST_MISSING * count) and off.max() <= NEARLY_DOUBLE
    if not possible or (np.abs(periods - 1.5) > 0.5).any():
        return Stretch(0, count)
    starts = phases.starts[0] + np.concatenate(([0.0], np.cumsum(distances / periods)))
    closed = replace(phases, starts=starts, ends=starts + (phases.ends - phases.starts))
    price = math.log(math.comb(count, missing)) + missing * math.log(2.0)
    judged = replace(_judged(closed, 0, count), missing=True)
    return judged.at_price(price - math.log(MISSING_WEIGHT))


def _best_part(phases: Phases) -> Stretch:
    """The most regular stretch; every stretch looked at is a question that is paid for."""
    best, count = Stretch(0, len(phases.gaps)), len(phases.gaps)
    if count <= stretches.SHORTEST:
        return best
    price = stretches.log_questions(count) - math.log(PART_WEIGHT)
    spacings = (phases.gaps, np.diff(phases.starts))
    for first, size in stretches.steadiest(spacings, log_least=WORTH_A_LOOK - price):
        found = _judged(phases, first, first + size)
        best = min(best, found, key=lambda stretch: stretch.chances.least)
    return best.at_price(price)
