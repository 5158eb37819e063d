"""More streams with and without rhythm: laws that programs follow between and in their phases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.rhythm_families import (
    LEVEL,
    Chance,
    Family,
    Stream,
    after_gaps,
    heat_map,
    ranks_with_stragglers,
    rectangles,
    requests,
    samples,
)
from ioprism.model.signal import FloatArray

# Without a rhythm


def gamma_gaps(chance: Chance) -> Stream:
    """Equal bursts after gaps that vary by half: no clock, but a loop may do the same."""
    count = int(chance.integers(6, 50))
    return rectangles(after_gaps(chance.gamma(4.0, 2.5, count), 1.0), 1.0)


def gamma_gaps_unlike(chance: Chance) -> Stream:
    count = int(chance.integers(6, 50))
    lengths = chance.lognormal(0.0, 0.6, count)
    return rectangles(after_gaps(chance.gamma(4.0, 2.5, count), lengths), lengths)


def dead_time(chance: Chance) -> Stream:
    """Random times, but never soon after a burst."""
    count, mean = int(chance.integers(6, 50)), chance.uniform(4.0, 20.0)
    return rectangles(after_gaps(0.4 * mean + chance.exponential(mean, count), 1.0), 1.0)


def log_normal_compute(chance: Chance) -> Stream:
    """Bursts of requests after computing for times that vary by half or more."""
    count = int(chance.integers(6, 40))
    gaps = chance.lognormal(2.3, chance.uniform(0.5, 1.0), count)
    return requests([(float(start), 2.0) for start in after_gaps(gaps, 2.0)], chance)


def random_pairs(chance: Chance) -> Stream:
    starts = after_gaps(chance.exponential(20.0, int(chance.integers(4, 25))), 4.0)
    return rectangles(np.sort(np.concatenate((starts, starts + 3.0))), 1.0)


def thresholded_red_noise(chance: Chance) -> Stream:
    memory, level = chance.uniform(0.8, 0.99), 0.0
    values = np.empty(4000)
    for i, shock in enumerate(chance.standard_normal(4000).tolist()):
        level = memory * level + shock
        values[i] = level
    busy = values > chance.uniform(0.0, 1.2) * values.std()
    return samples(np.where(busy, LEVEL, 0.0), 0.25)


def parameter_sweep(chance: Chance) -> Stream:
    """Runs of very different lengths, with outputs of a few sizes."""
    count = int(chance.integers(6, 40))
    computing = np.exp(chance.uniform(np.log(2.0), np.log(40.0), count))
    lengths = chance.choice([0.5, 1.0, 2.0, 4.0], count)
    return rectangles(after_gaps(computing, lengths), lengths)


# With a rhythm


def _clock(chance: Chance, low: int, high: int) -> tuple[float, FloatArray]:
    period = float(chance.uniform(2.0, 60.0))
    return period, period * np.arange(int(chance.integers(low, high)), dtype=np.float64)


def heavy_tailed_sizes(chance: Chance) -> Stream:
    period, starts = _clock(chance, 8, 31)
    lengths = 0.02 * period * (1.0 + chance.pareto(1.5, len(starts)))
    return rectangles(starts, np.minimum(lengths, 0.8 * period), period)


def slowing_down(chance: Chance) -> Stream:
    """A period that grows by 5 % from the first phase to the last."""
    period, starts = _clock(chance, 8, 31)
    slower = np.cumsum(period * np.linspace(1.0, 1.05, len(starts)))
    return rectangles(slower, period * chance.uniform(0.05, 0.4), float(np.diff(slower).mean()))


def pairs(chance: Chance) -> Stream:
    period, starts = _clock(chance, 6, 25)
    both = np.concatenate((starts, starts + chance.uniform(0.15, 0.3) * period))
    return rectangles(np.sort(both), chance.uniform(0.03, 0.1) * period, period)


def varying_compute(chance: Chance) -> Stream:
    """Bursts of requests after computing for times that vary by 15 %."""
    period, starts = _clock(chance, 8, 31)
    lengths = period * chance.uniform(0.05, 0.2) * chance.lognormal(0.0, 0.1, len(starts))
    begin = after_gaps(period * chance.lognormal(0.0, 0.15, len(starts)), lengths)
    bursts = list(zip(begin.tolist(), lengths.tolist(), strict=True))
    return requests(bursts, chance, float(np.diff(begin).mean()))


def heat_map_of_ranks(chance: Chance) -> Stream:
    return heat_map(ranks_with_stragglers(chance), int(chance.uniform(100, 400)))


def growing_bursts(chance: Chance) -> Stream:
    period, starts = _clock(chance, 8, 25)
    return rectangles(starts, period * np.linspace(0.05, 0.4, len(starts)), period)


MORE_WITHOUT_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        gamma_gaps, gamma_gaps_unlike, dead_time, log_normal_compute, random_pairs,
        thresholded_red_noise, parameter_sweep,
    )
}  # fmt: skip
MORE_WITH_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        heavy_tailed_sizes, slowing_down, pairs, varying_compute, heat_map_of_ranks,
        growing_bursts,
    )
}  # fmt: skip
