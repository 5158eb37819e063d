"""A change of period is found at once, one odd phase is none."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.periodicity.looks import change_point, frequency_ranges, relative_difference


def starts_at(*distances: float) -> np.ndarray:
    return np.cumsum([0.0, *distances])


def test_two_new_distances_are_a_change_at_the_phase_they_begin_with() -> None:
    assert change_point(starts_at(20, 20, 20, 20, 4, 4)) == 4


def test_slower_is_a_change_too() -> None:
    assert change_point(starts_at(4, 4, 4, 4, 4, 20, 20)) == 5


@pytest.mark.parametrize("odd", [10.0, 40.0])
def test_one_phase_extra_or_missed_is_no_change(odd: float) -> None:
    assert change_point(starts_at(20, 20, 20, odd, 20, 20)) is None


def test_jitter_is_no_change() -> None:
    rng = np.random.default_rng(1)
    changes = [change_point(starts_at(*(20 + 1.0 * rng.standard_normal(16)))) for _ in range(200)]

    assert sum(found is not None for found in changes) <= 4


def test_few_phases_say_nothing() -> None:
    assert change_point(starts_at(1, 9, 3)) is None


def test_the_difference_does_not_depend_on_which_is_longer() -> None:
    assert relative_difference(10, 20) == pytest.approx(relative_difference(20, 10)) == 1.0


def test_answers_close_to_each_other_are_one_range() -> None:
    first, second = frequency_ranges([0.1, 0.101, 0.099, 0.5, None])

    assert (first.low, first.high, first.probability) == (0.099, 0.101, 0.6)
    assert second.probability == 0.2


def test_no_answers_are_no_ranges() -> None:
    assert frequency_ranges([None, None]) == ()
