"""Every method finds a clear period, keeps silent on noise, and never sees one period as two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ioprism import Signal
from ioprism.periodicity.detect import METHODS, Options, detect


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("period", [8.0, 21.3])
def test_every_method_finds_a_clear_periodicity(
    burst_signal: Callable[..., Signal], method: str, period: float
) -> None:
    signal = burst_signal(period=period, duty=0.4, count=30, noise=0.1)

    found = detect(signal, options=Options(method=method))

    assert found is not None
    assert found.seconds == pytest.approx(period, rel=0.02)
    assert found.frequency == pytest.approx(1 / found.seconds)
    assert 0.0 <= found.confidence <= 1.0
    assert 0.0 <= found.false_alarm_probability <= 0.01
    assert found.repetitions >= 2
    assert all(signal.start <= a < b <= signal.end + 1e-6 for a, b in found.valid_ranges)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_hears_a_periodicity_in_white_noise(method: str) -> None:
    rng = np.random.default_rng(seed=3)
    noise = [Signal(0.0, 0.1, 5.0 + rng.standard_normal(2000)) for _ in range(8)]

    found = [detect(signal, options=Options(method=method)) for signal in noise]

    assert found == [None] * 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.0, 0.1, 1e9 / 3])
def test_a_constant_signal_has_no_period(method: str, level: float) -> None:
    assert detect(Signal(0.0, 0.1, np.full(500, level)), options=Options(method=method)) is None


@pytest.mark.parametrize("method", METHODS)
def test_one_burst_is_no_periodicity(burst_signal: Callable[..., Signal], method: str) -> None:
    signal = burst_signal(count=1, lead=70.0, tail=120.0, noise=0.1)

    assert detect(signal, options=Options(method=method)) is None


@pytest.mark.parametrize("method", METHODS)
def test_one_wave_over_the_whole_signal_is_no_repetition(method: str) -> None:
    wave = Signal(0.0, 0.1, 1.0 + np.sin(np.linspace(0.0, 2 * np.pi, 600)))

    assert detect(wave, options=Options(method=method)) is None


@pytest.mark.parametrize("method", METHODS)
def test_the_sign_and_the_unit_of_a_signal_stop_no_method(method: str) -> None:
    bursts = np.tile(np.repeat([1.0, 0.0], [5, 15]), 20)
    below, tiny = Signal(0.0, 1.0, -bursts - 1.0), Signal(0.0, 1.0, 1e-300 * bursts)

    found = [detect(signal, options=Options(method=method)) for signal in (below, tiny)]

    assert found[0] is None or found[0].seconds == pytest.approx(20.0, rel=0.02)
    if method in ("auto", "phases"):
        assert None not in found
