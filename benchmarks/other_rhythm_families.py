"""Other streams with and without rhythm, drawn only after the detection was written."""

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
    rectangles,
    requests,
    samples,
)
from ioprism.model.signal import FloatArray

# Without a rhythm


def weibull_gaps(chance: Chance) -> Stream:
    """Equal bursts after waits with and without memory."""
    count = int(chance.integers(6, 60))
    gaps = 8.0 * chance.weibull(chance.uniform(0.5, 1.3), count)
    return rectangles(after_gaps(gaps, 1.0), 1.0)


def poisson_clusters(chance: Chance) -> Stream:
    """Random moments, each followed by a few bursts (Neyman and Scott)."""
    moments = np.cumsum(chance.exponential(60.0, int(chance.integers(4, 20))))
    bursts = [moment + chance.exponential(4.0, 1 + chance.poisson(3.0)) for moment in moments]
    return rectangles(np.sort(np.concatenate(bursts)), 0.5)


def self_similar(chance: Chance) -> Stream:
    """Sources that are on and off for times with heavy tails, added up."""
    total = np.zeros(2000)
    for _ in range(int(chance.integers(3, 12))):
        spells = 2.0 + 4.0 * chance.pareto(1.3, 800)
        edges = np.cumsum(spells).astype(np.int64)
        edges = edges[edges < len(total)]
        change = np.zeros(len(total))
        np.add.at(change, edges, 1.0)
        total += np.cumsum(change) % 2
    return samples(LEVEL * total, 0.5)


def noisy_ramp(chance: Chance) -> Stream:
    count = int(chance.integers(100, 2000))
    ramp = np.linspace(0.0, 1.0, count) ** chance.uniform(0.5, 3.0)
    return samples(LEVEL * ramp * (1.0 + 0.2 * chance.standard_normal(count)), 0.5)


def growing_gaps(chance: Chance) -> Stream:
    """Each wait longer than the one before, by up to twice."""
    count = int(chance.integers(5, 12))
    gaps = np.cumprod(np.full(count, chance.uniform(1.4, 2.0)))
    return rectangles(after_gaps(gaps, 1.0), 1.0)


def two_states(chance: Chance) -> Stream:
    """Busy and idle, with the same chance to change in every sample (Markov)."""
    start, stop = chance.uniform(0.01, 0.3, 2)
    busy, state = np.empty(2000), 0.0
    for i, drawn in enumerate(chance.uniform(size=2000).tolist()):
        state = float(drawn < start) if state == 0.0 else float(drawn >= stop)
        busy[i] = state
    return samples(LEVEL * busy, 0.5)


def write_with_tail(chance: Chance) -> Stream:
    """One large write, and ever fewer small ones after it."""
    count = int(chance.integers(10, 200))
    starts = 20.0 + np.sort(chance.exponential(chance.uniform(20.0, 200.0), count))
    return Stream(
        np.concatenate(([0.0], starts)),
        np.concatenate(([18.0], starts + 0.1)),
        np.concatenate(([18.0 * LEVEL], np.full(count, 0.1 * LEVEL))),
    )


def geometric_walk(chance: Chance) -> Stream:
    steps = chance.uniform(0.02, 0.3) * chance.standard_normal(int(chance.integers(200, 2000)))
    return samples(1e6 * np.exp(np.cumsum(steps - steps.mean())), 1.0)


def two_sizes_in_a_row(chance: Chance) -> Stream:
    """Small and large requests without a pause, in any order."""
    count = int(chance.integers(30, 300))
    lengths = np.where(chance.uniform(size=count) < 0.2, 1.0, 0.1)
    lengths = lengths * chance.lognormal(0.0, 0.1, count)
    return rectangles(after_gaps(chance.exponential(0.01, count), lengths), lengths)


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


def many_random_ranks(chance: Chance) -> Stream:
    ranks, each = int(chance.integers(4, 32)), int(chance.integers(5, 40))
    gaps = chance.exponential(10.0, (ranks, each))
    lengths = chance.gamma(2.0, chance.uniform(0.05, 0.5), (ranks, each))
    ends = np.cumsum(gaps + lengths, axis=1)
    return Stream(
        (ends - lengths).reshape(-1), ends.reshape(-1), np.full(ranks * each, 1e8)
    )  # fmt: skip


def heavy_tailed_noise(chance: Chance) -> Stream:
    count = int(chance.integers(200, 3000))
    return samples(LEVEL * np.abs(chance.standard_t(1.5, count)), 1.0)


def heat_map_of_random_ranks(chance: Chance) -> Stream:
    return heat_map(many_random_ranks(chance), int(chance.integers(60, 300)))


def work_stealing(chance: Chance) -> Stream:
    """Tasks of random length from one queue; each worker writes when a task is done."""
    workers = int(chance.integers(2, 8))
    tasks = chance.gamma(chance.uniform(1.0, 3.0), 5.0, (workers, 20))
    starts = np.sort(np.cumsum(tasks, axis=1).reshape(-1))
    return rectangles(starts, 0.3)


def random_length_epochs(chance: Chance) -> Stream:
    """Bursts of requests whose number and pauses are random."""
    count = int(chance.integers(5, 30))
    lengths = chance.lognormal(1.0, 0.8, count)
    starts = after_gaps(chance.weibull(0.9, count) * 15.0, lengths)
    return requests(list(zip(starts.tolist(), lengths.tolist(), strict=True)), chance)


# With a rhythm


def _clock(chance: Chance, low: int, high: int) -> tuple[float, FloatArray]:
    period = float(np.exp(chance.uniform(np.log(0.5), np.log(300.0))))
    return period, period * np.arange(int(chance.integers(low, high)), dtype=np.float64)


def _joined(*streams: Stream, periods: tuple[float, ...]) -> Stream:
    parts = ("start", "end", "amount")
    start, end, amount = (np.concatenate([getattr(one, part) for one in streams]) for part in parts)
    return Stream(start, end, amount, periods)


def log_normal_bursts(chance: Chance) -> Stream:
    """Bursts of requests of very different size, started by a clock."""
    period, starts = _clock(chance, 8, 31)
    lengths = np.minimum(0.1 * period * chance.lognormal(0.0, 0.7, len(starts)), 0.7 * period)
    return requests(list(zip(starts.tolist(), lengths.tolist(), strict=True)), chance, period)


def drifting_by_a_tenth(chance: Chance) -> Stream:
    period, starts = _clock(chance, 10, 41)
    low, high = (1.0, 1.1) if chance.uniform() < 0.5 else (1.1, 1.0)
    slower = np.cumsum(period * np.linspace(low, high, len(starts)))
    return rectangles(slower, period * chance.uniform(0.05, 0.4), float(np.diff(slower).mean()))


def half_the_ranks_late(chance: Chance) -> Stream:
    period, starts = _clock(chance, 5, 25)
    ranks = int(chance.integers(4, 40))
    late = period * chance.uniform(0.1, 0.3) * (np.arange(ranks) % 2)
    begin = starts[:, None] + late + 0.01 * period * chance.exponential(size=(len(starts), ranks))
    length = 0.1 * period * chance.lognormal(0.0, 0.2, begin.shape)
    amount = np.full(begin.size, 1e8)
    return Stream(begin.reshape(-1), (begin + length).reshape(-1), amount, (period,))


def unequal_bytes(chance: Chance) -> Stream:
    period, starts = _clock(chance, 6, 31)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.4), period)
    amount = stream.amount * chance.lognormal(0.0, 1.0, len(starts))
    return Stream(stream.start, stream.end, amount, stream.periods)


def long_start_up(chance: Chance) -> Stream:
    """An input is read, then nothing for long, then checkpoints."""
    period, starts = _clock(chance, 5, 25)
    wait = period * chance.uniform(2.0, 12.0)
    stream = rectangles(wait + starts, period * chance.uniform(0.05, 0.4))
    begin = rectangles(np.array([0.0]), period * chance.uniform(0.02, 0.5))
    return _joined(begin, stream, periods=(period,))


def long_pause(chance: Chance) -> Stream:
    period, starts = _clock(chance, 10, 31)
    pause = period * chance.uniform(2.5, 9.0) * (np.arange(len(starts)) >= len(starts) // 2)
    return rectangles(starts + pause, period * chance.uniform(0.05, 0.4), period)


def reads_then_writes(chance: Chance) -> Stream:
    """A long read of many requests, then writes with a rhythm."""
    period, starts = _clock(chance, 6, 25)
    reading = period * chance.uniform(0.5, 4.0)
    first = requests([(0.0, reading)], chance)
    first = Stream(first.start, first.end, first.amount * LEVEL / 1e8)
    bursts = rectangles(reading + period + starts, period * chance.uniform(0.05, 0.3))
    return _joined(first, bursts, periods=(period,))


def large_final_output(chance: Chance) -> Stream:
    period, starts = _clock(chance, 6, 25)
    length = period * chance.uniform(0.05, 0.3)
    last = rectangles(starts[-1:] + period, length * chance.uniform(4.0, 12.0))
    return _joined(rectangles(starts, length), last, periods=(period,))


def files_in_a_row(chance: Chance) -> Stream:
    """Each phase writes a few files, with a pause after each."""
    period, starts = _clock(chance, 5, 25)
    files = int(chance.integers(2, 6))
    step = period * chance.uniform(0.3, 0.5) / files
    begin = (starts[:, None] + step * np.arange(files)).reshape(-1)
    return rectangles(begin, step * chance.uniform(0.3, 0.9), period)


def many_small_writes(chance: Chance) -> Stream:
    """A logger: one short request at a time, hundreds of times."""
    period, starts = _clock(chance, 100, 800)
    late = 0.05 * period * chance.standard_normal(len(starts))
    return rectangles(np.sort(starts + late), period * chance.uniform(0.001, 0.02), period)


def every_few_larger(chance: Chance) -> Stream:
    """Every third to sixth output is larger; both distances are right."""
    period, starts = _clock(chance, 18, 50)
    every = int(chance.integers(3, 7))
    lengths = np.where(np.arange(len(starts)) % every == 0, 0.35, 0.08) * period
    return rectangles(starts, lengths, period, every * period)


def over_steady_load(chance: Chance) -> Stream:
    period, starts = _clock(chance, 6, 25)
    interval = period / 40
    times = interval * np.arange(int((starts[-1] + period) / interval))
    busy = times % period < period * chance.uniform(0.1, 0.4)
    noise = chance.uniform(0.05, 0.3) * chance.standard_normal(len(times))
    return samples(LEVEL * (1.0 + chance.uniform(1.0, 4.0) * busy + noise), interval, period)


def rank_after_rank(chance: Chance) -> Stream:
    """Within a phase ranks write one after the other."""
    period, starts = _clock(chance, 5, 25)
    ranks = int(chance.integers(4, 64))
    step = period * chance.uniform(0.1, 0.5) / ranks
    begin = starts[:, None] + step * np.arange(ranks)
    lengths = step * chance.uniform(0.6, 0.95, begin.size)
    return rectangles(begin.reshape(-1), lengths, period)


def coarse_heat_map(chance: Chance) -> Stream:
    """Only a few bins a period."""
    period, starts = _clock(chance, 10, 40)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.3), period)
    return heat_map(stream, int(len(starts) * chance.uniform(3.2, 6.0)))


def off_by_a_fifth(chance: Chance) -> Stream:
    """Anywhere within a fifth of the period around each tick of a clock."""
    period, starts = _clock(chance, 10, 41)
    late = period * chance.uniform(-0.1, 0.1, len(starts))
    return rectangles(starts + late, period * chance.uniform(0.05, 0.3), period)


def shrinking_bursts(chance: Chance) -> Stream:
    """Output that gets smaller, such as that of a solver that converges."""
    period, starts = _clock(chance, 8, 25)
    lengths = 0.4 * period * np.cumprod(np.full(len(starts), chance.uniform(0.8, 0.95)))
    return rectangles(starts, lengths, period)


def alternating_lengths(chance: Chance) -> Stream:
    """A short and a long output by turns; both distances are right."""
    period, starts = _clock(chance, 10, 40)
    lengths = np.where(np.arange(len(starts)) % 2, 0.1, 0.3) * period
    return rectangles(starts, lengths, period, 2 * period)


def modulated_requests(chance: Chance) -> Stream:
    """Small requests all the time, four times as many in one half of each period."""
    period, starts = _clock(chance, 8, 25)
    end, count = float(starts[-1] + period), 60 * len(starts)
    times = np.sort(chance.uniform(0.0, end, count))
    kept = (times % period < period / 2) | (chance.uniform(size=count) < 0.15)
    return rectangles(times[kept], 0.005 * period, period)


OTHER_WITHOUT_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        weibull_gaps, poisson_clusters, self_similar, noisy_ramp, growing_gaps, two_states,
        write_with_tail, geometric_walk, two_sizes_in_a_row, changing_rate, aftershocks,
        many_random_ranks, heavy_tailed_noise, heat_map_of_random_ranks, work_stealing,
        random_length_epochs,
    )
}  # fmt: skip
OTHER_WITH_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        log_normal_bursts, drifting_by_a_tenth, half_the_ranks_late, unequal_bytes,
        long_start_up, long_pause, reads_then_writes, large_final_output, files_in_a_row,
        many_small_writes, every_few_larger, over_steady_load, rank_after_rank,
        coarse_heat_map, off_by_a_fifth, shrinking_bursts, alternating_lengths,
        modulated_requests,
    )
}  # fmt: skip
