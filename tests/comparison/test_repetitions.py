"""Noise is told from change as often as promised; distributions are those of the tables."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.comparison.repetitions import Difference, difference, runs_needed, student_quantile

NOISE = 0.05
TRIALS = 600


def samples(
    rng: np.random.Generator, mean: float, runs: int, *, skewed: bool = False
) -> list[float]:
    drawn = rng.normal(0.0, NOISE, runs)
    return [float(mean * (np.exp(x) if skewed else 1 + x)) for x in drawn]


def trials(before: float, after: float, runs: int, *, skewed: bool = False) -> list[Difference]:
    rng = np.random.default_rng(seed=7)
    sides = (
        [samples(rng, mean, runs, skewed=skewed) for mean in (before, after)] for _ in range(TRIALS)
    )
    return [difference(*side) for side in sides]


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.99, 4, 3.74695), (0.975, 30, 2.04227),
     (0.975, 1e6, 1.95996), (0.95, 7.5, 1.87575)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(
    probability: float, freedom: float, value: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("runs", [2, 3, 5, 12])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_same_program_fails_in_at_most_one_of_a_hundred(runs: int, skewed: bool) -> None:
    failed = sum(found.is_regression(0.0) for found in trials(10.0, 10.0, runs, skewed=skewed))

    assert failed <= 0.01 * TRIALS + 2.33 * (0.01 * TRIALS) ** 0.5  # and chance, at 1 %


@pytest.mark.parametrize("skewed", [False, True])
def test_a_regression_of_ten_percent_is_found_over_noise_of_five(skewed: bool) -> None:
    needed = runs_needed(NOISE, 0.1)
    assert needed == 11
    found = trials(10.0, 11.0, needed + 1, skewed=skewed)

    assert sum(one.is_regression(0.05) for one in found) >= 0.95 * TRIALS
    assert sum(one.beyond_noise is True for one in found) >= 0.95 * TRIALS


def test_the_interval_holds_the_true_saving_as_often_as_it_says() -> None:
    hits = [
        one.low <= 2.0 <= one.high
        for one in trials(10.0, 8.0, 4)
        if one.low is not None and one.high is not None
    ]

    assert len(hits) == TRIALS
    assert 0.93 <= sum(hits) / TRIALS <= 0.98


def test_single_runs_have_no_interval_and_never_fail() -> None:
    found = difference([10.0], [20.0])

    assert (found.saved, found.low, found.beyond_noise) == (-10.0, None, None)
    assert not found.is_regression(0.05)


def test_one_repeated_side_lends_its_noise_to_the_other() -> None:
    calm, wild = difference([10.0], [12.0, 12.1, 11.9]), difference([10.0], [12.0, 16.0, 8.0])

    assert calm.is_regression(0.05)
    assert wild.beyond_noise is False


def test_runs_without_any_noise_are_compared_exactly() -> None:
    assert difference([1.0, 1.0], [2.0, 2.0]).is_regression(0.5)
    assert difference([1.0, 1.0], [1.0, 1.0]).beyond_noise is False


@pytest.mark.parametrize(
    ("before", "after", "chance"),
    [
        ((1, 2, 3, 4, 5), (6, 7, 8, 9, 10), 1 / 252),
        ((6, 7, 8, 9, 10), (1, 2, 3, 4, 5), 1.0),
        ((1, 2, 3, 5, 6), (4, 7, 8, 9, 10), 4 / 252),  # 1, 1 and 2 orders are as extreme
        ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), 0.5),
    ],
)
def test_ranks_are_compared_exactly(
    before: tuple[int, ...], after: tuple[int, ...], chance: float
) -> None:
    found = difference([*map(float, before)], [*map(float, after)])

    assert found.slower_by_chance == pytest.approx(chance, abs=0.05 if chance == 0.5 else 1e-12)


def test_outliers_on_both_sides_do_not_hide_a_regression() -> None:
    rng = np.random.default_rng(seed=8)

    def runs(mean: float) -> list[float]:  # one in six is disturbed, as measured on a busy machine
        return [x + 10.0 * float(rng.random() < 1 / 6) for x in samples(rng, mean, 20)]

    found = [difference(runs(10.0), runs(11.0)) for _ in range(200)]
    same = [difference(runs(10.0), runs(10.0)) for _ in range(200)]
    assert sum(one.is_regression(0.05) for one in found) >= 160
    assert sum(one.is_regression(0.05) for one in same) <= 5
    assert np.median([one.noise or 0.0 for one in found]) == pytest.approx(NOISE, abs=0.02)


def test_many_runs_are_compared_by_the_normal_law_and_few_exactly() -> None:
    rng = np.random.default_rng(seed=9)
    before, after = samples(rng, 10.0, 31), samples(rng, 10.3, 30)
    exact = difference(before[:30], after).slower_by_chance
    near = difference(before, after).slower_by_chance

    assert exact is not None
    assert near == pytest.approx(exact, rel=0.5)


def test_noise_beyond_reach_needs_more_runs_than_anybody_makes() -> None:
    assert runs_needed(1.0, 0.01) is None
