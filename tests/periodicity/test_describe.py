"""Cosine waves add up to the signal, fitting only helps, bursts and the next phase are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism import Signal, UsageError, period
from ioprism.model.arrays import FloatArray
from ioprism.periodicity.describe import (
    components,
    describe_burst,
    fit_waves,
    mean_square_error,
    phase_volumes,
    predict_next_phase,
    synthesise,
)
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.results import Period
from ioprism.periodicity.sampling import sample, step_function


def ten_waves(seed: int = 1) -> Signal:
    """Ten cosine waves between the bins, in noise."""
    rng = np.random.default_rng(seed)
    times = (np.arange(3000) + 0.5) / 10.0
    values = 50.0 + rng.standard_normal(len(times))
    for k in range(10):
        frequency = (3 + 4 * k + rng.uniform(0.3, 0.7)) / 300.0
        values += (10 - 0.5 * k) * np.cos(2 * np.pi * frequency * times + rng.uniform(0, 6))
    return Signal(0.0, 0.1, values)


def test_all_components_add_up_to_the_signal(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(count=3, noise=0.2)

    waves = components(signal, count=len(signal.values) // 2)

    total = synthesise(waves, signal.times + signal.interval / 2)
    np.testing.assert_allclose(total, signal.values, atol=1e-3)


def test_components_come_strongest_first_after_the_mean() -> None:
    waves = components(ten_waves(), count=5)

    amplitudes = [wave.amplitude for wave in waves[1:]]
    assert waves[0].frequency == 0.0
    assert amplitudes == sorted(amplitudes, reverse=True)


def test_no_components_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        components(ten_waves(), count=0)


def test_fitting_lowers_the_error_by_a_third_or_more() -> None:
    signal = ten_waves()

    found = fit_waves(signal, count=10)

    assert len(found.components) == 11
    assert found.mse_after <= 0.7 * found.mse_before
    assert found.mse_after == pytest.approx(mean_square_error(signal, found.components))


def test_more_waves_than_can_be_fitted_in_a_minute_are_refused() -> None:
    signal = Signal(0.0, 0.01, np.ones(2**17))

    with pytest.raises(
        UsageError, match=r"1000 waves .* 131072 samples.\nHint: use --components 45"
    ):
        fit_waves(signal, count=1000)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 6), samples=st.integers(16, 300))
def test_fitting_never_raises_the_error(seed: int, count: int, samples: int) -> None:
    rng = np.random.default_rng(seed)
    signal = Signal(5.0, 0.5, np.cumsum(rng.standard_normal(samples)) * 1e8)

    found = fit_waves(signal, count=count)

    assert found.mse_after <= found.mse_before


def test_more_waves_than_samples_can_tell_apart_are_fitted_as_far_as_they_go() -> None:
    found = fit_waves(Signal(0.0, 1.0, np.repeat([1.0, 0.0], [5, 3])), count=3)

    assert found.mse_after <= found.mse_before


def test_a_burst_has_width_duty_cycle_and_bytes(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(period=20.0, duty=0.25)
    period = detect(signal)
    assert period is not None

    burst = describe_burst(signal, period)

    assert burst.width == pytest.approx(5.0, abs=0.1)
    assert burst.duty_cycle == pytest.approx(0.25, abs=0.01)
    assert burst.bytes == pytest.approx(5e9, rel=0.07)


def test_the_next_phase_is_one_period_after_the_last(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(count=10, lead=5.0, tail=5.0)

    found = signal_periodicity(signal, components=3, fit=True)

    assert found.next_phase is not None
    assert found.next_phase.start == pytest.approx(205.0, abs=0.2)
    assert found.next_phase.end == pytest.approx(210.0, abs=0.3)
    assert found.fit is not None
    assert len(found.components) == 4


@pytest.mark.parametrize(("tail", "due"), [(19.0, 100.0), (20.0, 100.0), (20.3, 100.3)])
def test_a_phase_that_is_due_as_the_signal_ends_is_the_next_one(tail: float, due: float) -> None:
    starts = 20.0 * np.arange(5)
    values = np.zeros(round(10 * (80.0 + tail)))
    for start in starts.tolist():
        values[round(10 * start) : round(10 * start) + 50] = 1e9
    signal = Signal(0.0, 0.1, values)
    phases = tuple((start, start + 5.0) for start in starts.tolist())
    period = Period(
        20.0, 0.05, 1.0, 1e-9, ((0.0, 85.0),), 1.0, 0.0, 0.5, "phases", 4, phases=phases
    )
    phase = predict_next_phase(signal, period)

    assert phase is not None
    assert phase.start == pytest.approx(due, abs=0.01)


def test_a_periodicity_that_stopped_has_no_next_phase(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(tail=200.0)
    period = detect(signal)

    assert period is not None
    assert predict_next_phase(signal, period) is None


def test_a_smooth_wave_has_bursts_and_a_next_phase_too() -> None:
    times = (np.arange(1000) + 0.5) / 10.0
    signal = Signal(0.0, 0.1, 10.0 + 5.0 * np.cos(2 * np.pi * times / 10.0))

    found = signal_periodicity(signal, options=Options(method="harmonic"))

    assert found.burst is not None
    assert found.burst.duty_cycle == pytest.approx(0.5, abs=0.05)
    assert found.next_phase is not None
    assert 100.0 < found.next_phase.start < 110.5


def test_volumes_of_ranges_are_integrals(burst_signal: Callable[..., Signal]) -> None:
    volumes = phase_volumes(burst_signal(), [(0.0, 5.0), (5.0, 10.0), (7.5, 20.0)])

    np.testing.assert_allclose(volumes, [0.0, 5e9, 2.5e9], atol=1e3)


def expected_after(starts: FloatArray) -> float:
    """When the next phase is due after phases of 2 s that begin at these times."""
    edges = np.sort(np.concatenate((starts, starts + 2.0)))
    found = period(edges, [1e9, 0.0] * len(starts))
    assert found is not None
    signal = sample(step_function(edges, [1e9, 0.0] * len(starts)))
    phase = predict_next_phase(signal, found)
    assert phase is not None
    return phase.start


def test_a_late_phase_of_a_clock_does_not_put_off_the_next_one() -> None:
    late = np.array([0.0, 0.3, 0.1, -0.3, 0.2, -0.1, 0.1, -0.2, 0.3])

    assert expected_after(10.0 * np.arange(9) + late) == pytest.approx(90.0, abs=0.15)


def test_a_late_phase_of_a_program_puts_off_all_others() -> None:
    starts = np.cumsum([10.0, 10.1, 10.2, 10.1, 9.9, 9.8, 9.8, 10.0, 10.5])

    assert expected_after(starts) == pytest.approx(float(starts[-1]) + 10.0, abs=0.12)
