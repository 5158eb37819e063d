"""Signals built by formula, with known period or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ioprism import Signal
from ioprism.model.arrays import FloatArray

FREQUENCY = 10.0
LEVEL = 1e9


def painted(phases: Sequence[tuple[float, float]], *, end: float) -> FloatArray:
    """The mean over each bin of a signal that is LEVEL during the phases and else zero."""
    edges = np.arange(round(end * FREQUENCY) + 1) / FREQUENCY
    volume = np.zeros(len(edges))
    for start, stop in phases:
        volume += LEVEL * np.clip(edges - start, 0.0, stop - start)
    return np.diff(volume) * FREQUENCY


@pytest.fixture
def burst_signal() -> Callable[..., Signal]:
    """Bursts every ``period`` seconds, optionally jittering, noisy, late and stopping early."""

    def make(
        *,
        period: float = 20.0,
        duty: float = 0.25,
        count: int = 15,
        gap_jitter: float = 0.0,
        noise: float = 0.0,
        lead: float = 5.0,
        tail: float = 5.0,
        seed: int = 1,
    ) -> Signal:
        rng = np.random.default_rng(seed)
        gaps = period * (1 - duty) * np.maximum(0.05, 1 + gap_jitter * rng.standard_normal(count))
        starts = lead + np.cumsum(np.append(0.0, period * duty + gaps[:-1]))
        phases = [(float(start), float(start) + period * duty) for start in starts]
        values = painted(phases, end=phases[-1][1] + tail)
        values = values * np.maximum(0.0, 1 + noise * rng.standard_normal(len(values)))
        return Signal(0.0, 1 / FREQUENCY, values)

    return make


@pytest.fixture
def poisson_bursts() -> Callable[[int], Signal]:
    """Bursts of random length and height at random times."""

    def make(seed: int) -> Signal:
        rng = np.random.default_rng(seed)
        end = rng.uniform(200.0, 600.0)
        values = np.zeros(round(end * FREQUENCY))
        for start in rng.uniform(0.0, end, rng.poisson(end / 30.0)):
            burst = painted([(start, start + rng.uniform(1.0, 9.0))], end=end)
            values += rng.uniform(0.4, 1.0) * burst[: len(values)]
        return Signal(0.0, 1 / FREQUENCY, values)

    return make
