"""The hybrid finds where a period holds, in linear time and with true boundaries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ioprism import Signal
from ioprism.periodicity.spectrum import sliding_correlation, valid_ranges
from ioprism.periodicity.time_frequency import analyse_hybrid


def test_sliding_correlation_is_pearsons_in_every_window(
    burst_signal: Callable[..., Signal],
) -> None:
    signal = burst_signal(noise=0.3, count=6)
    cosine = np.cos(2 * np.pi * (signal.times + 0.05) / 20.0 + 0.7)

    found = sliding_correlation(signal, frequency=1 / 20.0, phase=0.7)

    for first in range(0, len(found), 37):
        window = slice(first, first + 200)
        expected = np.corrcoef(signal.values[window], cosine[window])[0, 1]
        assert found[first] == pytest.approx(expected, abs=1e-6)


def test_a_period_that_holds_throughout_is_valid_from_end_to_end() -> None:
    times = (np.arange(2000) + 0.5) / 10.0
    signal = Signal(0.0, 0.1, 5.0 + np.cos(2 * np.pi * times / 10.0))

    (found,) = valid_ranges(signal, frequency=0.1, phase=0.0)

    assert found == pytest.approx((0.0, 200.0))


def test_the_boundaries_are_those_of_the_periodicity(burst_signal: Callable[..., Signal]) -> None:
    found = analyse_hybrid(burst_signal(lead=150.0, tail=100.0, duty=0.4, noise=0.1))

    assert found is not None
    assert 1 / found.frequency == pytest.approx(20.0, rel=0.01)
    ((start, end),) = found.valid_ranges
    assert start == pytest.approx(150.0, abs=12.0)
    assert end == pytest.approx(438.0, abs=12.0)


def test_two_stretches_are_told_apart(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(count=24, duty=0.4)
    signal.values[1600:2600] = 0.0

    found = analyse_hybrid(signal)

    assert found is not None
    assert len(found.valid_ranges) == 2


def test_a_given_level_is_used(burst_signal: Callable[..., Signal]) -> None:
    found = analyse_hybrid(burst_signal(duty=0.4), level=2)

    assert found is not None
    assert found.level == 2
    assert len(found.correlation()) == len(found.approximation.values) - 200 + 1
