"""Spectra, autocorrelation, moving windows and wavelets say when and how exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ioprism import MissingPackageError, Signal, UsageError
from ioprism.periodicity import harmonic
from ioprism.periodicity.spectrum import cosine_at, power_spectrum, refine
from ioprism.periodicity.time_frequency import (
    approximate,
    choose_level,
    frequency_over_time,
    scalogram,
)


def wave(
    *, period: float = 7.3, samples: int = 2000, noise: float = 0.0, start: float = 3.0
) -> Signal:
    times = start + 0.1 * (np.arange(samples) + 0.5)
    rng = np.random.default_rng(seed=2)
    values = 10.0 + 2.0 * np.cos(2 * np.pi * times / period + 0.5)
    return Signal(start, 0.1, values + noise * rng.standard_normal(samples))


def test_amplitude_and_phase_refer_to_time_zero() -> None:
    amplitude, phase = cosine_at(wave(samples=7300), 1 / 7.3)

    assert amplitude == pytest.approx(2.0, rel=0.01)
    assert phase == pytest.approx(0.5, abs=0.01)


def test_shares_of_the_variance_sum_to_one() -> None:
    _, shares = power_spectrum(wave(noise=1.0))

    assert shares.sum() == pytest.approx(1.0)


def test_a_line_between_bins_is_located() -> None:
    values = wave(samples=2000).values
    transform = np.fft.rfft(values - values.mean())
    strongest = int(np.argmax(np.abs(transform)))

    assert refine(transform, strongest) / 200.0 == pytest.approx(1 / 7.3, rel=0.002)


def test_a_sine_in_noise_is_found_between_the_bins() -> None:
    found = harmonic.find_period(wave(noise=2.0))

    assert found is not None
    assert found.seconds == pytest.approx(7.3, rel=0.003)
    assert found.false_alarm_probability < 1e-6


def test_few_bursts_are_never_certain(burst_signal: Callable[..., Signal]) -> None:
    found = harmonic.find_period(burst_signal(count=3, duty=0.05))

    assert found is not None
    assert found.false_alarm_probability > 0.01


def test_autocorrelation_is_one_without_lag_and_high_after_a_period() -> None:
    correlation = harmonic.autocorrelation(wave(period=8.0, samples=2000))

    assert correlation[0] == pytest.approx(1.0)
    assert correlation[80] == pytest.approx(1.0, abs=0.02)
    assert correlation[40] == pytest.approx(-1.0, abs=0.02)


def test_windows_show_how_the_period_changes() -> None:
    first, second = wave(period=5.0, start=0.0), wave(period=9.0, start=200.0)
    signal = Signal(0.0, 0.1, np.concatenate((first.values, second.values)))

    _, _, frequencies = frequency_over_time(signal, window=40.0)

    assert 1 / frequencies[1] == pytest.approx(5.0, rel=0.05)
    assert 1 / frequencies[-2] == pytest.approx(9.0, rel=0.05)


def test_a_scalogram_peaks_at_the_period() -> None:
    picture = scalogram(wave(samples=4000))

    strongest = picture.periods[int(np.argmax(picture.power.mean(axis=1)))]
    assert picture.power.shape == (len(picture.periods), len(picture.times))
    assert len(picture.times) <= 1024
    assert strongest == pytest.approx(7.3, rel=0.1)


@pytest.mark.parametrize("wavelet", ["haar", "db4"])
def test_an_approximation_is_smoother_the_higher_its_level(wavelet: str) -> None:
    if wavelet != "haar":
        pytest.importorskip("pywt")
    signal = wave(noise=1.0, samples=1003)

    smooth = [approximate(signal, wavelet=wavelet, level=level) for level in range(5)]

    np.testing.assert_allclose(smooth[0].values, signal.values)
    steps = [np.abs(np.diff(one.values)).sum() for one in smooth]
    assert steps == sorted(steps, reverse=True)


def test_the_haar_approximation_is_that_of_pywavelets() -> None:
    pywt = pytest.importorskip("pywt")
    signal = wave(samples=1024)
    coefficients = pywt.wavedec(signal.values, "haar", level=3)

    expected = pywt.upcoef("a", coefficients[0], "haar", level=3, take=1024)

    np.testing.assert_allclose(approximate(signal, level=3).values, expected)


def test_the_chosen_level_keeps_eight_samples_per_period() -> None:
    assert choose_level(wave(), frequency=1 / 7.3) == 3
    assert choose_level(wave(), frequency=5.0) == 0


def test_levels_and_wavelets_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="between 0 and 7"):
        approximate(wave(), level=60)
    pytest.importorskip("pywt")
    with pytest.raises(UsageError, match="unknown discrete wavelet"):
        approximate(wave(), wavelet="ripple", level=2)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pywt", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'ioprism\[wavelets\]'"):
        approximate(wave(), wavelet="db4", level=2)


def test_fitted_waves_stay_apart_and_within_the_signal() -> None:
    from ioprism.periodicity.describe import MIN_SEPARATION, fit_waves

    for seed in range(6):
        chance = np.random.default_rng(seed)
        starts = np.cumsum(chance.uniform(6.0, 30.0, 20))
        times = np.arange(2000) * 0.25
        values = np.where((times[:, None] - starts >= 0) & (times[:, None] - starts < 3), 1e9, 0.0)
        signal = Signal(0.0, 0.25, values.max(axis=1))
        found = fit_waves(signal, count=10)
        waves = found.components[1:]
        cycles = np.sort([wave.frequency for wave in waves]) * (signal.end - signal.start)

        assert max(wave.amplitude for wave in waves) <= float(np.ptp(signal.values))
        assert float(np.diff(cycles).min()) >= MIN_SEPARATION - 1e-6
        assert found.mse_after <= found.mse_before
