"""Streams of requests and samples with a known rhythm, or without any, drawn by a seed.

Each family is a function of a random generator. A `Stream` holds pieces of I/O: single
requests, or samples that follow each other without a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.model.signal import FloatArray, StepFunction
from ioprism.views.time.steps import steps_of_intervals

Chance = np.random.Generator
LEVEL = 1e9  # bytes per second


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Pieces of I/O and the periods that are right answers; none for a stream without rhythm."""

    start: FloatArray
    end: FloatArray
    amount: FloatArray
    periods: tuple[float, ...] = ()

    def steps(self) -> StepFunction:
        """The bandwidth over time."""
        return steps_of_intervals(self.start, self.end, self.amount)

    def is_right(self, seconds: float | None, *, within: float = 0.05) -> bool:
        """Whether an answer is right: one of the periods, or None where there is none."""
        if seconds is None or not self.periods:
            return seconds is None and not self.periods
        return any(abs(seconds / true - 1.0) <= within for true in self.periods)


Family = Callable[[Chance], Stream]


def rectangles(starts: FloatArray, lengths: FloatArray | float, *periods: float) -> Stream:
    """Bursts of one request each, all of one height."""
    lengths = np.broadcast_to(np.asarray(lengths, dtype=np.float64), starts.shape)
    return Stream(starts, starts + lengths, LEVEL * lengths, periods)


def samples(values: FloatArray, interval: float, *periods: float) -> Stream:
    """A metric sampled at equal distances."""
    start = interval * np.arange(len(values), dtype=np.float64)
    return Stream(start, start + interval, np.maximum(values, 0.0) * interval, periods)


def requests(bursts: Sequence[tuple[float, float]], chance: Chance, *periods: float) -> Stream:
    """Bursts (start, length), each made of requests with pauses between them."""
    parts = [_requests_of_burst(start, length, chance) for start, length in bursts]
    start, end, amount = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Stream(start, end, amount, periods)


def _requests_of_burst(
    start: float, length: float, chance: Chance
) -> tuple[FloatArray, FloatArray, FloatArray]:
    count = int(chance.integers(10, 60))
    pauses = chance.exponential(size=count) * chance.uniform(0.2, 2.0)
    works = chance.lognormal(0.0, 0.3, count)
    edges = np.cumsum(np.stack((works, pauses), axis=1).reshape(-1))
    edges = start + np.concatenate(([0.0], edges[:-1])) * (length / edges[-2])
    return edges[0::2], edges[1::2], np.full(count, 4e6)


def heat_map(stream: Stream, bins: int) -> Stream:
    """What a tool tells that keeps bytes in equal bins only."""
    edges = np.linspace(0.0, float(stream.end.max()), bins + 1)
    steps = stream.steps()
    volume = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges))))
    amount = np.diff(np.interp(edges, steps.edges, volume, left=0.0, right=volume[-1]))
    return Stream(edges[:-1], edges[1:], amount, stream.periods)


def after_gaps(gaps: FloatArray, lengths: FloatArray | float) -> FloatArray:
    """Starts of bursts that follow each other after gaps."""
    lengths = np.broadcast_to(np.asarray(lengths, dtype=np.float64), gaps.shape)
    return np.cumsum(gaps) + np.concatenate(([0.0], np.cumsum(lengths[:-1])))


# Without a rhythm


def white_noise(chance: Chance) -> Stream:
    return samples(10.0 + chance.standard_normal(int(chance.integers(100, 3000))), 1.0)


def red_noise(chance: Chance) -> Stream:
    memory, shocks = chance.uniform(0.5, 0.99), chance.standard_normal(1500)
    values = np.empty(1500)
    level = 0.0
    for i, shock in enumerate(shocks.tolist()):
        level = memory * level + shock
        values[i] = level
    return samples(values - values.min(), 0.5)


def random_walk(chance: Chance) -> Stream:
    values = np.cumsum(chance.standard_normal(int(chance.integers(200, 2000))))
    return samples(values - values.min(), 1.0)


def pink_noise(chance: Chance) -> Stream:
    count = 2048
    waves = chance.standard_normal(count // 2 + 1) + 1j * chance.standard_normal(count // 2 + 1)
    waves[1:] /= np.arange(1, count // 2 + 1) ** chance.uniform(0.3, 0.8)
    waves[0] = 0.0
    values = np.fft.irfft(waves)
    return samples(values - values.min(), 1.0)


def thresholded_noise(chance: Chance) -> Stream:
    width = int(chance.integers(2, 40))
    noise = np.convolve(chance.standard_normal(3000), np.hanning(width + 2), "valid")
    busy = noise > chance.uniform(0.0, 1.5) * noise.std()
    return samples(np.where(busy, LEVEL, 0.0), 0.1)


def thresholded_white_noise(chance: Chance) -> Stream:
    busy = chance.uniform(size=int(chance.integers(100, 2000))) < chance.uniform(0.02, 0.5)
    return samples(np.where(busy, LEVEL, 0.0), 1.0)


def thresholded_walk(chance: Chance) -> Stream:
    values = np.cumsum(chance.standard_normal(3000))
    values -= np.convolve(values, np.ones(300) / 300, "same")
    return samples(np.where(values > 0.5 * values.std(), LEVEL, 0.0), 0.1)


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


def serial_requests(chance: Chance) -> Stream:
    """One request after the other, with the little time between them that a program needs."""
    count = int(chance.integers(20, 400))
    lengths = chance.lognormal(0.0, chance.uniform(0.3, 0.8), count)
    gaps = chance.lognormal(-3.0, chance.uniform(0.2, 0.8), count)
    return rectangles(after_gaps(gaps, lengths), lengths)


def serial_gamma_requests(chance: Chance) -> Stream:
    count = int(chance.integers(20, 400))
    lengths = chance.gamma(chance.uniform(2.0, 8.0), 0.01, count)
    gaps = chance.exponential(chance.uniform(0.001, 0.01), count)
    return rectangles(after_gaps(gaps, lengths), lengths)


def serial_equal_requests(chance: Chance) -> Stream:
    """Equal requests; only the time between them varies."""
    count = int(chance.integers(20, 400))
    gaps = chance.exponential(chance.uniform(0.02, 0.3), count)
    return rectangles(after_gaps(gaps, 1.0), 1.0)


def clusters_of_requests(chance: Chance) -> Stream:
    count = int(chance.integers(4, 20))
    gaps, length = chance.exponential(30.0, count), chance.uniform(1.0, 4.0)
    starts = after_gaps(gaps, length)
    return requests([(float(s), length) for s in starts], chance)


def heat_map_of_random_bursts(chance: Chance) -> Stream:
    return heat_map(poisson_bursts(chance), int(chance.integers(60, 600)))


def one_long_burst(chance: Chance) -> Stream:
    count = int(chance.integers(50, 500))
    rise = np.minimum(np.arange(count) / chance.uniform(1, count / 2), 1.0)
    values = LEVEL * rise * (1.0 + 0.1 * chance.standard_normal(count))
    quiet = np.zeros(int(chance.integers(10, 200)))
    return samples(np.concatenate((quiet, values, quiet)), 0.5)


# With a rhythm


def _train(chance: Chance, low: int = 6, high: int = 31) -> tuple[float, FloatArray]:
    period, count = float(chance.uniform(2.0, 60.0)), int(chance.integers(low, high))
    return period, period * (float(chance.uniform()) + np.arange(count, dtype=np.float64))


def pulses(chance: Chance) -> Stream:
    period, starts = _train(chance)
    return rectangles(starts, period * chance.uniform(0.01, 0.6), period)


def few_pulses(chance: Chance) -> Stream:
    period, starts = _train(chance, 4, 7)
    jitter = 0.01 * period * chance.standard_normal(len(starts))
    return rectangles(starts + jitter, period * chance.uniform(0.05, 0.5), period)


def busy_pulses(chance: Chance) -> Stream:
    """Phases that take most of the time."""
    period, starts = _train(chance)
    return rectangles(starts, period * chance.uniform(0.6, 0.85), period)


def bursts_of_requests(chance: Chance) -> Stream:
    period, starts = _train(chance)
    length = period * chance.uniform(0.05, 0.4)
    return requests([(float(start), length) for start in starts], chance, period)


def few_bursts_of_requests(chance: Chance) -> Stream:
    period, starts = _train(chance, 4, 7)
    lengths = period * chance.uniform(0.1, 0.3) * chance.lognormal(0.0, 0.1, len(starts))
    bursts = zip(starts.tolist(), lengths.tolist(), strict=True)
    return requests(list(bursts), chance, period)


def bursts_over_background(chance: Chance) -> Stream:
    """Bursts of requests, and small requests of a log at random times."""
    bursts = bursts_of_requests(chance)
    count, end = int(chance.integers(20, 200)), float(bursts.end.max())
    starts = chance.uniform(0.0, end, count)
    length = 1e-4 * end
    return Stream(
        np.concatenate((bursts.start, starts)),
        np.concatenate((bursts.end, starts + length)),
        np.concatenate((bursts.amount, np.full(count, 4e4))),
        bursts.periods,
    )


def ranks_with_stragglers(chance: Chance) -> Stream:
    period, starts = _train(chance, 5, 20)
    ranks = int(chance.integers(8, 64))
    begin = starts[:, None] + 0.02 * period * chance.exponential(size=(len(starts), ranks))
    length = 0.1 * period * chance.lognormal(0.0, 0.4, (len(starts), ranks))
    amount = np.full(begin.size, 1e8)
    return Stream(begin.reshape(-1), (begin + length).reshape(-1), amount, (period,))


def heat_map_of_bursts(chance: Chance) -> Stream:
    period, starts = _train(chance, 6, 25)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.5), period)
    return heat_map(stream, int(len(starts) * chance.uniform(6, 30)))


def missing_bursts(chance: Chance) -> Stream:
    period, starts = _train(chance, 12, 31)
    kept = chance.uniform(size=len(starts)) > chance.uniform(0.05, 0.2)
    return rectangles(starts[kept], period * chance.uniform(0.05, 0.4), period)


def drifting(chance: Chance) -> Stream:
    """Every distance jitters, and the next one starts from there."""
    period, count = float(chance.uniform(2.0, 60.0)), int(chance.integers(8, 31))
    length = period * chance.uniform(0.05, 0.35)
    distances = np.maximum(
        period * (1.0 + chance.uniform(0.05, 0.2) * chance.standard_normal(count)), 1.1 * length
    )
    starts = np.cumsum(distances)
    return rectangles(starts, length, float(np.diff(starts).mean()))


def clocked(chance: Chance) -> Stream:
    """Bursts are late or early, but the clock goes on."""
    period, starts = _train(chance, 8, 31)
    late = period * chance.uniform(0.02, 0.12) * chance.standard_normal(len(starts))
    return rectangles(np.sort(starts + late), period * chance.uniform(0.05, 0.3), period)


def varying_height(chance: Chance) -> Stream:
    period, starts = _train(chance)
    stream = rectangles(starts, period * chance.uniform(0.05, 0.5), period)
    heights = chance.lognormal(0.0, 0.5, len(starts))
    return Stream(stream.start, stream.end, stream.amount * heights, stream.periods)


def varying_length(chance: Chance) -> Stream:
    period, starts = _train(chance)
    lengths = period * chance.uniform(0.1, 0.3) * np.clip(
        1.0 + 0.3 * chance.standard_normal(len(starts)), 0.2, 2.0)  # fmt: skip
    return rectangles(starts, lengths, period)


def noisy_samples(chance: Chance) -> Stream:
    period, starts = _train(chance, 6, 31)
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


def two_rhythms(chance: Chance) -> Stream:
    """A frequent small one and a rare large one; either is a right answer."""
    short, starts = _train(chance, 24, 60)
    ratio = int(chance.integers(4, 8))
    long = ratio * short * float(chance.uniform(1.03, 1.2))
    late = 0.3 * short + long * np.arange(int(starts[-1] / long), dtype=np.float64)
    one, other = rectangles(starts, 0.1 * short), rectangles(late, 0.35 * short)
    return Stream(
        np.concatenate((one.start, other.start)),
        np.concatenate((one.end, other.end)),
        np.concatenate((one.amount, chance.uniform(2.0, 5.0) * other.amount)),
        (short, long),
    )


def change(chance: Chance) -> Stream:
    """One rhythm, then another; either is a right answer."""
    first, starts = _train(chance, 8, 20)
    second = first * float(chance.choice([chance.uniform(0.4, 0.7), chance.uniform(1.5, 2.5)]))
    later = float(starts[-1]) + second * np.arange(1.0, float(chance.integers(9, 20)))
    length = min(first, second) * chance.uniform(0.05, 0.4)
    return rectangles(np.concatenate((starts, later)), length, first, second)


def rhythm_after_other_work(chance: Chance) -> Stream:
    """A preparation with random I/O, then a rhythm."""
    period, starts = _train(chance, 10, 25)
    length = period * chance.uniform(0.1, 0.3)
    count = int(chance.integers(2, 6))
    before = np.sort(chance.uniform(-0.4 * count * period, -0.5 * period, count))
    lengths = np.concatenate(
        (length * chance.uniform(0.2, 2.0, count), np.full(len(starts), length))
    )
    return rectangles(np.concatenate((before, starts)) - float(before[0]), lengths, period)


WITHOUT_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        white_noise, red_noise, pink_noise, random_walk, thresholded_noise,
        thresholded_white_noise, thresholded_walk, poisson_bursts, few_equal_rectangles,
        equal_rectangles, equal_rectangles_overlapping, renewal_log_normal, renewal_pareto,
        renewal_weibull, renewal_uniform, serial_requests, serial_gamma_requests,
        serial_equal_requests, clusters_of_requests, heat_map_of_random_bursts, one_long_burst,
    )
}  # fmt: skip
WITH_RHYTHM: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        pulses, few_pulses, busy_pulses, bursts_of_requests, few_bursts_of_requests,
        bursts_over_background, ranks_with_stragglers, heat_map_of_bursts, missing_bursts,
        drifting, clocked, varying_height, varying_length, noisy_samples, wave, two_rhythms,
        change, rhythm_after_other_work,
    )
}  # fmt: skip


def draw(family: Family, number: int) -> Stream:
    """The stream of this number; the same in every run."""
    name = sum(ord(letter) * (place + 1) for place, letter in enumerate(family.__name__))
    return family(np.random.default_rng([name, number]))
