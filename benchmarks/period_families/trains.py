"""Bursts by a clock: short and long, of all sizes and shapes, as requests and in heat maps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.period_families.streams import (
    LEVEL,
    Chance,
    Family,
    Stream,
    after_gaps,
    bursts_at,
    clock,
    heat_map,
    joined,
    rectangles,
    requests,
    samples,
    train,
)


def pulses(chance: Chance) -> Stream:
    period, starts = train(chance)
    return rectangles(starts, period * chance.uniform(0.01, 0.6), period)


def few_pulses(chance: Chance) -> Stream:
    period, starts = train(chance, 4, 7)
    jitter = 0.01 * period * chance.standard_normal(len(starts))
    return rectangles(starts + jitter, period * chance.uniform(0.05, 0.5), period)


def busy_pulses(chance: Chance) -> Stream:
    """Phases that take most of the time."""
    period, starts = train(chance)
    return rectangles(starts, period * chance.uniform(0.6, 0.85), period)


def bursts_of_requests(chance: Chance) -> Stream:
    period, starts = train(chance)
    length = period * chance.uniform(0.05, 0.4)
    return requests([(float(start), length) for start in starts], chance, period)


def few_bursts_of_requests(chance: Chance) -> Stream:
    period, starts = train(chance, 4, 7)
    lengths = period * chance.uniform(0.1, 0.3) * chance.lognormal(0.0, 0.1, len(starts))
    bursts = zip(starts.tolist(), lengths.tolist(), strict=True)
    return requests(list(bursts), chance, period)


def log_normal_bursts(chance: Chance) -> Stream:
    """Bursts of requests of very different size, started by a clock."""
    period, starts = clock(chance, 8, 31)
    lengths = np.minimum(0.1 * period * chance.lognormal(0.0, 0.7, len(starts)), 0.7 * period)
    return requests(list(zip(starts.tolist(), lengths.tolist(), strict=True)), chance, period)


def heavy_tailed_sizes(chance: Chance) -> Stream:
    period, starts = clock(chance, 8, 31)
    lengths = 0.02 * period * (1.0 + chance.pareto(1.5, len(starts)))
    return rectangles(starts, np.minimum(lengths, 0.8 * period), period)


def varying_height(chance: Chance) -> Stream:
    period, starts = train(chance)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.5), period)
    heights = chance.lognormal(0.0, 0.5, len(starts))
    return Stream(stream.start, stream.end, stream.amount * heights, stream.periods)


def varying_length(chance: Chance) -> Stream:
    period, starts = train(chance)
    lengths = period * chance.uniform(0.1, 0.3) * np.clip(
        1.0 + 0.3 * chance.standard_normal(len(starts)), 0.2, 2.0)  # fmt: skip
    return rectangles(starts, lengths, period)


def unequal_bytes(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 31)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.4), period)
    amount = stream.amount * chance.lognormal(0.0, 1.0, len(starts))
    return Stream(stream.start, stream.end, amount, stream.periods)


def alternating_lengths(chance: Chance) -> Stream:
    """A short and a long output by turns; both distances are right."""
    period, starts = clock(chance, 10, 40)
    lengths = np.where(np.arange(len(starts)) % 2, 0.1, 0.3) * period
    return rectangles(starts, lengths, period, 2 * period)


def every_few_larger(chance: Chance) -> Stream:
    """Every third to sixth output is larger; both distances are right."""
    period, starts = clock(chance, 18, 50)
    every = int(chance.integers(3, 7))
    lengths = np.where(np.arange(len(starts)) % every == 0, 0.35, 0.08) * period
    return rectangles(starts, lengths, period, every * period)


def growing_bursts(chance: Chance) -> Stream:
    period, starts = clock(chance, 8, 25)
    return rectangles(starts, period * np.linspace(0.05, 0.4, len(starts)), period)


def shrinking_bursts(chance: Chance) -> Stream:
    """Output that gets smaller, such as that of a solver that converges."""
    period, starts = clock(chance, 8, 25)
    lengths = 0.4 * period * np.cumprod(np.full(len(starts), chance.uniform(0.8, 0.95)))
    return rectangles(starts, lengths, period)


def pairs(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 25)
    both = np.concatenate((starts, starts + chance.uniform(0.15, 0.3) * period))
    return rectangles(np.sort(both), chance.uniform(0.03, 0.1) * period, period)


def files_in_a_row(chance: Chance) -> Stream:
    """Each phase writes a few files, with a pause after each."""
    period, starts = clock(chance, 5, 25)
    files = int(chance.integers(2, 6))
    step = period * chance.uniform(0.3, 0.5) / files
    begin = (starts[:, None] + step * np.arange(files)).reshape(-1)
    return rectangles(begin, step * chance.uniform(0.3, 0.9), period)


def rank_after_rank(chance: Chance) -> Stream:
    """Within a phase ranks write one after the other."""
    period, starts = clock(chance, 5, 25)
    ranks = int(chance.integers(4, 64))
    step = period * chance.uniform(0.1, 0.5) / ranks
    begin = starts[:, None] + step * np.arange(ranks)
    lengths = step * chance.uniform(0.6, 0.95, begin.size)
    return rectangles(begin.reshape(-1), lengths, period)


def ranks_with_stragglers(chance: Chance) -> Stream:
    period, starts = train(chance, 5, 20)
    ranks = int(chance.integers(8, 64))
    begin = starts[:, None] + 0.02 * period * chance.exponential(size=(len(starts), ranks))
    length = 0.1 * period * chance.lognormal(0.0, 0.4, (len(starts), ranks))
    amount = np.full(begin.size, 1e8)
    return Stream(begin.reshape(-1), (begin + length).reshape(-1), amount, (period,))


def half_the_ranks_late(chance: Chance) -> Stream:
    period, starts = clock(chance, 5, 25)
    ranks = int(chance.integers(4, 40))
    late = period * chance.uniform(0.1, 0.3) * (np.arange(ranks) % 2)
    begin = starts[:, None] + late + 0.01 * period * chance.exponential(size=(len(starts), ranks))
    length = 0.1 * period * chance.lognormal(0.0, 0.2, begin.shape)
    amount = np.full(begin.size, 1e8)
    return Stream(begin.reshape(-1), (begin + length).reshape(-1), amount, (period,))


def many_small_writes(chance: Chance) -> Stream:
    """A logger: one short request at a time, hundreds of times."""
    period, starts = clock(chance, 100, 800)
    late = 0.05 * period * chance.standard_normal(len(starts))
    return rectangles(np.sort(starts + late), period * chance.uniform(0.001, 0.02), period)


def heat_map_of_bursts(chance: Chance) -> Stream:
    period, starts = train(chance, 6, 25)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.5), period)
    return heat_map(stream, int(len(starts) * chance.uniform(6, 30)))


def heat_map_of_ranks(chance: Chance) -> Stream:
    return heat_map(ranks_with_stragglers(chance), int(chance.uniform(100, 400)))


def coarse_heat_map(chance: Chance) -> Stream:
    """Only a few bins a period."""
    period, starts = clock(chance, 10, 40)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.3), period)
    return heat_map(stream, int(len(starts) * chance.uniform(3.2, 6.0)))


def noisy_samples(chance: Chance) -> Stream:
    period, starts = train(chance, 6, 31)
    interval = period / chance.uniform(20, 100)
    times = interval * np.arange(int((starts[-1] + period) / interval))
    busy = ((times - starts[0]) % period < period * chance.uniform(0.1, 0.5)) & (times >= starts[0])
    noise = 1.0 + chance.uniform(0.1, 0.5) * chance.standard_normal(len(times))
    idle = chance.uniform(0.0, 0.1) * np.abs(chance.standard_normal(len(times)))
    return samples(LEVEL * np.where(busy, noise, idle), interval, period)


def wave(chance: Chance) -> Stream:
    period = float(chance.uniform(8.0, 60.0))
    times = np.arange(int(period * chance.uniform(6, 30)))
    noise = chance.uniform(0.1, 1.0) * chance.standard_normal(len(times))
    return samples(4.0 + np.sin(2 * np.pi * times / period) + noise, 1.0, period)


def ramped_checkpoints(chance: Chance) -> Stream:
    """Ranks start one by one and end together, so that the bandwidth ramps up."""
    period, starts = clock(chance, 5, 25)
    ranks, length = int(chance.integers(8, 64)), period * chance.uniform(0.1, 0.4)
    begin = starts[:, None] + length * np.linspace(0.0, 0.8, ranks)
    end = np.repeat(starts + length, ranks)
    return Stream(begin.reshape(-1), end, np.full(end.size, 1e8), (period,))


def full_and_incremental(chance: Chance) -> Stream:
    """A large and a small checkpoint by turns; both distances are right."""
    period, starts = clock(chance, 8, 26)
    lengths = np.where(np.arange(len(starts)) % 2 == 0, 0.25, 0.06) * period
    return bursts_at(starts, lengths, chance, period, 2 * period)


def wide_bins(chance: Chance) -> Stream:
    """A heat map with three to five bins a period."""
    period, starts = clock(chance, 12, 60)
    lengths = period * chance.uniform(0.05, 0.3, len(starts))
    stream = bursts_at(starts, lengths, chance, period)
    return heat_map(stream, int(len(starts) * chance.uniform(3.0, 5.0)))


def heat_map_of_late_bursts(chance: Chance) -> Stream:
    """As many bins as a tool keeps, however many periods there are."""
    period, starts = clock(chance, 6, 40)
    late = 0.02 * period * np.abs(chance.standard_normal(len(starts)))
    lengths = period * chance.uniform(0.05, 0.35, len(starts))
    stream = bursts_at(starts + late, lengths, chance, period)
    return heat_map(stream, int(chance.choice([100, 128, 200])))


def very_short_bursts(chance: Chance) -> Stream:
    """Busy for a thousandth of the time, and not quite on time."""
    period, starts = clock(chance, 6, 60)
    late = period * chance.uniform(0.0, 0.05) * chance.standard_normal(len(starts))
    lengths = 0.001 * period * chance.lognormal(0.0, 0.3, len(starts))
    return rectangles(np.sort(starts + late), lengths, period)


def hardly_a_pause(chance: Chance) -> Stream:
    """Busy for nine tenths of the time."""
    period, starts = clock(chance, 6, 40)
    lengths = 0.9 * period * (1.0 + 0.02 * chance.standard_normal(len(starts)))
    begin = after_gaps(0.1 * period * chance.lognormal(0.0, 0.1, len(starts)), lengths)
    return rectangles(begin, lengths, float(np.diff(begin).mean()))


def truncated_ends(chance: Chance) -> Stream:
    """The record begins and ends within a burst."""
    period, starts = clock(chance, 5, 25)
    lengths = np.full(len(starts), period * chance.uniform(0.1, 0.5))
    cut, left = chance.uniform(0.1, 0.9, 2) * lengths[0]
    starts[0] += cut
    lengths[0] -= cut
    lengths[-1] = left
    return rectangles(starts, lengths, period)


def sizes_of_three_decades(chance: Chance) -> Stream:
    period, starts = clock(chance, 8, 40)
    return rectangles(starts, period * 10 ** chance.uniform(-3.0, -0.4, len(starts)), period)


def long_first_burst(chance: Chance) -> Stream:
    """The first checkpoint creates the files."""
    period, starts = clock(chance, 5, 20)
    lengths = np.full(len(starts), period * chance.uniform(0.05, 0.15))
    lengths[0] *= 5.0
    return rectangles(starts, lengths, period)


def epochs_of_batches(chance: Chance) -> Stream:
    """Batches at even steps and a pause after each epoch; both distances are right."""
    period, starts = clock(chance, 4, 12)
    batches = int(chance.integers(15, 60))
    step = 0.85 * period / batches
    begin = (starts[:, None] + step * np.arange(batches)).reshape(-1)
    late = 0.05 * step * chance.standard_normal(len(begin))
    return rectangles(np.sort(begin + late), 0.3 * step, period, step)


def smooth_bumps(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 30)
    interval, width = period / chance.uniform(15, 60), period * chance.uniform(0.05, 0.15)
    times = interval * np.arange(int((starts[-1] + period) / interval))
    away = times % period - period / 2
    noise = 1.0 + 0.2 * chance.standard_normal(len(times))
    return samples(LEVEL * np.exp(-0.5 * (away / width) ** 2) * noise, interval, period)


def saw_teeth(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 30)
    interval = period / chance.uniform(15, 60)
    times = interval * np.arange(int((starts[-1] + period) / interval))
    noise = 0.1 * chance.standard_normal(len(times))
    return samples(LEVEL * (0.3 + times % period / period + noise), interval, period)


def by_turns(chance: Chance) -> Stream:
    """A short read, and a longer write less than half a period later."""
    period, starts = clock(chance, 6, 30)
    reads = rectangles(starts, 0.08 * period)
    writes = rectangles(
        starts + period * chance.uniform(0.3, 0.45), period * chance.uniform(0.12, 0.25)
    )
    return joined(reads, writes, periods=(period,))


def three_bins_a_period(chance: Chance) -> Stream:
    period, starts = clock(chance, 12, 50)
    stream = rectangles(starts, period * chance.uniform(0.1, 0.5), period)
    return heat_map(stream, 3 * len(starts))


def slow_tails(chance: Chance) -> Stream:
    """Bursts of requests that get rarer towards their ends."""
    period, starts = clock(chance, 6, 30)
    shape = (len(starts), int(chance.integers(20, 80)))
    late = chance.exponential(period * chance.uniform(0.03, 0.12), shape)
    late[:, 0] = 0.0
    begin = (starts[:, None] + np.minimum(late, 0.6 * period)).reshape(-1)
    return Stream(begin, begin + 0.004 * period, np.full(begin.size, 4e6), (period,))


FAMILIES: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        pulses, few_pulses, busy_pulses, bursts_of_requests, few_bursts_of_requests,
        log_normal_bursts, heavy_tailed_sizes, varying_height, varying_length, unequal_bytes,
        alternating_lengths, every_few_larger, growing_bursts, shrinking_bursts, pairs,
        files_in_a_row, rank_after_rank, ranks_with_stragglers, half_the_ranks_late,
        many_small_writes, heat_map_of_bursts, heat_map_of_ranks, coarse_heat_map, noisy_samples,
        wave, ramped_checkpoints, full_and_incremental, wide_bins, heat_map_of_late_bursts,
        very_short_bursts, hardly_a_pause, truncated_ends, sizes_of_three_decades,
        long_first_burst, epochs_of_batches, smooth_bumps, saw_teeth, by_turns,
        three_bins_a_period, slow_tails,
    )
}  # fmt: skip
