"""Bursts without a period: at random times, after random waits, in clusters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.period_families.streams import (
    Chance,
    Family,
    Stream,
    after_gaps,
    bursts_at,
    heat_map,
    rectangles,
    requests,
)


def poisson_bursts(chance: Chance) -> Stream:
    count = int(chance.integers(4, 40))
    starts = np.sort(chance.uniform(0.0, 600.0, count))
    return rectangles(starts, chance.uniform(0.5, 8.0, count))


def few_equal_rectangles(chance: Chance) -> Stream:
    count, length = int(chance.integers(4, 8)), 1.0
    return rectangles(after_gaps(chance.exponential(chance.uniform(1, 20), count), length), length)


def equal_rectangles(chance: Chance) -> Stream:
    count, length = int(chance.integers(8, 41)), 1.0
    return rectangles(after_gaps(chance.exponential(chance.uniform(1, 20), count), length), length)


def equal_rectangles_overlapping(chance: Chance) -> Stream:
    count = int(chance.integers(4, 40))
    starts = np.sort(chance.uniform(0.0, 300.0, count))
    return rectangles(starts, 300.0 / count * chance.uniform(0.05, 0.4))


def renewal_log_normal(chance: Chance) -> Stream:
    count = int(chance.integers(5, 60))
    lengths = chance.uniform(0.5, 4.0, count)
    return rectangles(after_gaps(chance.lognormal(2.0, chance.uniform(0.8, 1.5), count), lengths),
                      lengths)  # fmt: skip


def renewal_pareto(chance: Chance) -> Stream:
    count = int(chance.integers(5, 60))
    gaps = 2.0 * chance.pareto(chance.uniform(1.2, 2.5), count) + 0.1
    return rectangles(after_gaps(gaps, 1.0), 1.0)


def renewal_weibull(chance: Chance) -> Stream:
    count = int(chance.integers(5, 60))
    lengths = chance.exponential(2.0, count) + 0.2
    return rectangles(after_gaps(10.0 * chance.weibull(chance.uniform(0.6, 1.0), count), lengths),
                      lengths)  # fmt: skip


def renewal_uniform(chance: Chance) -> Stream:
    count = int(chance.integers(5, 60))
    lengths = chance.lognormal(0.0, 0.6, count)
    return rectangles(after_gaps(chance.uniform(0.0, 20.0, count), lengths), lengths)


def weibull_gaps(chance: Chance) -> Stream:
    """Equal bursts after waits with and without memory."""
    count = int(chance.integers(6, 60))
    gaps = 8.0 * chance.weibull(chance.uniform(0.5, 1.3), count)
    return rectangles(after_gaps(gaps, 1.0), 1.0)


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


def growing_gaps(chance: Chance) -> Stream:
    """Each wait longer than the one before, by up to twice."""
    count = int(chance.integers(5, 12))
    gaps = np.cumprod(np.full(count, chance.uniform(1.4, 2.0)))
    return rectangles(after_gaps(gaps, 1.0), 1.0)


def on_off_pareto(chance: Chance) -> Stream:
    """Busy and idle for times with heavy tails."""
    count = int(chance.integers(10, 80))
    lengths = 0.5 + chance.pareto(1.4, count)
    return rectangles(after_gaps(1.0 + 3.0 * chance.pareto(1.4, count), lengths), lengths)


def shrinking_gaps(chance: Chance) -> Stream:
    count = int(chance.integers(6, 25))
    gaps = 30.0 * np.exp(-np.arange(count) * chance.uniform(0.1, 0.4)) + 0.05
    return rectangles(after_gaps(gaps, 0.02), 0.02)


def uniform_after_a_rest(chance: Chance) -> Stream:
    """Equal bursts after gaps anywhere between a fifth of the mean and twice it."""
    count, mean = int(chance.integers(6, 60)), chance.uniform(2.0, 20.0)
    return rectangles(after_gaps(mean * chance.uniform(0.2, 2.0, count), 0.1 * mean), 0.1 * mean)


def requests_after_a_rest(chance: Chance) -> Stream:
    count, mean = int(chance.integers(6, 50)), chance.uniform(5.0, 20.0)
    lengths = 0.2 * mean * chance.lognormal(0.0, 0.3, count)
    return bursts_at(after_gaps(mean * chance.uniform(0.2, 2.0, count), lengths), lengths, chance)


def normal_gaps(chance: Chance) -> Stream:
    """Unlike bursts after gaps that vary by half."""
    count = int(chance.integers(6, 60))
    lengths, gaps = chance.uniform(0.5, 2.0, count), 10.0 + 5.0 * chance.standard_normal(count)
    return rectangles(after_gaps(np.maximum(gaps, 0.3), lengths), lengths)


def correlated_gaps(chance: Chance) -> Stream:
    """A long gap comes after a long one."""
    level, gaps = 0.0, []
    for shock in chance.standard_normal(int(chance.integers(10, 80))).tolist():
        level = 0.8 * level + 0.5 * shock
        gaps.append(8.0 * np.exp(level))
    return rectangles(after_gaps(np.array(gaps), 1.0), 1.0)


def clusters_of_requests(chance: Chance) -> Stream:
    count = int(chance.integers(4, 20))
    gaps, length = chance.exponential(30.0, count), chance.uniform(1.0, 4.0)
    starts = after_gaps(gaps, length)
    return requests([(float(s), length) for s in starts], chance)


def poisson_clusters(chance: Chance) -> Stream:
    """Random moments, each followed by a few bursts (Neyman and Scott)."""
    moments = np.cumsum(chance.exponential(60.0, int(chance.integers(4, 20))))
    bursts = [moment + chance.exponential(4.0, 1 + chance.poisson(3.0)) for moment in moments]
    return rectangles(np.sort(np.concatenate(bursts)), 0.5)


def random_pairs(chance: Chance) -> Stream:
    starts = after_gaps(chance.exponential(20.0, int(chance.integers(4, 25))), 4.0)
    return rectangles(np.sort(np.concatenate((starts, starts + 3.0))), 1.0)


def changing_rate(chance: Chance) -> Stream:
    """Bursts at random times whose rate wanders (Cox)."""
    rate, level = np.empty(1200), 0.0
    for i, shock in enumerate(chance.standard_normal(1200).tolist()):
        level = 0.98 * level + 0.2 * shock
        rate[i] = 0.05 * np.exp(level)
    starts = np.flatnonzero(chance.uniform(size=1200) < rate)
    return rectangles(np.sort(starts + chance.uniform(size=len(starts))), 0.3)


def aftershocks(chance: Chance) -> Stream:
    """Requests at times that are random on a logarithmic scale."""
    starts = np.sort(np.exp(chance.uniform(0.0, np.log(2000.0), int(chance.integers(8, 80)))))
    return rectangles(starts, 0.05)


def heat_map_of_random_bursts(chance: Chance) -> Stream:
    return heat_map(poisson_bursts(chance), int(chance.integers(60, 600)))


def heat_map_of_clusters(chance: Chance) -> Stream:
    return heat_map(poisson_clusters(chance), int(chance.integers(60, 500)))


def wandering_gaps(chance: Chance) -> Stream:
    """Gaps whose logarithm is a random walk: neighbours are alike, others are not."""
    walk = np.cumsum(chance.uniform(0.2, 0.5) * chance.standard_normal(int(chance.integers(8, 50))))
    return rectangles(after_gaps(5.0 * np.exp(walk), 1.0), 1.0)


def chirp(chance: Chance) -> Stream:
    """Distances that grow or shrink steadily, by three to six times in all."""
    count = int(chance.integers(10, 40))
    distances = 10.0 * np.geomspace(1.0, chance.uniform(3.0, 6.0), count)
    return rectangles(np.cumsum(distances), chance.uniform(0.5, 1.5))


def decaying_clusters(chance: Chance) -> Stream:
    """Random moments, each followed by requests that get rarer."""
    moments = np.cumsum(chance.exponential(40.0, int(chance.integers(5, 25))))
    parts = [one + chance.exponential(4.0, int(chance.integers(5, 40))) for one in moments]
    return rectangles(np.sort(np.concatenate(parts)), 0.05)


def self_exciting(chance: Chance) -> Stream:
    """Every burst makes others likelier for a while (Hawkes)."""
    starts, now, heat = [], 0.0, 0.0
    for wait, drawn in zip(chance.exponential(1.0, 400), chance.uniform(size=400), strict=True):
        highest = 0.05 + heat
        passed = wait / highest
        now, heat = now + passed, heat * np.exp(-passed / 10.0)
        if drawn < (0.05 + heat) / highest:
            starts.append(now)
            heat += 0.06
    return rectangles(np.array(starts[:80]), 0.3)


def retries(chance: Chance) -> Stream:
    """Waits that double until a try succeeds, and begin anew after that."""
    waits: list[float] = []
    for tries in chance.geometric(0.35, int(chance.integers(4, 15))).tolist():
        waits += [2.0**number for number in range(min(tries, 6))]
    gaps = np.array(waits) * chance.uniform(0.5, 1.5, len(waits))
    return rectangles(after_gaps(gaps, 0.2), 0.2)


def random_multiples(chance: Chance) -> Stream:
    """Bursts at random multiples of a fixed time, such as a scheduler's tick: slots, no period."""
    slot, count = float(chance.uniform(2.0, 30.0)), int(chance.integers(8, 60))
    starts = slot * np.cumsum(chance.integers(1, int(chance.integers(3, 7)), count))
    return rectangles(starts + 0.01 * slot * chance.standard_normal(count), 0.2 * slot)


def occupied_slots(chance: Chance) -> Stream:
    """A timer whose every tick brings a burst with a chance of a third to two thirds."""
    slot, ticks = float(chance.uniform(2.0, 30.0)), int(chance.integers(30, 120))
    taken = np.flatnonzero(chance.uniform(size=ticks) < chance.uniform(1 / 3, 2 / 3))
    return rectangles(slot * taken.astype(np.float64), slot * chance.uniform(0.1, 0.4))


def gaps_of_four_values(chance: Chance) -> Stream:
    """Four kinds of step, each of its own length, in random order."""
    values = chance.uniform(2.0, 30.0, 4)
    gaps = chance.choice(values, int(chance.integers(10, 60)))
    return rectangles(after_gaps(gaps * chance.normal(1.0, 0.01, len(gaps)), 1.0), 1.0)


FAMILIES: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        poisson_bursts, few_equal_rectangles, equal_rectangles, equal_rectangles_overlapping,
        renewal_log_normal, renewal_pareto, renewal_weibull, renewal_uniform, weibull_gaps,
        gamma_gaps, gamma_gaps_unlike, dead_time, growing_gaps, on_off_pareto, shrinking_gaps,
        uniform_after_a_rest, requests_after_a_rest, normal_gaps, correlated_gaps,
        clusters_of_requests, poisson_clusters, random_pairs, changing_rate, aftershocks,
        heat_map_of_random_bursts, heat_map_of_clusters,
        wandering_gaps, chirp, decaying_clusters, self_exciting, retries,
        random_multiples, occupied_slots, gaps_of_four_values,
    )
}  # fmt: skip
