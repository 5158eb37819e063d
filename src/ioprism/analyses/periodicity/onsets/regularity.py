"""How regular are phases, and how easily do processes without rhythm give as much?

Which process to compare with follows from the phases themselves:

- Phases at some distance: a renewal process, or crossings of noise. Gaps are not memoryless
  (a program computes for a while, a server recovers), so that moderately even ones are no
  evidence: a gamma law whose waits vary by half. Where all phases are alike, the chance of equal
  bursts at random times, whose gaps are exponential, is told beside it: it is how far such
  phases speak for a loop in the program, however much its distances jitter.
- Pauses much shorter than the phases: a serial stream, one request after the other. Requests
  take about as long as each other and pauses are what the program needs between them; both
  must be even far beyond that.
- Hardly any pause: one long phase with hiccups, in which there is nothing to repeat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ioprism.analyses.periodicity.onsets import stretches
from ioprism.analyses.periodicity.onsets.segments import Phases
from ioprism.analyses.periodicity.testing.chance import CERTAIN, log_alike, log_regular
from ioprism.analyses.quantiles import median
from ioprism.model.signal import FloatArray

BEYOND_DOUBT = math.log(1e-9)  # of all phases, so that parts need not be looked at
STEADY = 0.1  # variation of the distances up to which there is one rhythm, not two
WORTH_A_LOOK = math.log(0.2)
ROUNDING = math.sqrt(1 / 6)  # standard deviation of a difference of two rounded times
WHOLE_WEIGHT = 0.9  # of the evidence sought in all phases, the rest in stretches of them
MATCH = 0.07  # phases are alike if their lengths differ by less than this share
CHANCE_OF_MATCH = 0.15  # at most, for lengths that vary by a third or more
ALIKE = math.log(0.01)
NO_PAUSE = 0.02  # share of the period below which pauses separate nothing
SHORT_PAUSE = 0.25  # share of the period below which the stream may be serial
EXPONENTIAL = 1.0  # shapes of gamma laws
RENEWAL = 4.0  # gaps, and crossings of smooth noise: they vary by half or more
SERVICE = 25.0  # how long equal requests take: it varies by a fifth or more
MOST_VARIATION = 0.35  # of the distances; gaps may be even where they are not


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive phases from ``first`` to ``last`` (included), and the chance of their rhythm."""

    first: int
    last: int
    log_chance: float
    alike: bool = False  # whether all phases are as long as each other
    log_random: float = CERTAIN  # the chance of equal bursts at random times, where they are

    @property
    def log_least(self) -> float:
        """The lower of both chances, by which stretches are compared."""
        return min(self.log_chance, self.log_random)

    def at_price(self, price: float) -> Stretch:
        """The same, found by as many questions as the logarithm of the price says."""
        return replace(
            self,
            log_chance=min(CERTAIN, self.log_chance + price),
            log_random=min(CERTAIN, self.log_random + price),
        )


def most_regular(phases: Phases) -> Stretch:
    """The stretch of phases that chance explains worst: all of them, or a part."""
    whole = all_of_them(phases)
    distances = np.diff(phases.starts)
    if whole.log_chance <= BEYOND_DOUBT and distances.std() <= STEADY * distances.mean():
        return whole
    return min(whole, _best_part(phases), key=lambda stretch: stretch.log_least)


def all_of_them(phases: Phases) -> Stretch:
    """All phases, as one of the stretches that may be asked for."""
    return _judged(phases, 0, len(phases) - 1).at_price(-math.log(WHOLE_WEIGHT))


def _judged(phases: Phases, first: int, last: int) -> Stretch:
    """The chance of a stretch under the process that fits its phases."""
    part = phases.part(first, last)
    pause_share = float(part.gaps.mean() / np.diff(part.starts).mean())
    alike = log_alike_lengths(part) < ALIKE
    if pause_share < NO_PAUSE:
        return Stretch(first, last, CERTAIN)
    if pause_share < SHORT_PAUSE:
        return Stretch(first, last, _serial(part), alike)
    if not alike:
        return Stretch(first, last, _unlike(part))
    chances = (_log_chance(part, part.gaps, shape) for shape in (RENEWAL, EXPONENTIAL))
    return Stretch(first, last, next(chances), alike, next(chances))


def _unlike(phases: Phases) -> float:
    """Against lengths and gaps of laws that are no rhythm; gaps or distances may be even."""
    distances = np.diff(phases.starts)
    if distances.std() > MOST_VARIATION * distances.mean():
        return CERTAIN
    chances = [_log_chance(phases, waits, RENEWAL) for waits in (distances, phases.gaps)]
    return min(chances) + math.log(len(chances))


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


def _best_part(phases: Phases) -> Stretch:
    """The most regular stretch; every stretch looked at is a question that is paid for."""
    best, count = Stretch(0, len(phases.gaps), CERTAIN), len(phases.gaps)
    if count <= stretches.SHORTEST:
        return best
    price = stretches.log_questions(count) - math.log(1.0 - WHOLE_WEIGHT)
    spacings = (phases.gaps, np.diff(phases.starts))
    for first, size in stretches.steadiest(spacings, log_least=WORTH_A_LOOK - price):
        found = _judged(phases, first, first + size)
        best = min(best, found, key=lambda stretch: stretch.log_least)
    return best.at_price(price)
