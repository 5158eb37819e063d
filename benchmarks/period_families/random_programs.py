"""Programs without a period: serial streams, tasks, loaders, builds, people."""

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
    heat_map,
    joined,
    rectangles,
    requests,
)


def work_stealing(chance: Chance) -> Stream:
    """Tasks of random length from one queue; each worker writes when a task is done."""
    workers = int(chance.integers(2, 8))
    tasks = chance.gamma(chance.uniform(1.0, 3.0), 5.0, (workers, 20))
    starts = np.sort(np.cumsum(tasks, axis=1).reshape(-1))
    return rectangles(starts, 0.3)


def many_random_ranks(chance: Chance) -> Stream:
    ranks, each = int(chance.integers(4, 32)), int(chance.integers(5, 40))
    gaps = chance.exponential(10.0, (ranks, each))
    lengths = chance.gamma(2.0, chance.uniform(0.05, 0.5), (ranks, each))
    ends = np.cumsum(gaps + lengths, axis=1)
    return Stream(
        (ends - lengths).reshape(-1), ends.reshape(-1), np.full(ranks * each, 1e8)
    )  # fmt: skip


def heat_map_of_random_ranks(chance: Chance) -> Stream:
    return heat_map(many_random_ranks(chance), int(chance.integers(60, 300)))


def parameter_sweep(chance: Chance) -> Stream:
    """Runs of very different lengths, with outputs of a few sizes."""
    count = int(chance.integers(6, 40))
    computing = np.exp(chance.uniform(np.log(2.0), np.log(40.0), count))
    lengths = chance.choice([0.5, 1.0, 2.0, 4.0], count)
    return rectangles(after_gaps(computing, lengths), lengths)


def write_with_tail(chance: Chance) -> Stream:
    """One large write, and ever fewer small ones after it."""
    count = int(chance.integers(10, 200))
    starts = 20.0 + np.sort(chance.exponential(chance.uniform(20.0, 200.0), count))
    return Stream(
        np.concatenate(([0.0], starts)),
        np.concatenate(([18.0], starts + 0.1)),
        np.concatenate(([18.0 * LEVEL], np.full(count, 0.1 * LEVEL))),
    )


def random_length_epochs(chance: Chance) -> Stream:
    """Bursts of requests whose number and pauses are random."""
    count = int(chance.integers(5, 30))
    lengths = chance.lognormal(1.0, 0.8, count)
    starts = after_gaps(chance.weibull(0.9, count) * 15.0, lengths)
    return requests(list(zip(starts.tolist(), lengths.tolist(), strict=True)), chance)


def log_normal_compute(chance: Chance) -> Stream:
    """Bursts of requests after computing for times that vary by half or more."""
    count = int(chance.integers(6, 40))
    gaps = chance.lognormal(2.3, chance.uniform(0.5, 1.0), count)
    return requests([(float(start), 2.0) for start in after_gaps(gaps, 2.0)], chance)


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


def two_sizes_in_a_row(chance: Chance) -> Stream:
    """Small and large requests without a pause, in any order."""
    count = int(chance.integers(30, 300))
    lengths = np.where(chance.uniform(size=count) < 0.2, 1.0, 0.1)
    lengths = lengths * chance.lognormal(0.0, 0.1, count)
    return rectangles(after_gaps(chance.exponential(0.01, count), lengths), lengths)


def walking_rate(chance: Chance) -> Stream:
    """Requests at random times whose rate is a random walk."""
    walk = np.cumsum(0.15 * chance.standard_normal(1000))
    counts = chance.poisson(np.minimum(0.3 * np.exp(walk - walk.mean()), 5.0))
    starts = np.repeat(np.arange(1000), counts) + chance.uniform(size=int(counts.sum()))
    return rectangles(np.sort(starts), 0.1)


def storms(chance: Chance) -> Stream:
    """Tens of bursts in a short time, at random moments."""
    moments = np.cumsum(chance.exponential(120.0, int(chance.integers(3, 9))))
    bursts = [
        moment + chance.uniform(0.0, chance.uniform(2.0, 20.0), int(chance.integers(5, 40)))
        for moment in moments
    ]
    return rectangles(np.sort(np.concatenate(bursts)), 0.1)


def parallel_make(chance: Chance) -> Stream:
    """Workers that read a source, compile for a while and write an object."""
    workers, files = int(chance.integers(2, 16)), int(chance.integers(10, 60))
    compiling = chance.lognormal(0.5, 0.8, (workers, files))
    reads = np.cumsum(compiling + 0.03, axis=1) - compiling
    writes = reads + compiling
    return joined(
        Stream(reads.reshape(-1), reads.reshape(-1) + 0.01, np.full(reads.size, 2e5)),
        Stream(writes.reshape(-1), writes.reshape(-1) + 0.02, np.full(writes.size, 1e6)),
    )


def random_steps(chance: Chance) -> Stream:
    """A data loader whose steps vary by a third to two thirds."""
    count, shape = int(chance.integers(20, 300)), chance.uniform(1 / 3, 0.6) ** -2.0
    lengths = chance.gamma(4.0, 0.05, count)
    return rectangles(after_gaps(chance.gamma(shape, 1.0 / shape, count), lengths), lengths)


def several_loaders(chance: Chance) -> Stream:
    workers, steps = int(chance.integers(2, 8)), int(chance.integers(10, 60))
    starts = np.sort(np.cumsum(chance.gamma(4.0, 2.5, (workers, steps)), axis=1).reshape(-1))
    return rectangles(starts, 0.2 * chance.lognormal(0.0, 0.3, len(starts)))


def thinking(chance: Chance) -> Stream:
    """A person asks, looks and asks again."""
    count = int(chance.integers(8, 60))
    lengths = chance.lognormal(0.0, 1.2, count)
    return rectangles(after_gaps(chance.lognormal(2.5, 1.0, count), lengths), lengths)


def files_copied(chance: Chance) -> Stream:
    """One file after the other, of very different sizes."""
    count = int(chance.integers(20, 200))
    lengths = chance.lognormal(0.0, 1.0, count)
    gaps = chance.uniform(0.05, 0.2) * chance.lognormal(0.0, 0.5, count)
    return rectangles(after_gaps(gaps, lengths), lengths)


def heat_map_of_random_steps(chance: Chance) -> Stream:
    return heat_map(random_steps(chance), int(chance.integers(60, 600)))


def loader_30(chance: Chance) -> Stream:
    """A data loader whose steps vary by 30 %."""
    count, shape = int(chance.integers(20, 300)), 0.3**-2.0
    steps = chance.gamma(shape, 1.0 / shape, count)
    return rectangles(np.cumsum(steps), 0.2 * steps * chance.uniform(0.5, 1.0, count))


def loader_of_many_files(chance: Chance) -> Stream:
    """Bursts of requests at steps that vary by 35 %."""
    count = int(chance.integers(10, 60))
    steps = 10.0 * chance.lognormal(0.0, 0.35, count)
    return bursts_at(np.cumsum(steps), 1.5 * chance.lognormal(0.0, 0.3, count), chance)


def two_random_programs(chance: Chance) -> Stream:
    """Log-normal gaps of one, Weibull gaps of another."""
    first = after_gaps(chance.lognormal(2.0, 0.6, int(chance.integers(10, 40))), 1.0)
    second = after_gaps(9.0 * chance.weibull(1.5, int(chance.integers(10, 40))), 2.0)
    return joined(rectangles(first, 1.0), rectangles(second, 2.0))


FAMILIES: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        work_stealing, many_random_ranks, heat_map_of_random_ranks, parameter_sweep,
        write_with_tail, random_length_epochs, log_normal_compute, serial_requests,
        serial_gamma_requests, serial_equal_requests, two_sizes_in_a_row, walking_rate, storms,
        parallel_make, random_steps, several_loaders, thinking, files_copied,
        heat_map_of_random_steps,
        loader_30, loader_of_many_files, two_random_programs,
    )
}  # fmt: skip
