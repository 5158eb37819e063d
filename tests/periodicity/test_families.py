"""Streams with a period are answered right, streams without one hardly ever called periodic.

A small version of the benchmark `periodicity_families`.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.period_families import NOT_PERIODIC, PERIODIC, draw
from benchmarks.periodicity_families import followed
from ioprism.periodicity.chance import log_ever_even, log_regular, probability
from tests.periodicity.family_answers import answer_of

EACH = 10
# Bursts at random multiples of a fixed time: 5 to 10 % of 60 streams are called periodic.
SLOTTED = ("random_multiples", "occupied_slots", "gaps_of_four_values")


@pytest.mark.parametrize("name", NOT_PERIODIC)
def test_streams_without_periodicity_are_hardly_ever_called_periodic(name: str) -> None:
    found = [answer_of(name, number) for number in range(EACH)]

    called = sum(one is not None and one.certainty == "sure" for one in found)
    assert called <= (1 if name in SLOTTED else 0)


@pytest.mark.parametrize("name", PERIODIC)
def test_streams_with_a_periodicity_are_answered_within_five_percent(name: str) -> None:
    streams = [draw(PERIODIC[name], number) for number in range(EACH)]
    found = [answer_of(name, number) for number in range(EACH)]
    right = [
        stream.is_right(None if one is None else one.seconds)
        for stream, one in zip(streams, found, strict=True)
    ]

    assert sum(right) >= EACH - 1


def test_equal_bursts_after_gaps_that_vary_by_half_are_a_maybe_with_an_honest_probability() -> None:
    found = [answer_of("gamma_gaps", number) for number in range(EACH)]
    answers = [one for one in found if one is not None]

    assert answers
    assert all(one.certainty == "maybe" for one in answers)
    assert all(one.false_alarm_probability > 0.01 for one in answers)
    assert all(one.chance_of_random_bursts <= 0.12 for one in answers)


def test_equal_rectangles_at_random_times_are_not_announced_live() -> None:
    family = NOT_PERIODIC["equal_rectangles"]

    announced = [any(followed(draw(family, number))) for number in range(3)]

    assert sum(announced) == 0


@pytest.mark.parametrize("name", ["loader_30", "serial_equal_requests", "random_pairs", "chirp"])
def test_programs_without_a_clock_are_not_announced_live(name: str) -> None:
    announced = [
        any(one is not None and one.certainty == "sure" for one in followed(draw(family, number)))
        for family in (NOT_PERIODIC[name],)
        for number in range(4)
    ]

    assert sum(announced) == 0


@pytest.mark.parametrize("name", ["by_turns", "two_jobs", "three_bins_a_period"])
def test_periods_that_only_a_spectrum_shows_are_followed_live(name: str) -> None:
    streams = [draw(PERIODIC[name], number) for number in range(4)]

    said = [[one.seconds for one in followed(stream) if one is not None] for stream in streams]
    right = [
        any(map(stream.is_right, periods)) for stream, periods in zip(streams, said, strict=True)
    ]

    assert sum(right) >= 3


@pytest.mark.parametrize("name", ["unequal_bytes", "log_normal_bursts"])
def test_bursts_that_move_very_different_amounts_are_followed_live(name: str) -> None:
    streams = [draw(PERIODIC[name], number) for number in range(3)]

    said = [[one.seconds for one in followed(stream) if one is not None] for stream in streams]

    assert all(
        any(map(stream.is_right, periods)) for stream, periods in zip(streams, said, strict=True)
    )


@pytest.mark.parametrize("shape", [1.0, 4.0, 25.0])
@pytest.mark.parametrize("waits", [3, 6, 20])
def test_the_chance_of_even_waits_holds_for_every_law(shape: float, waits: int) -> None:
    drawn = np.random.default_rng(seed=waits).gamma(shape, size=(20_000, waits))
    variation = drawn.std(axis=1) / drawn.mean(axis=1)

    for level in (0.01, 0.05):
        observed = float(np.quantile(variation, level))
        claimed = probability(log_regular(waits=waits, variation=observed, shape=shape))
        assert 0.8 * level <= claimed <= 2.5 * level


def test_waits_without_a_clock_ever_look_like_a_periodicity_no_more_often_than_claimed() -> None:
    drawn = np.random.default_rng(seed=1).gamma(11.0, size=(400, 40))

    least = [
        min(log_ever_even(waits[:seen], shape=11.0, error=0.0) for seen in range(3, 41))
        for waits in drawn
    ]

    for level in (0.02, 0.1):
        assert float(np.mean(np.exp(least) <= level)) <= level


def test_half_of_the_jobs_whose_computing_jitters_are_followed_live() -> None:
    streams = [draw(PERIODIC["varying_compute"], number) for number in range(8)]

    said = [[one.seconds for one in followed(stream) if one is not None] for stream in streams]
    right = [
        any(map(stream.is_right, periods)) for stream, periods in zip(streams, said, strict=True)
    ]

    assert sum(right) >= 4
