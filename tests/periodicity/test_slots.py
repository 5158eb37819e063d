"""Bursts at random multiples of a time are called slotted; periods with gaps are not."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.period_families import NOT_PERIODIC, draw
from ioprism import period
from ioprism.model.arrays import FloatArray, Signal
from ioprism.periodicity.detect import detect
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.sampling import sample
from ioprism.views.bandwidth import steps_of_intervals


def bursts(starts: FloatArray) -> Signal:
    return sample(steps_of_intervals(starts, starts + 1.0, np.full(len(starts), 1e9)))


@pytest.mark.parametrize("name", ["random_multiples", "occupied_slots", "gaps_of_four_values"])
def test_slots_are_seldom_called_a_period(name: str) -> None:
    streams = [draw(NOT_PERIODIC[name], number) for number in range(12)]
    found = [detect(sample(stream.steps())) for stream in streams]
    called = [one for one in found if one is not None and one.pattern == "periodic"]

    assert sum(one.certainty == "sure" for one in called) <= 2
    assert len(called) <= 6  # nearly all of them before


def test_slots_are_named_and_are_no_period() -> None:
    multiples = np.random.default_rng(3).integers(1, 5, 40)
    signal = bursts((10.0 * np.cumsum(multiples)).astype(np.float64))

    found = signal_periodicity(signal)

    assert found.period is None
    assert found.slotted is not None
    assert "slotted" in found.summary()
    assert period(signal.times, signal.values) is None


def test_one_missing_burst_in_five_leaves_a_period() -> None:
    starts = np.array([10.0 * number for number in range(40) if number % 5])

    found = detect(bursts(starts))

    assert found is not None
    assert found.pattern == "periodic"


def test_a_change_of_period_is_no_slot() -> None:
    first, second = 10.0 * np.arange(15), 150.0 + 20.0 * np.arange(12)

    found = detect(bursts(np.concatenate((first, second))))

    assert found is not None
    assert found.pattern == "periodic"


def test_an_even_part_of_random_slots_is_no_period() -> None:
    slots = [4, 4, 1, 4, 4, 2, 1, 3, 1, 4, 1, 1, 2, 3, 2, 3, 1, 3, 3, 3, 3, 4, 3, 1, 1, 4, 1, 4, 4]

    found = detect(bursts(10.0 * np.cumsum([0.0, *slots])))

    assert found is None or found.pattern == "slotted"


@pytest.mark.parametrize(("seconds", "unit"), [(7.3, 1.0), (3.7, 1.0), (0.73, 0.1)])
def test_times_rounded_to_a_unit_leave_a_period(seconds: float, unit: float) -> None:
    starts = unit * np.round(seconds * np.arange(30) / unit)
    steps = steps_of_intervals(starts, starts + unit, np.full(30, 1e9))

    found = detect(sample(steps))

    assert found is not None
    assert found.pattern == "periodic"
    assert found.seconds == pytest.approx(seconds, rel=0.01)


def test_cycles_of_two_distances_are_no_slots_after_other_io() -> None:
    cycles = 100.0 + np.cumsum(np.tile([4.0, 6.0], 15))

    found = detect(bursts(np.concatenate(([0.0, 3.0, 21.0, 60.0], cycles))))

    assert found is not None
    assert found.pattern == "periodic"
    assert found.seconds == pytest.approx(10.0, rel=0.01)
