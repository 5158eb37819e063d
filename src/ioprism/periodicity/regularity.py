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
import numpy.typing as npt

from ioprism.model.arrays import FloatArray, median
from ioprism.periodicity.chance import (
    CERTAIN,
    log_alike,
    log_ever_even,
    log_ever_wandering,
    log_regular,
)
from ioprism.periodicity.counting import periods_between
from ioprism.periodicity.limits import (
    MAX_CLEAR_LOG_CHANCE,
    MAX_CLOCK_VARIATION,
    MAX_OFFSET,
    MAX_SUGGESTIVE_LOG_CHANCE,
    MIN_STRETCH,
    NEARLY_ALL,
)
from ioprism.periodicity.segments import SignalPhases

NEGLIGIBLE_LOG_CHANCE = math.log(1e-9)  # of all phases; then parts are not examined
ROUNDING = math.sqrt(1 / 6)  # standard deviation of a difference of two rounded times
# Of the evidence sought: in all phases, in all if some are missing, in stretches of them.
WHOLE_WEIGHT, MISSING_WEIGHT, PART_WEIGHT = 0.9, 0.03, 0.07
MAX_MISSING_SHARE = 1 / 3  # share of the distances that may be twice as long as the others
MATCHING_LENGTH = 0.07  # relative difference up to which the lengths of phases match
CHANCE_OF_MATCH = 0.15  # upper bound for lengths that vary by a third or more
MAX_SERIAL_PAUSE = 0.25  # share of the period below which the stream may be serial
EXPONENTIAL_SHAPE = 1.0  # shapes of gamma laws
CROSSINGS_SHAPE = 2.5  # times between the crossings of noise: most vary by two thirds
RENEWAL_SHAPE = 4.0  # gaps, and crossings of smooth noise: they vary by half or more
STEPS_SHAPE = 11.0  # distances of a loader's steps: they vary by 30 % or more
STEPS_LOG_PRIOR = math.log(0.25)  # share of processes without a clock that are that even
STEPS_EVER_LOG_PRIOR = math.log(0.15)  # the same at any moment, for which the bound is loose
SERVICE_SHAPE = 25.0  # how long equal requests take: it varies by a fifth or more
MAX_VARIATION = 0.3  # of the distances; gaps may be even where they are not
MAX_CERTAIN_VARIATION = 0.25  # of the distances, beyond which processes without a clock are as even
NEVER = -math.inf  # log of probability 0
TREND_STANDARD_ERRORS = 1.645  # one-sided 5 % quantile, for the ratio of von Neumann (1941)
CLEAR_STANDARD_ERRORS = 3.09  # one-sided 0.1 % quantile: nor is there a loop with a mean


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
        whole.chances.single_look <= NEGLIGIBLE_LOG_CHANCE
        and distances.std() <= MAX_CLOCK_VARIATION * distances.mean()
    ):
        return whole
    if _grows_steadily(distances):
        return whole  # every part of it is even for a while
    every = (whole, _with_missing(phases), _best_part(phases))
    # A period in a part of the phases comes before a loop of all of them.
    clear = [one for one in every if one.chances.single_look <= MAX_CLEAR_LOG_CHANCE]
    return min(clear or every, key=lambda stretch: stretch.chances.least)


def all_of_them(phases: SignalPhases) -> RegularStretch:
    """All phases, as one of the stretches that may be asked for."""
    return _judge(phases, 0, len(phases) - 1).at_price(-math.log(WHOLE_WEIGHT))


def _judge(
    phases: SignalPhases, first: int, last: int, *, below: float = CERTAIN
) -> RegularStretch:
    """The chance of a stretch under the process that fits its phases.

    Args:
        phases: all phases.
        first: the first one of the stretch.
        last: and the last.
        below: a logarithm; if the chance of a single look is above it, no other is computed.
    """
    part = phases.part(first, last)
    distances, waits = np.diff(part.starts), part.gaps
    mean = float(distances.mean())
    pause_share = float(waits.mean()) / mean
    alike = log_alike_lengths(part) < MAX_CLEAR_LOG_CHANCE
    if pause_share < MAX_SERIAL_PAUSE:
        return RegularStretch(first, last, Chances(_serial(part)), alike)
    variation = float(distances.std()) / mean
    if not alike and variation > MAX_VARIATION:
        return RegularStretch(first, last)
    # If phases differ in length, either distances or gaps may be even.
    spacings = [waits] if alike else [distances, waits]

    def spaced(shape: float) -> float:
        return min(_log_chance(part, each, shape) for each in spacings) + math.log(len(spacings))

    gaps = spaced(RENEWAL_SHAPE)
    if gaps > below or (variation > MAX_CERTAIN_VARIATION and below < CERTAIN):
        return RegularStretch(first, last, alike=alike)
    if _wanders(distances, standard_errors=CLEAR_STANDARD_ERRORS):
        return RegularStretch(first, last, alike=alike)
    random = spaced(EXPONENTIAL_SHAPE if alike else CROSSINGS_SHAPE)
    if variation > MAX_CERTAIN_VARIATION or _wanders(distances):
        return RegularStretch(first, last, Chances(random=random), alike)
    steps = STEPS_LOG_PRIOR + _log_chance(part, distances, STEPS_SHAPE)
    if steps > below:
        return RegularStretch(first, last, alike=alike)
    error = ROUNDING * part.resolution
    ever = STEPS_EVER_LOG_PRIOR + log_ever_even(distances, shape=STEPS_SHAPE, error=error)
    # Computed only for what could be announced.
    worth = gaps <= MAX_SUGGESTIVE_LOG_CHANCE
    walk = log_ever_wandering(distances, error=error) if worth else CERTAIN
    return RegularStretch(first, last, Chances(gaps, steps, ever, walk, random), alike)


def may_wander(phases: SignalPhases, *, level: float) -> bool:
    """Whether distances that wander look like these more often than a false-alarm level."""
    error = ROUNDING * phases.resolution
    return log_ever_wandering(np.diff(phases.starts), error=error) > math.log(level)


def _wanders(distances: FloatArray, *, standard_errors: float = TREND_STANDARD_ERRORS) -> bool:
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
    return math.sqrt(step) > MAX_CLOCK_VARIATION or abs(_trend(logs)[0]) > MAX_CLOCK_VARIATION


def _trend(logs: FloatArray) -> tuple[float, float]:
    """How much a line through these rises in all, and the share of the variance it explains."""
    off, count = logs - logs.mean(), len(logs)
    numbers = np.arange(count) - (count - 1) / 2
    slope = float(numbers @ off) / float(numbers @ numbers)
    variance = float(off @ off)
    share = slope**2 * float(numbers @ numbers) / variance if variance > 0.0 else 0.0
    return slope * (count - 1), share


def _grows_steadily(distances: FloatArray) -> bool:
    """Whether distances grow or shrink from the first to the last; a change of period is a step."""
    if len(distances) <= MIN_STRETCH:
        return False
    rise, share = _trend(np.log(distances))
    return abs(rise) > MAX_CLOCK_VARIATION and share >= NEARLY_ALL


def _serial(phases: SignalPhases) -> float:
    """Against a serial stream: lengths and pauses must both be even."""
    lengths, gaps = (phases.ends - phases.starts)[:-1], phases.gaps
    return max(
        _log_chance(phases, lengths, SERVICE_SHAPE),
        _log_chance(phases, gaps, RENEWAL_SHAPE),
    )


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


def log_alike_lengths(phases: SignalPhases) -> float:
    """Chance that the lengths of unrelated phases match as well."""
    matching = round(matching_share(phases) * len(phases))
    return log_alike(phases=len(phases), matching=matching, chance_of_match=CHANCE_OF_MATCH)


def matching_share(phases: SignalPhases) -> float:
    """Share of the phases that are as long as the middle one; 0 if samples are too coarse."""
    lengths = phases.ends - phases.starts
    middle = median(lengths)
    if phases.resolution > MATCHING_LENGTH * middle:
        return 0.0
    return float(np.mean(np.abs(lengths - middle) <= MATCHING_LENGTH * middle))


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
    possible = 1 <= missing <= max(1.0, MAX_MISSING_SHARE * count) and off.max() <= MAX_OFFSET
    if not possible or (np.abs(periods - 1.5) > 0.5).any():
        return RegularStretch(0, count)
    starts = phases.starts[0] + np.concatenate(([0.0], np.cumsum(distances / periods)))
    closed = replace(phases, starts=starts, ends=starts + (phases.ends - phases.starts))
    price = math.log(math.comb(count, missing)) + missing * math.log(2.0)
    judged = replace(_judge(closed, 0, count), missing=True)
    return judged.at_price(price - math.log(MISSING_WEIGHT))


def _best_part(phases: SignalPhases) -> RegularStretch:
    """The most regular stretch; every stretch looked at is a question that is paid for.

    What wanders is even for a while, too: more even than bursts at random is not enough here.
    """
    best, count = RegularStretch(0, len(phases.gaps)), len(phases.gaps)
    if count <= MIN_STRETCH:
        return best
    price = log_questions(count) - math.log(PART_WEIGHT)
    spacings = (phases.gaps, np.diff(phases.starts))
    stretches = steadiest_stretches(spacings, log_least=MAX_SUGGESTIVE_LOG_CHANCE - price)
    for first, size in sorted(stretches, key=lambda stretch: -stretch[1]):
        part = _judge(phases, first, first + size, below=best.chances.least)
        part = replace(part, chances=replace(part.chances, random=CERTAIN))
        best = min(best, part, key=lambda one: one.chances.least)
    return best.at_price(price)


LENGTH_GROWTH = 1.25  # from one length to the next
MAX_JOINT_WAITS = 1024  # waits
MAX_SEARCHED_VARIATION = 3.0  # coefficient of variation
HALVINGS = 24
CHANCE_STEP = 0.5  # of logarithms of chances, to remember few of them

Ints = npt.NDArray[np.int64]


def log_questions(waits: int) -> float:
    """Logarithm of how many stretches there are to compare, by gaps and by distances."""
    return math.log(max(1, sum(2 * (waits - size + 1) for size in _sizes(waits))))


def steadiest_stretches(
    spacings: Iterable[FloatArray], *, log_least: float
) -> set[tuple[int, int]]:
    """First wait and length of the steadiest stretch of each length that is steady enough.

    Args:
        spacings: rows of waits, all as long.
        log_least: bursts at random times are as even with no higher a chance, as a logarithm.
    """
    return {
        stretch for waits in spacings for stretch in _steadiest_of_each_length(waits, log_least)
    }


def _steadiest_of_each_length(waits: FloatArray, log_least: float) -> Iterator[tuple[int, int]]:
    middle = float(waits.mean())
    running = np.zeros((2, len(waits) + 1))
    np.cumsum(waits - middle, out=running[0, 1:])
    np.cumsum((waits - middle) ** 2, out=running[1, 1:])
    for sizes in _together(len(waits)):
        first, offsets, sizes_of = _stretch_places(len(waits), sizes)
        mean, square = (running[:, first + sizes_of] - running[:, first]) / sizes_of
        relative = np.maximum(square - mean**2, 0.0) / (middle + mean) ** 2
        least = np.minimum.reduceat(relative, offsets).tolist()
        for size, begin, variation in zip(sizes, offsets.tolist(), least, strict=True):
            if variation <= _most_variation(size, math.ceil(log_least / CHANCE_STEP)) ** 2:
                yield int(np.argmin(relative[begin : begin + len(waits) - size + 1])), size


def _together(waits: int) -> list[tuple[int, ...]]:
    """The lengths to compare together: all if there are few waits, else each by itself."""
    sizes = _sizes(waits)
    return [sizes] if waits <= MAX_JOINT_WAITS else [(size,) for size in sizes]


@lru_cache(maxsize=64)
def _stretch_places(waits: int, sizes: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
    """First waits of all stretches, where each length begins among them, and their lengths."""
    counts = [waits - size + 1 for size in sizes]
    first = np.concatenate([np.arange(count) for count in counts])
    offsets = np.cumsum([0, *counts[:-1]])
    return first, offsets, np.repeat(np.array(sizes), counts)


@lru_cache(maxsize=64)
def _sizes(waits: int) -> tuple[int, ...]:
    sizes, size = [], float(MIN_STRETCH)
    while size < waits:
        sizes.append(round(size))
        size *= LENGTH_GROWTH
    return tuple(sorted(set(sizes)))


@lru_cache(maxsize=4096)
def _most_variation(size: int, steps: int) -> float:
    """The variation at which the chance of random waits is `steps * CHANCE_STEP`, as a log."""
    low, high = 0.0, MAX_SEARCHED_VARIATION
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if log_regular(waits=size, variation=middle) <= steps * CHANCE_STEP:
            low = middle
        else:
            high = middle
    return high
