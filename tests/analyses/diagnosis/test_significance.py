"""One slow call is no cause, many are; small effects are not reported."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import CallGroup, Contrast
from ioprism.analyses.diagnosis.attribution import NOTICED, Candidate, attributed
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, again_test, counted_test


def candidate(seconds: float, p_value: float = 0.0) -> Candidate:
    return Candidate(
        "metadata", {}, np.array([seconds]), seconds, seconds, p_value,
        Contrast("metadata", CallGroup(1)),
    )  # fmt: skip


def test_one_call_that_happened_to_take_long_may_not_do_so_again() -> None:
    seconds = np.full(100, 1e-5)
    seconds[17] = 3.0

    assert again_test(seconds, 0.1) > SIGNIFICANT


def test_a_few_interruptions_do_not_hide_what_all_the_other_calls_take() -> None:
    seconds = np.full(200, 1e-3)
    seconds[::70] = 0.05

    assert again_test(seconds, 0.1) < SIGNIFICANT
    assert again_test(seconds, 0.3) > SIGNIFICANT


def test_many_calls_that_all_take_long_will_do_so_again() -> None:
    seconds = np.random.default_rng(1).lognormal(-4, 0.5, 100)

    assert again_test(seconds, 0.1) < SIGNIFICANT


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_call_proves_nothing(count: int) -> None:
    assert again_test(np.ones(count), 0.1) == 1.0
    assert counted_test(1.0, count, 0.1) == 1.0


def test_counted_calls_are_surer_the_more_there_are() -> None:
    few, many = counted_test(2.0, 4, 0.1), counted_test(2.0, 400, 0.1)

    assert many < SIGNIFICANT < few


@pytest.mark.parametrize(
    ("seconds", "p_value", "is_cause"),
    [
        (0.5, 0.0, True),
        (0.5, 0.5, False),  # may be chance
        (0.9 * NOTICED, 0.0, False),  # nobody would notice
        (0.015 * 20, 0.0, False),  # hardly a part of the held-up time
    ],
)
def test_a_cause_is_significant_noticeable_and_a_part_of_the_whole(
    seconds: float, p_value: float, is_cause: bool
) -> None:
    held = 20.0 if seconds == 0.015 * 20 else 4.0

    found = attributed([candidate(seconds, p_value)], np.array([held]), runtime=4.0)

    assert bool(found.causes) is is_cause
