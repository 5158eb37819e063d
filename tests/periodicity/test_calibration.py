"""A false-alarm probability of 1 % is wrong no more than about one time in a hundred."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ioprism import Signal
from ioprism.model.arrays import FloatArray
from ioprism.periodicity.chance import log_regular, probability
from ioprism.periodicity.detect import find_by_phases_or_spectrum


def chance(signal: Signal) -> float:
    found = find_by_phases_or_spectrum(signal)
    return 1.0 if found is None else found.false_alarm_probability


def share_below(chances: list[float], level: float) -> float:
    return float(np.mean(np.array(chances) <= level))


def test_thresholds_hold_on_two_thousand_noise_signals() -> None:
    rng = np.random.default_rng(seed=1)
    chances = [chance(Signal(0.0, 1.0, 9.0 + rng.standard_normal(256))) for _ in range(2000)]

    assert share_below(chances, 0.01) <= 0.015
    assert share_below(chances, 0.05) <= 0.065
    assert share_below(chances, 0.10) <= 0.12


def test_thresholds_hold_on_bursts_at_random_times(
    poisson_bursts: Callable[[int], Signal],
) -> None:
    chances = [chance(poisson_bursts(seed)) for seed in range(300)]

    assert share_below(chances, 0.01) <= 0.03
    assert share_below(chances, 0.10) <= 0.13


def red_noise(rng: np.random.Generator, samples: int) -> FloatArray:
    memory, values = rng.uniform(0.8, 0.99), np.empty(samples)
    level = 0.0
    for i, shock in enumerate(rng.standard_normal(samples)):
        level = memory * level + shock
        values[i] = level
    return np.maximum(0.0, 20.0 + values)


def ramp(rng: np.random.Generator, samples: int) -> FloatArray:
    return np.linspace(0.0, 10.0, samples) * (1.0 + 0.15 * rng.standard_normal(samples))


@pytest.mark.parametrize("make", [red_noise, ramp])
def test_red_noise_and_ramps_are_rarely_called_periodic(
    make: Callable[[np.random.Generator, int], FloatArray],
) -> None:
    rng = np.random.default_rng(seed=2)
    chances = [chance(Signal(0.0, 0.1, make(rng, 1500))) for _ in range(150)]

    assert share_below(chances, 0.01) <= 0.04


@pytest.mark.parametrize("gaps", [2, 5, 9, 12, 20, 60])
def test_the_chance_of_regular_gaps_is_never_much_too_small(gaps: int) -> None:
    waits = np.random.default_rng(seed=gaps).exponential(size=(20_000, gaps))
    variation = waits.std(axis=1) / waits.mean(axis=1)

    for level in (0.01, 0.05, 0.1):
        observed = float(np.quantile(variation, level))
        claimed = probability(log_regular(waits=gaps, variation=observed))
        assert claimed >= 0.8 * level
