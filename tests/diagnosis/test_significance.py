"""One slow call is no cause, many are; small effects are not reported."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import CallGroup, Contrast
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.replay import Change, Proposal, Scenario
from ioprism.diagnosis.rows import outlier_test, rank_test, repeat_test
from ioprism.diagnosis.verdict import attribute
from tests.diagnosis.known_rows import observed, writes

LIMITS = Limits()


def repeat(seconds: np.ndarray, least: float) -> float:
    """How likely single calls take less when made again."""
    return repeat_test(seconds, np.ones(len(seconds)), least, trimmed=LIMITS.trimmed_calls)


def counted(seconds: float, count: int, least: float) -> float:
    """The same of one row that sums up calls."""
    return repeat_test(
        np.array([seconds]), np.array([float(count)]), least, trimmed=LIMITS.trimmed_calls
    )


def test_one_call_that_happened_to_take_long_may_not_do_so_again() -> None:
    seconds = np.full(100, 1e-5)
    seconds[17] = 3.0

    assert repeat(seconds, 0.1) > LIMITS.significance


def test_a_few_interruptions_do_not_hide_what_all_the_other_calls_take() -> None:
    seconds = np.full(200, 1e-3)
    seconds[::70] = 0.05

    assert repeat(seconds, 0.1) < LIMITS.significance
    assert repeat(seconds, 0.3) > LIMITS.significance


def test_many_calls_that_all_take_long_will_do_so_again() -> None:
    seconds = np.random.default_rng(1).lognormal(-4, 0.5, 100)

    assert repeat(seconds, 0.1) < LIMITS.significance


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_call_proves_nothing(count: int) -> None:
    assert repeat(np.ones(count), 0.1) == 1.0
    assert counted(1.0, count, 0.1) == 1.0


def test_counted_calls_are_surer_the_more_there_are() -> None:
    few, many = counted(2.0, 4, 0.1), counted(2.0, 400, 0.1)

    assert many < LIMITS.significance < few


def test_chance_is_called_significant_no_more_often_than_asked() -> None:
    rng = np.random.default_rng(seed=3)
    tests = [rank_test(rng.normal(size=20), rng.normal(size=60)) for _ in range(2000)]

    assert sum(value < 0.05 for value in tests) <= 130  # 5 % of 2000, and three standard errors


def test_a_value_far_from_its_peers_is_an_outlier_and_one_among_them_is_not() -> None:
    peers = np.array([0.0, 0.02, -0.03, 0.05, 0.01])

    assert outlier_test(2.0, peers, min_spread=0.05) < 1e-4
    assert outlier_test(0.04, peers, min_spread=0.05) > 0.05


@pytest.mark.parametrize(
    ("seconds", "p_value", "is_cause"),
    [
        (0.5, 0.0, True),
        (0.5, 0.5, False),  # may be chance
        (0.9 * LIMITS.min_seconds, 0.0, False),  # nobody would notice
        (0.015 * 20, 0.0, False),  # hardly a part of the stall time
    ],
)
def test_a_cause_is_significant_noticeable_and_a_part_of_the_whole(
    seconds: float, p_value: float, is_cause: bool
) -> None:
    stall = 20.0 if seconds == 0.015 * 20 else 4.0
    job = observed(writes([0.0], [stall], [0]), [(0.0, stall)], [stall], runtime=4.0)
    after = Scenario(np.array([stall - seconds]))
    proposal = Proposal(
        "metadata", {}, np.ones(1, np.bool_), Change(after, after, after), p_value,
        Contrast("metadata", CallGroup(1)),
    )  # fmt: skip

    assert bool(attribute(job, [proposal]).causes) is is_cause
