"""Sampling keeps every byte, and what is not a function of time is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism import (
    BrokenSignalError,
    IoprismError,
    SignalTooShortError,
    SignalWarning,
    UsageError,
    period,
)
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.sampling import sample, step_function

lengths = st.lists(st.floats(0.01, 10.0), min_size=10, max_size=60)


@given(lengths=lengths, bins=st.integers(8, 300), seed=st.integers(0, 99))
def test_integrating_per_bin_keeps_the_volume(lengths: list[float], bins: int, seed: int) -> None:
    edges = np.cumsum([0.0, *lengths])
    values = np.random.default_rng(seed).uniform(0.0, 1e9, len(lengths))

    signal = sample(step_function(edges, values), frequency=bins / edges[-1])

    volume = float(np.sum(values * np.diff(edges)))
    assert signal.values.sum() * signal.interval == pytest.approx(volume, rel=1e-6)


def test_evenly_spaced_values_are_taken_as_they_are() -> None:
    values = np.arange(50.0)

    signal = sample(step_function(np.arange(50) / 10.0, values))

    assert signal.interval == pytest.approx(0.1)
    np.testing.assert_array_equal(signal.values, values)


def test_the_number_of_samples_is_bounded() -> None:
    steps = step_function(np.arange(10_000) / 10.0, np.ones(10_000))

    assert len(sample(steps, max_samples=500).values) == 500


def test_integer_times_are_fine() -> None:
    time = [step for start in range(0, 120, 10) for step in (start, start + 2)]

    found = period(time, [7, 0] * 12)

    assert found is not None
    assert found.seconds == pytest.approx(10.0, rel=1e-3)


def test_a_part_of_the_time_can_be_chosen() -> None:
    signal = sample(step_function(np.arange(101.0), np.ones(100)), start=20.5, end=70.0)

    assert signal.start == 20.5
    assert signal.end == pytest.approx(70.0, abs=1.0)


@pytest.mark.parametrize(
    ("time", "values", "error", "match"),
    [
        ([], [], SignalTooShortError, "0 samples"),
        ([1.0], [2.0], SignalTooShortError, "1 samples"),
        ([0, 1, 2], [1, 2, 3], SignalTooShortError, "at least 8 are needed"),
        ([0, 1, np.nan, 3], [1, 2, 3, 4], BrokenSignalError, r"time\[2\] is nan"),
        ([0, 1, 2, 3], [1, np.inf, 3, 4], BrokenSignalError, r"values\[1\] is inf"),
        ([0, 2, 1, 3], [1, 2, 3, 4], BrokenSignalError, r"not sorted: time\[2\]"),
        ([5, 5, 5, 5], [1, 2, 3, 4], BrokenSignalError, "all times are 5"),
        ([0, 1, 2, 3], [1, 2], BrokenSignalError, "4 times do not fit 2 values"),
        ([[0, 1], [2, 3]], [1, 2], BrokenSignalError, "2 dimensions"),
        (["now", "then"], [1, 2], BrokenSignalError, "not numbers"),
    ],
)
def test_unusable_arrays_are_refused(
    time: list[float], values: list[float], error: type[IoprismError], match: str
) -> None:
    with pytest.raises(error, match=match):
        period(time, values, frequency=1.0)


@pytest.mark.parametrize("frequency", [0.0, -1.0, np.nan, np.inf, 1e12])
def test_absurd_frequencies_are_refused(frequency: float) -> None:
    with pytest.raises(UsageError, match=r"makes no sense|is more than"):
        period(np.arange(100.0), np.ones(100), frequency=frequency)


def test_a_frequency_too_low_for_the_signal_is_refused_with_a_hint() -> None:
    with pytest.raises(SignalTooShortError, match="higher --frequency"):
        period(np.arange(100.0), np.ones(100), frequency=0.01)


def test_a_time_range_outside_the_signal_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing between"):
        period(np.arange(100.0), np.ones(100), start=500.0)


def test_negative_values_are_answered_with_a_warning() -> None:
    wave = np.sin(2 * np.pi * np.arange(400) / 20.0)

    with pytest.warns(SignalWarning, match="negative"):
        found = period(np.arange(400.0), wave)

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.01)


def test_unknown_methods_and_levels_are_refused() -> None:
    with pytest.raises(UsageError, match="there are auto, phases"):
        period(np.arange(100.0), np.ones(100), method="guess")
    with pytest.raises(UsageError, match="between 0 and 1"):
        period(np.arange(100.0), np.ones(100), max_false_alarm=0.0)


@pytest.mark.parametrize("true", [2.1, 2.4, 2.5, 2.6, 2.9])
def test_a_period_of_hardly_more_than_two_samples_is_right_or_said_to_be_too_coarse(
    true: float,
) -> None:
    moments = (np.arange(200_000) + 0.5) / 1000
    values = 1e9 * (moments % true < 0.2 * true).reshape(200, -1).mean(axis=1)
    coarse = signal_periodicity(sample(step_function(np.arange(200), values)))

    assert coarse.period is not None
    assert coarse.period.seconds == pytest.approx(true, rel=0.01)
    assert coarse.period.certainty == "maybe"  # a faster period may look the same
    assert len(coarse.periods) == 1
    assert "sampled too coarsely" in coarse.summary()
