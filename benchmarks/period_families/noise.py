"""Metrics without a period: noise, walks, ramps, and what lies above a level of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.period_families.streams import (
    LEVEL,
    Chance,
    Family,
    Stream,
    samples,
)
from ioprism.model.arrays import FloatArray


def _pink(chance: Chance, count: int, power: float) -> FloatArray:
    """Noise whose power falls with the frequency."""
    waves = chance.standard_normal(count // 2 + 1) + 1j * chance.standard_normal(count // 2 + 1)
    waves[1:] /= np.arange(1, count // 2 + 1) ** power
    waves[0] = 0.0
    return np.fft.irfft(waves)


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


def pink_noise(chance: Chance) -> Stream:
    values = _pink(chance, 2048, chance.uniform(0.3, 0.8))
    return samples(values - values.min(), 1.0)


def random_walk(chance: Chance) -> Stream:
    values = np.cumsum(chance.standard_normal(int(chance.integers(200, 2000))))
    return samples(values - values.min(), 1.0)


def geometric_walk(chance: Chance) -> Stream:
    steps = chance.uniform(0.02, 0.3) * chance.standard_normal(int(chance.integers(200, 2000)))
    return samples(1e6 * np.exp(np.cumsum(steps - steps.mean())), 1.0)


def heavy_tailed_noise(chance: Chance) -> Stream:
    count = int(chance.integers(200, 3000))
    return samples(LEVEL * np.abs(chance.standard_t(1.5, count)), 1.0)


def noisy_ramp(chance: Chance) -> Stream:
    count = int(chance.integers(100, 2000))
    ramp = np.linspace(0.0, 1.0, count) ** chance.uniform(0.5, 3.0)
    return samples(LEVEL * ramp * (1.0 + 0.2 * chance.standard_normal(count)), 0.5)


def one_long_burst(chance: Chance) -> Stream:
    count = int(chance.integers(50, 500))
    rise = np.minimum(np.arange(count) / chance.uniform(1, count / 2), 1.0)
    values = LEVEL * rise * (1.0 + 0.1 * chance.standard_normal(count))
    quiet = np.zeros(int(chance.integers(10, 200)))
    return samples(np.concatenate((quiet, values, quiet)), 0.5)


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


def two_states(chance: Chance) -> Stream:
    """Busy and idle, with the same chance to change in every sample (Markov)."""
    start, stop = chance.uniform(0.01, 0.3, 2)
    busy, state = np.empty(2000), 0.0
    for i, drawn in enumerate(chance.uniform(size=2000).tolist()):
        state = float(drawn < start) if state == 0.0 else float(drawn >= stop)
        busy[i] = state
    return samples(LEVEL * busy, 0.5)


def thresholded_noise(chance: Chance) -> Stream:
    width = int(chance.integers(2, 40))
    noise = np.convolve(chance.standard_normal(3000), np.hanning(width + 2), "valid")
    busy = noise > chance.uniform(0.0, 1.5) * noise.std()
    return samples(np.where(busy, LEVEL, 0.0), 0.1)


def thresholded_white_noise(chance: Chance) -> Stream:
    busy = chance.uniform(size=int(chance.integers(100, 2000))) < chance.uniform(0.02, 0.5)
    return samples(np.where(busy, LEVEL, 0.0), 1.0)


def thresholded_red_noise(chance: Chance) -> Stream:
    memory, level = chance.uniform(0.8, 0.99), 0.0
    values = np.empty(4000)
    for i, shock in enumerate(chance.standard_normal(4000).tolist()):
        level = memory * level + shock
        values[i] = level
    busy = values > chance.uniform(0.0, 1.2) * values.std()
    return samples(np.where(busy, LEVEL, 0.0), 0.25)


def thresholded_walk(chance: Chance) -> Stream:
    values = np.cumsum(chance.standard_normal(3000))
    values -= np.convolve(values, np.ones(300) / 300, "same")
    return samples(np.where(values > 0.5 * values.std(), LEVEL, 0.0), 0.1)


def clipped_pink_noise(chance: Chance) -> Stream:
    """What lies above a level of noise with much power at low frequencies."""
    noise = _pink(chance, 4096, 0.5)
    level = float(np.quantile(noise, chance.uniform(0.6, 0.95)))
    return samples(LEVEL * np.maximum(noise - level, 0.0), 0.25)


def sparse_heat_map(chance: Chance) -> Stream:
    """A few dozen bins, some of them with bytes."""
    count = int(chance.integers(20, 60))
    busy = chance.uniform(size=count) < chance.uniform(0.1, 0.6)
    busy[count // 2] = True
    return samples(LEVEL * busy * chance.lognormal(0.0, 1.0, count), 1.0)


FAMILIES: Mapping[str, Family] = {
    f.__name__: f
    for f in (
        white_noise, red_noise, pink_noise, random_walk, geometric_walk, heavy_tailed_noise,
        noisy_ramp, one_long_burst, self_similar, two_states, thresholded_noise,
        thresholded_white_noise, thresholded_red_noise, thresholded_walk, clipped_pink_noise,
        sparse_heat_map,
    )
}  # fmt: skip
