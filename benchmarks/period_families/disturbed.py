"""Periods that are disturbed: late, missing, slowing down, among other I/O."""

from __future__ import annotations

import math
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
from benchmarks.period_families.trains import bursts_of_requests


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
    period, starts = train(chance, 8, 31)
    late = period * chance.uniform(0.02, 0.12) * chance.standard_normal(len(starts))
    return rectangles(np.sort(starts + late), period * chance.uniform(0.05, 0.3), period)


def off_by_a_fifth(chance: Chance) -> Stream:
    """Anywhere within a fifth of the period around each tick of a clock."""
    period, starts = clock(chance, 10, 41)
    late = period * chance.uniform(-0.1, 0.1, len(starts))
    return rectangles(starts + late, period * chance.uniform(0.05, 0.3), period)


def drifting_by_a_tenth(chance: Chance) -> Stream:
    period, starts = clock(chance, 10, 41)
    low, high = (1.0, 1.1) if chance.uniform() < 0.5 else (1.1, 1.0)
    slower = np.cumsum(period * np.linspace(low, high, len(starts)))
    return rectangles(slower, period * chance.uniform(0.05, 0.4), float(np.diff(slower).mean()))


def slowing_down(chance: Chance) -> Stream:
    """A period that grows by 5 % from the first phase to the last."""
    period, starts = clock(chance, 8, 31)
    slower = np.cumsum(period * np.linspace(1.0, 1.05, len(starts)))
    return rectangles(slower, period * chance.uniform(0.05, 0.4), float(np.diff(slower).mean()))


def varying_compute(chance: Chance) -> Stream:
    """Bursts of requests after computing for times that vary by 15 %."""
    period, starts = clock(chance, 8, 31)
    lengths = period * chance.uniform(0.05, 0.2) * chance.lognormal(0.0, 0.1, len(starts))
    begin = after_gaps(period * chance.lognormal(0.0, 0.15, len(starts)), lengths)
    bursts = list(zip(begin.tolist(), lengths.tolist(), strict=True))
    return requests(bursts, chance, float(np.diff(begin).mean()))


def missing_bursts(chance: Chance) -> Stream:
    period, starts = train(chance, 12, 31)
    kept = chance.uniform(size=len(starts)) > chance.uniform(0.05, 0.2)
    return rectangles(starts[kept], period * chance.uniform(0.05, 0.4), period)


def long_pause(chance: Chance) -> Stream:
    period, starts = clock(chance, 10, 31)
    pause = period * chance.uniform(2.5, 9.0) * (np.arange(len(starts)) >= len(starts) // 2)
    return rectangles(starts + pause, period * chance.uniform(0.05, 0.4), period)


def long_start_up(chance: Chance) -> Stream:
    """An input is read, then nothing for long, then checkpoints."""
    period, starts = clock(chance, 5, 25)
    wait = period * chance.uniform(2.0, 12.0)
    stream = rectangles(wait + starts, period * chance.uniform(0.05, 0.4))
    begin = rectangles(np.array([0.0]), period * chance.uniform(0.02, 0.5))
    return joined(begin, stream, periods=(period,))


def period_after_other_work(chance: Chance) -> Stream:
    """A preparation with random I/O, then a period."""
    period, starts = train(chance, 10, 25)
    length = period * chance.uniform(0.1, 0.3)
    count = int(chance.integers(2, 6))
    before = np.sort(chance.uniform(-0.4 * count * period, -0.5 * period, count))
    lengths = np.concatenate(
        (length * chance.uniform(0.2, 2.0, count), np.full(len(starts), length))
    )
    return rectangles(np.concatenate((before, starts)) - float(before[0]), lengths, period)


def reads_then_writes(chance: Chance) -> Stream:
    """A long read of many requests, then writes with a period."""
    period, starts = clock(chance, 6, 25)
    reading = period * chance.uniform(0.5, 4.0)
    first = requests([(0.0, reading)], chance)
    first = Stream(first.start, first.end, first.amount * LEVEL / 1e8)
    bursts = rectangles(reading + period + starts, period * chance.uniform(0.05, 0.3))
    return joined(first, bursts, periods=(period,))


def large_final_output(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 25)
    length = period * chance.uniform(0.05, 0.3)
    last = rectangles(starts[-1:] + period, length * chance.uniform(4.0, 12.0))
    return joined(rectangles(starts, length), last, periods=(period,))


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


def over_steady_load(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 25)
    interval = period / 40
    times = interval * np.arange(int((starts[-1] + period) / interval))
    busy = times % period < period * chance.uniform(0.1, 0.4)
    noise = chance.uniform(0.05, 0.3) * chance.standard_normal(len(times))
    return samples(LEVEL * (1.0 + chance.uniform(1.0, 4.0) * busy + noise), interval, period)


def modulated_requests(chance: Chance) -> Stream:
    """Small requests all the time, four times as many in one half of each period."""
    period, starts = clock(chance, 8, 25)
    end, count = float(starts[-1] + period), 60 * len(starts)
    times = np.sort(chance.uniform(0.0, end, count))
    kept = (times % period < period / 2) | (chance.uniform(size=count) < 0.15)
    return rectangles(times[kept], 0.005 * period, period)


def two_periods(chance: Chance) -> Stream:
    """A frequent small one and a rare large one; either is a right answer."""
    short, starts = train(chance, 24, 60)
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
    """One period, then another; either is a right answer."""
    first, starts = train(chance, 8, 20)
    second = first * float(chance.choice([chance.uniform(0.4, 0.7), chance.uniform(1.5, 2.5)]))
    later = float(starts[-1]) + second * np.arange(1.0, float(chance.integers(9, 20)))
    length = min(first, second) * chance.uniform(0.05, 0.4)
    return rectangles(np.concatenate((starts, later)), length, first, second)


def late_half(chance: Chance) -> Stream:
    """Half of the ranks come later, now more and now less."""
    period, starts = clock(chance, 5, 25)
    shape = (len(starts), int(chance.integers(4, 40)))
    late = period * chance.uniform(0.05, 0.3) * chance.uniform(0.7, 1.3, (len(starts), 1))
    begin = starts[:, None] + late * (np.arange(shape[1]) % 2)
    begin = begin + 0.005 * period * chance.exponential(size=shape)
    length = 0.08 * period * chance.lognormal(0.0, 0.2, shape)
    return Stream(begin.reshape(-1), (begin + length).reshape(-1), np.full(begin.size, 1e8),
                  (period,))  # fmt: skip


def two_jobs(chance: Chance) -> Stream:
    """Two periods without a common multiple; either is a right answer."""
    period, starts = clock(chance, 15, 40)
    other = period * float(chance.choice([2**0.5, 1.618, math.e, np.pi / 2]))
    later = other * (float(chance.uniform()) + np.arange(int(starts[-1] / other), dtype=np.float64))
    lengths = period * chance.uniform(0.05, 0.15, 2)
    return joined(
        rectangles(starts, lengths[0]), rectangles(later, lengths[1]), periods=(period, other)
    )


def stray_requests(chance: Chance) -> Stream:
    """Bursts of requests, and single ones as large at random times."""
    period, starts = clock(chance, 6, 30)
    lengths = period * chance.uniform(0.08, 0.25, len(starts))
    bursts = bursts_at(starts, lengths, chance)
    count = int(len(starts) * chance.uniform(0.3, 2.0))
    stray = chance.uniform(0.0, float(bursts.end.max()), count)
    length = float(np.median(bursts.end - bursts.start))
    return joined(bursts, Stream(stray, stray + length, np.full(count, 4e6)), periods=(period,))


def one_of_five_missing(chance: Chance) -> Stream:
    """Every fifth burst is missing; the distance of the missing ones is right, too."""
    period, starts = clock(chance, 10, 41)
    kept = np.arange(len(starts)) % 5 != int(chance.integers(5))
    return rectangles(starts[kept], period * chance.uniform(0.05, 0.4), period, 5 * period)


def one_missing_of_few(chance: Chance) -> Stream:
    period, starts = clock(chance, 6, 10)
    kept = np.delete(starts, int(chance.integers(1, len(starts) - 1)))
    return rectangles(kept, period * chance.uniform(0.05, 0.3), period)


def over_equal_requests(chance: Chance) -> Stream:
    """Another reader goes on all the time; its distance is right, too."""
    period, starts = clock(chance, 6, 25)
    step = period / chance.uniform(10, 50)
    begin = np.arange(0.0, float(starts[-1] + period), step)
    amount = np.full(len(begin), 0.9 * step * LEVEL * chance.uniform(0.05, 0.4))
    bursts = rectangles(starts, period * chance.uniform(0.05, 0.3))
    return joined(bursts, Stream(begin, begin + 0.9 * step, amount), periods=(period, step))


def over_random_steps(chance: Chance) -> Stream:
    """Checkpoints, and a data loader with random steps."""
    period, starts = clock(chance, 6, 25)
    end, step = float(starts[-1] + period), period / chance.uniform(20, 60)
    begin = np.cumsum(step * chance.lognormal(0.0, 0.5, int(1.5 * end / step)))
    begin = begin[begin < end]
    amount = np.full(len(begin), 0.3 * step * LEVEL * chance.uniform(0.2, 0.8))
    bursts = rectangles(starts, period * chance.uniform(0.08, 0.3))
    return joined(bursts, Stream(begin, begin + 0.3 * step, amount), periods=(period,))


def polled_counter(chance: Chance) -> Stream:
    """A counter that is read a few times a period, not quite evenly."""
    period, starts = clock(chance, 8, 30)
    steps = rectangles(starts, period * chance.uniform(0.1, 0.4)).steps()
    count = int(len(starts) * chance.uniform(5, 15))
    edges = np.linspace(0.0, float(steps.edges[-1]) + 0.3 * period, count + 1)
    edges[1:-1] += edges[1] * chance.uniform(-0.1, 0.1, count - 1)
    volume = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges))))
    return Stream(edges[:-1], edges[1:], np.diff(np.interp(edges, steps.edges, volume)), (period,))


def jittering_compute(chance: Chance) -> Stream:
    """Bursts of requests after computing for times that vary by 15 to 25 %."""
    period, starts = clock(chance, 10, 40)
    lengths = 0.15 * period * chance.lognormal(0.0, 0.15, len(starts))
    gaps = 0.85 * period * chance.lognormal(0.0, chance.uniform(0.15, 0.25), len(starts))
    begin = after_gaps(gaps, lengths)
    return bursts_at(begin, lengths, chance, float(np.diff(begin).mean()))


def modulated_rate(chance: Chance) -> Stream:
    """Requests at random times, three times as many in a third of each period."""
    period, starts = clock(chance, 8, 30)
    count = 80 * len(starts)
    times = np.sort(chance.uniform(0.0, float(starts[-1] + period), count))
    kept = (times % period < 0.3 * period) | (chance.uniform(size=count) < 0.33)
    return rectangles(times[kept], 0.002 * period, period)


def heat_map_of_modulated_rate(chance: Chance) -> Stream:
    return heat_map(modulated_rate(chance), int(chance.integers(150, 500)))


def checkpoints_and_log(chance: Chance) -> Stream:
    """Checkpoints, and a line of a log after every step; both distances are right."""
    period, starts = clock(chance, 6, 20)
    steps = int(chance.integers(8, 30))
    lines = period / steps * np.arange(steps * len(starts), dtype=np.float64)
    lengths = period * chance.uniform(0.05, 0.2, len(starts))
    log = Stream(lines, lines + 1e-4 * period, np.full(len(lines), 200.0))
    return joined(bursts_at(starts, lengths, chance), log, periods=(period, period / steps))


def among_random_requests(chance: Chance) -> Stream:
    """Equal bursts, and a few to many short requests at random times."""
    period, starts = clock(chance, 8, 30)
    count = int(len(starts) * chance.uniform(2.0, 15.0))
    other = chance.uniform(0.0, float(starts[-1] + period), count)
    return joined(
        rectangles(starts, period * chance.uniform(0.05, 0.2)),
        rectangles(other, 0.01 * period * chance.lognormal(0.0, 0.5, count)),
        periods=(period,),
    )


def period_in_the_second_half(chance: Chance) -> Stream:
    period, starts = clock(chance, 8, 25)
    half, count = float(starts[-1]), int(chance.integers(5, 25))
    before = np.sort(chance.uniform(0.0, half, count))
    return joined(
        rectangles(before, period * chance.uniform(0.02, 0.2, count)),
        rectangles(half + period + starts, period * chance.uniform(0.05, 0.3)),
        periods=(period,),
    )


def jittering_requests(chance: Chance) -> Stream:
    """Bursts of requests at distances that vary by 5 to 10 %."""
    period, starts = clock(chance, 8, 40)
    steps = 1.0 + chance.uniform(0.05, 0.1) * chance.standard_normal(len(starts))
    begin = np.cumsum(period * np.maximum(steps, 0.6))
    lengths = np.full(len(begin), period * chance.uniform(0.05, 0.3))
    return bursts_at(begin, lengths, chance, float(np.diff(begin).mean()))


def warm_up(chance: Chance) -> Stream:
    """The first few steps take up to twice as long, then all are even."""
    period, starts = clock(chance, 10, 40)
    slower = int(chance.integers(2, 5))
    distances = np.full(len(starts), period)
    distances[:slower] *= np.linspace(chance.uniform(1.4, 2.0), 1.1, slower)
    return rectangles(np.cumsum(distances), period * chance.uniform(0.05, 0.3), period)


def wobbling(chance: Chance) -> Stream:
    """A shared file system: a slow period comes after a slow one, by 3 to 6 %."""
    period, starts = clock(chance, 10, 40)
    size, level, steps = chance.uniform(0.03, 0.06), 0.0, []
    for shock in chance.standard_normal(len(starts)).tolist():
        level = 0.7 * level + 0.7 * shock
        steps.append(1.0 + size * level)
    begin = np.cumsum(period * np.array(steps))
    lengths = period * chance.uniform(0.05, 0.2) * chance.lognormal(0.0, 0.1, len(begin))
    return bursts_at(begin, lengths, chance, float(np.diff(begin).mean()))


def held_up(chance: Chance) -> Stream:
    """One step in ten is held up, for up to half a period; those after it are late for good."""
    period, starts = clock(chance, 10, 40)
    late = (chance.uniform(size=len(starts)) < 0.1) * chance.uniform(0.1, 0.5, len(starts))
    begin = np.cumsum(period * (1.0 + late + 0.01 * chance.standard_normal(len(starts))))
    usual, mean = period, float(np.diff(begin).mean())
    return rectangles(begin, period * chance.uniform(0.05, 0.3), usual, mean)


FAMILIES: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        drifting, clocked, off_by_a_fifth, drifting_by_a_tenth, slowing_down, varying_compute,
        missing_bursts, long_pause, long_start_up, period_after_other_work, reads_then_writes,
        large_final_output, bursts_over_background, over_steady_load, modulated_requests,
        two_periods, change, late_half, two_jobs, stray_requests, one_of_five_missing,
        one_missing_of_few, over_equal_requests, over_random_steps, polled_counter,
        jittering_compute, modulated_rate, heat_map_of_modulated_rate, checkpoints_and_log,
        among_random_requests, period_in_the_second_half, jittering_requests, warm_up, wobbling,
        held_up,
    )
}  # fmt: skip
