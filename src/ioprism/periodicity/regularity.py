"""How regular are phases, and how often are processes without a period as regular?

Which process to compare with follows from the phases:

- Phases at some distance: a renewal process, or crossings of noise. Gaps are not memoryless
  (a program computes for a while, a server recovers), so moderately even ones are not evidence:
  they are compared with a gamma law whose waits vary by half. Distances that vary by more than a
  quarter are never evidence, nor are those that a process which varies by 30 % often gives.
  The chance of bursts at random times is kept as a second number: it shows a loop in the program,
  however much its distances jitter. If all phases match, gaps are exponential then; if they
  differ, they may also be crossings of noise. Distances that wander or grow steadily show a loop
  at best, however even they are.
- Pauses much shorter than the phases: a serial stream, one request after the other. Requests
  take about equally long and pauses are what the program needs between them; both must be far
  more even than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ioprism.model.arrays import FloatArray, median
from ioprism.periodicity import limits
from ioprism.periodicity.chance import (
    CERTAIN,
    log_alike,
    log_ever_even,
    log_ever_wandering,
    log_regular,
)
from ioprism.periodicity.counting import periods_between
from ioprism.periodicity.segments import SignalPhases

ROUNDING = math.sqrt(1 / 6)  # standard deviation of a difference of two rounded times
NEVER = -math.inf  # log of probability 0


@dataclass(frozen=True, slots=True)
class Chances:
    """How often processes without a period are as regular: logarithms of probabilities."""

    gaps: float = CERTAIN  # of a renewal process, or a serial stream
    steps: float = NEVER  # of a loader's steps
    ever: float = NEVER  # of a loader's steps at any moment until now
    walk: float = NEVER  # of distances that wander, at any moment until now
    random: float = CERTAIN  # of bursts that no program times, see above

    @property
    def single_look(self) -> float:
        """The false-alarm probability of a single look."""
        return max(self.gaps, self.steps)

    @property
    def least(self) -> float:
        """The lower of that and of random bursts, by which periods are compared."""
        return min(self.single_look, self.random)

    def at_look(self, share: float) -> float:
        """The false-alarm probability over all looks, of which this one has a share."""
        return max(self.gaps - math.log(share), self.ever)

    @property
    def doubt(self) -> float:
        """The chance of processes that look like a period for long, at any moment until now."""
        return max(self.ever, self.walk)

    def at_price(self, price: float) -> Chances:
        """The same as one of many tests (Bonferroni); the price is the log of their number."""
        every = (self.gaps, self.steps, self.ever, self.walk, self.random)
        return Chances(*(min(CERTAIN, chance + price) for chance in every))


@dataclass(frozen=True, slots=True)
class RegularStretch:
    """Consecutive phases from ``first`` to ``last`` (included), and the chances of their period."""

    first: int
    last: int
    chances: Chances = Chances()
    alike: bool = False  # whether all phases are equally long
    missing: bool = False  # whether some distances are of two periods

    def at_price(self, price: float) -> RegularStretch:
        """The same as one of many tests (Bonferroni); the price is the log of their number."""
        return replace(self, chances=self.chances.at_price(price))


def most_regular(phases: SignalPhases) -> RegularStretch:
    """The stretch of phases that chance explains worst: all of them, or a part."""
    whole = all_of_them(phases)
    distances = np.diff(phases.starts)
    if (
        whole.chances.single_look <= limits.NEGLIGIBLE_LOG_CHANCE
        and distances.std() <= limits.SAME_PERIOD * distances.mean()
    ):
        return whole
    if len(distances) > limits.MIN_STRETCH:
        rise, share = _trend(np.log(distances))
        # Growing or shrinking from the first to the last; a change of period is a step.
        if abs(rise) > limits.SAME_PERIOD and share >= limits.NEARLY_ALL:
            return whole  # every part of it is even for a while
    every = (whole, _with_missing(phases), _best_part(phases))
    # A period in a part of the phases comes before a loop of all of them.
    clear = [one for one in every if one.chances.single_look <= limits.MAX_CLEAR_LOG_CHANCE]
    return min(clear or every, key=lambda stretch: stretch.chances.least)


def all_of_them(phases: SignalPhases) -> RegularStretch:
    """All phases, as one of the stretches that may be asked for."""
    return _judge(phases, 0, len(phases) - 1).at_price(-math.log(limits.WHOLE_WEIGHT))


def _judge(
    phases: SignalPhases, first: int, last: int, *, below: float = CERTAIN
) -> RegularStretch:
    """The chance of a stretch, both ends included, under the process that fits its phases.

    If the chance of a single look is above the logarithm `below`, no other is computed.
    """
    part = phases.part(slice(first, last + 1))
    distances, waits = np.diff(part.starts), part.gaps
    mean = float(distances.mean())
    pause_share = float(waits.mean()) / mean
    matching = round(matching_share(part) * len(part))
    by_chance = log_alike(
        phases=len(part), matching=matching, chance_of_match=limits.CHANCE_OF_MATCH
    )
    alike = by_chance < limits.MAX_CLEAR_LOG_CHANCE
    if pause_share < limits.QUARTER:
        # Of a serial stream, lengths and pauses must both be even.
        lengths = (part.ends - part.starts)[:-1]
        serial = max(
            _log_chance(part, lengths, limits.SERVICE_SHAPE),
            _log_chance(part, waits, limits.RENEWAL_SHAPE),
        )
        return RegularStretch(first, last, Chances(serial), alike)
    variation = float(distances.std()) / mean
    if not alike and variation > limits.MAX_VARIATION:
        return RegularStretch(first, last)
    # If phases differ in length, either distances or gaps may be even.
    spacings = [waits] if alike else [distances, waits]

    def spaced(shape: float) -> float:
        return min(_log_chance(part, each, shape) for each in spacings) + math.log(len(spacings))

    gaps = spaced(limits.RENEWAL_SHAPE)
    if gaps > below or (variation > limits.QUARTER and below < CERTAIN):
        return RegularStretch(first, last, alike=alike)
    if _wanders(distances, standard_errors=limits.CLEAR_STANDARD_ERRORS):
        return RegularStretch(first, last, alike=alike)
    random = spaced(limits.EXPONENTIAL_SHAPE if alike else limits.CROSSINGS_SHAPE)
    if variation > limits.QUARTER or _wanders(distances):
        return RegularStretch(first, last, Chances(random=random), alike)
    steps = limits.STEPS_LOG_PRIOR + _log_chance(part, distances, limits.STEPS_SHAPE)
    if steps > below:
        return RegularStretch(first, last, alike=alike)
    error = ROUNDING * part.resolution
    ever = limits.STEPS_EVER_LOG_PRIOR + log_ever_even(
        distances, shape=limits.STEPS_SHAPE, error=error
    )
    # Computed only for what could be announced.
    worth = gaps <= limits.MAX_SUGGESTIVE_LOG_CHANCE
    walk = log_ever_wandering(distances, error=error) if worth else CERTAIN
    return RegularStretch(first, last, Chances(gaps, steps, ever, walk, random), alike)


def may_wander(phases: SignalPhases, *, level: float) -> bool:
    """Whether distances that wander look like these more often than a false-alarm level."""
    error = ROUNDING * phases.resolution
    return log_ever_wandering(np.diff(phases.starts), error=error) > math.log(level)


def _wanders(
    distances: FloatArray, *, standard_errors: float = limits.TREND_STANDARD_ERRORS
) -> bool:
    """Whether distances change for good, little by little: no period holds for all of them.

    Then each is more like the one before than like the others, which the ratio of von Neumann
    (1941) tells: the mean square of the steps by the variance, 2 where distances are unrelated.
    Steps that are small, and do not add up, are how a clock or a file system wobbles.
    """
    logs, count = np.log(distances), len(distances)
    steps, off = np.diff(logs), logs - logs.mean()
    step = float(steps @ steps) / max(1, len(steps))
    error = 2.0 * math.sqrt((count - 2) / (count**2 - 1)) if count > 2 else math.inf
    if step * (count - 1) >= (2.0 - standard_errors * error) * float(off @ off):
        return False
    return math.sqrt(step) > limits.SAME_PERIOD or abs(_trend(logs)[0]) > limits.SAME_PERIOD


def _trend(logs: FloatArray) -> tuple[float, float]:
    """How much a line through these rises in all, and the share of the variance it explains."""
    off, count = logs - logs.mean(), len(logs)
    numbers = np.arange(count) - (count - 1) / 2
    slope = float(numbers @ off) / float(numbers @ numbers)
    variance = float(off @ off)
    share = slope**2 * float(numbers @ numbers) / variance if variance > 0.0 else 0.0
    return slope * (count - 1), share


def _log_chance(phases: SignalPhases, waits: FloatArray, shape: float) -> float:
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


def matching_share(phases: SignalPhases) -> float:
    """Share of the phases that are as long as the middle one; 0 if samples are too coarse."""
    lengths = phases.ends - phases.starts
    middle = median(lengths)
    if phases.resolution > limits.MATCHING_LENGTH * middle:
        return 0.0
    return float(np.mean(np.abs(lengths - middle) <= limits.MATCHING_LENGTH * middle))


def _with_missing(phases: SignalPhases) -> RegularStretch:
    """All phases, where some distances are twice the usual one: a phase is missing there.

    Closed up, they are judged like others. Which distances are halved is a choice that is paid
    for, and so is that a distance halved may be off by twice as much.
    """
    distances = np.diff(phases.starts)
    periods = periods_between(distances)
    double, count = periods == 2.0, len(distances)
    missing = int(np.count_nonzero(double))
    off = np.abs(distances / (2.0 * median(distances)) - 1.0)[double]
    possible = (
        1 <= missing <= max(1.0, (1.0 - limits.MOST) * count) and off.max() <= limits.MAX_OFFSET
    )
    if not possible or periods.min() < 1.0 or periods.max() > 2.0:
        return RegularStretch(0, count)
    starts = phases.starts[0] + np.concatenate(([0.0], np.cumsum(distances / periods)))
    closed = replace(phases, starts=starts, ends=starts + (phases.ends - phases.starts))
    price = math.log(math.comb(count, missing)) + missing * math.log(2.0)
    judged = replace(_judge(closed, 0, count), missing=True)
    return judged.at_price(price - math.log(limits.PART_WEIGHT))


def _best_part(phases: SignalPhases) -> RegularStretch:
    """The most regular stretch; every stretch looked at is a question that is paid for.

    What wanders is even for a while, too: more even than bursts at random is not enough here.
    """
    best, count = RegularStretch(0, len(phases.gaps)), len(phases.gaps)
    if count <= limits.MIN_STRETCH:
        return best
    # Every stretch there is to compare, by gaps and by distances.
    questions = max(1, sum(2 * (count - size + 1) for size in _sizes(count)))
    price = math.log(questions) - math.log(limits.PART_WEIGHT)
    spacings = (phases.gaps, np.diff(phases.starts))
    stretches = steadiest_stretches(spacings, log_least=limits.MAX_SUGGESTIVE_LOG_CHANCE - price)
    for first, size in sorted(stretches, key=lambda stretch: -stretch[1]):
        part = _judge(phases, first, first + size, below=best.chances.least)
        part = replace(part, chances=replace(part.chances, random=CERTAIN))
        best = min(best, part, key=lambda one: one.chances.least)
    return best.at_price(price)


def steadiest_stretches(
    spacings: Iterable[FloatArray], *, log_least: float
) -> set[tuple[int, int]]:
    """First wait and length of the steadiest stretch of each length that is steady enough.

    Bursts at random times are as even with no higher a chance than `log_least`, a logarithm.
    """
    return {
        (first, size)
        for waits in spacings
        for first, size, variation in _steadiest_of_each_length(waits)
        if log_regular(waits=size, variation=variation) <= log_least
    }


def _steadiest_of_each_length(waits: FloatArray) -> Iterator[tuple[int, int, float]]:
    """First wait, length and coefficient of variation."""
    middle = float(waits.mean())
    running = np.zeros((2, len(waits) + 1))
    np.cumsum(waits - middle, out=running[0, 1:])
    np.cumsum((waits - middle) ** 2, out=running[1, 1:])
    for size in _sizes(len(waits)):
        mean, square = (running[:, size:] - running[:, :-size]) / size
        relative = np.maximum(square - mean**2, 0.0) / (middle + mean) ** 2
        first = int(np.argmin(relative))
        yield first, size, math.sqrt(float(relative[first]))


@lru_cache(maxsize=64)
def _sizes(waits: int) -> tuple[int, ...]:
    sizes, size = [], float(limits.MIN_STRETCH)
    while size < waits:
        sizes.append(round(size))
        size *= limits.NEXT_QUESTION
    return tuple(sorted(set(sizes)))
