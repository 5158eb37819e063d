"""Distances of phase starts survive jitter, other I/O and missing beats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism import Signal
from ioprism.model.arrays import median
from ioprism.periodicity.phase_starts import find_period
from ioprism.periodicity.segments import find_pauses, find_phases


@pytest.mark.parametrize("jitter", [0.1, 0.3])
def test_jittering_gaps_keep_their_mean_and_show_their_spread(
    burst_signal: Callable[..., Signal], jitter: float
) -> None:
    found = find_period(burst_signal(gap_jitter=jitter, count=30, noise=0.2))

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.1)
    assert found.spread == pytest.approx(jitter * 15.0, rel=0.5)
    assert found.false_alarm_probability < 0.01


@pytest.mark.parametrize("duty", [0.01, 0.1, 0.6, 0.9])
def test_any_duty_cycle_gives_the_exact_period(
    burst_signal: Callable[..., Signal], duty: float
) -> None:
    found = find_period(burst_signal(duty=duty, period=30.0))

    assert found is not None
    assert found.seconds == pytest.approx(30.0, rel=0.001)
    assert found.repetitions == 14


def test_the_range_is_that_of_the_regular_phases_among_other_io(
    burst_signal: Callable[..., Signal],
) -> None:
    regular = burst_signal(lead=100.0, tail=60.0)
    values = regular.values.copy()
    for start, end, level in ((3, 20, 0.5), (31, 36, 1.3), (70, 78, 0.7)):
        values[start * 10 : end * 10] += level * 1e9

    found = find_period(Signal(0.0, 0.1, values))

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.01)
    assert len(found.valid_ranges) == 1
    assert found.valid_ranges[0] == pytest.approx((100.0, 385.0), abs=0.2)


def test_a_missed_beat_is_counted(burst_signal: Callable[..., Signal]) -> None:
    signal = burst_signal(count=20)
    signal.values[1640:1720] = 0.0

    found = find_period(signal)

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.001)
    assert found.repetitions == 19


def _pulses(starts: list[float], length: float = 1.0) -> Signal:
    values = np.zeros(4000)
    for start in starts:
        values[round(start * 10) : round((start + length) * 10)] = 1e9
    return Signal(0.0, 0.1, values)


@pytest.mark.parametrize(
    ("growth", "sure"), [(1.0, True), (1.08, True), (1.2, False), (1.8, False)]
)
def test_distances_that_grow_steadily_are_a_periodicity_only_if_they_grow_little(
    growth: float, sure: bool
) -> None:
    found = find_period(_pulses(np.cumsum(20.0 * np.geomspace(1.0, growth, 12)).tolist()))

    assert found is not None
    assert (found.false_alarm_probability <= 0.01) == sure


def test_distances_that_wobble_little_are_a_periodicity_though_neighbours_are_alike() -> None:
    wobbling = 20.0 * (1.0 + 0.06 * np.sin(np.arange(16) * 2 * np.pi / 8))

    found = find_period(_pulses(np.cumsum(wobbling).tolist()))

    assert found is not None
    assert found.false_alarm_probability <= 0.01


def test_one_missing_of_six_phases_leaves_the_period() -> None:
    found = find_period(_pulses([20.0 * number for number in (0, 1, 3, 4, 5)]))

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.01)
    assert found.repetitions == 5
    assert found.false_alarm_probability < 0.01


def test_a_phase_missing_at_random_places_is_paid_for() -> None:
    found = find_period(_pulses([0.0, 20.0, 61.0, 78.0]))

    assert found is not None
    assert found.false_alarm_probability > 0.01


def test_distances_that_come_by_turns_are_one_period() -> None:
    starts = [start for number in range(8) for start in (40.0 * number, 40.0 * number + 16.0)]

    found = find_period(_pulses(starts))

    assert found is not None
    assert found.seconds == pytest.approx(40.0, rel=0.01)
    assert found.spread < 1.0
    assert found.phases[0] == pytest.approx((0.0, 17.0), abs=0.2)


def test_jittering_distances_are_no_turns() -> None:
    late = np.random.default_rng(seed=5).uniform(-2.0, 2.0, 15).tolist()

    found = find_period(_pulses([20.0 * number + 5.0 + by for number, by in enumerate(late)]))

    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.02)


def test_two_phases_are_no_periodicity(burst_signal: Callable[..., Signal]) -> None:
    assert find_period(burst_signal(count=2)) is None


def test_three_phases_are_weak_evidence(burst_signal: Callable[..., Signal]) -> None:
    found = find_period(burst_signal(count=3, period=20.0, gap_jitter=0.2))

    assert found is not None
    assert found.false_alarm_probability > 0.01


def test_short_pauses_of_a_busy_signal_are_found() -> None:
    rng = np.random.default_rng(seed=4)
    times = np.arange(3000) / 100.0
    values = np.where(times % 2.0 < 1.8, rng.lognormal(0.0, 0.8, len(times)), 0.0)

    phases = find_pauses(Signal(0.0, 0.01, values))

    assert phases is not None
    assert len(phases) == 15


def test_noise_has_no_phases() -> None:
    noise = np.random.default_rng(seed=5).normal(5.0, 1.0, 4000)

    assert find_phases(Signal(0.0, 0.1, noise)) is None


@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_the_median_is_numpys(numbers: list[float]) -> None:
    assert median(np.array(numbers)) == pytest.approx(float(np.median(numbers)))


@settings(max_examples=25, deadline=None)
@given(
    period=st.floats(5.0, 60.0),
    duty=st.floats(0.05, 0.6),
    count=st.integers(6, 25),
    lead=st.floats(0.0, 30.0),
)
def test_clean_bursts_are_right_to_a_thousandth(
    period: float, duty: float, count: int, lead: float
) -> None:
    edges = np.arange(int((lead + period * count) * 10) + 1) / 10.0
    starts = lead + period * np.arange(count)
    volume = np.clip(edges[:, None] - starts, 0.0, duty * period).sum(axis=1)

    found = find_period(Signal(0.0, 0.1, np.diff(volume) * 10.0))

    assert found is not None
    assert abs(found.seconds - period) <= 0.1 / (count - 1) + 0.001 * period


def test_a_period_rounded_to_whole_samples_is_no_cycle_of_several() -> None:
    values = np.zeros(78)
    values[np.floor(13 / 3 * np.arange(18)).astype(int)] = 1e9

    found = find_period(Signal(0.0, 1.0, values))

    assert found is not None
    assert found.seconds == pytest.approx(13 / 3, rel=0.02)
