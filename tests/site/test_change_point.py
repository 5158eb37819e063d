"""Changes and stretches are found where they are, and noise has them no more often than asked."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.site.change_point import Ranked, low_stretch


def ranked(values: np.ndarray) -> Ranked:
    return Ranked.of(values, np.zeros(len(values), np.int64))


@pytest.mark.parametrize("place", [20, 60, 170])
def test_a_change_is_found_where_it_is(place: int) -> None:
    rng = np.random.default_rng(place)
    series = ranked(rng.lognormal(0.0, 0.3, 200) * np.where(np.arange(200) < place, 1.0, 3.0))

    found = series.split()

    assert found is not None
    assert abs(found.place - place) <= 2
    assert series.chance_of(found) < 1e-4


def test_noise_changes_no_more_often_than_asked() -> None:
    rng = np.random.default_rng(1)
    chances = []
    for _ in range(60):
        series = ranked(rng.lognormal(0.0, 1.0, 50))
        found = series.split()
        assert found is not None
        chances.append(series.chance_of(found))

    assert sum(chance <= 0.05 for chance in chances) <= 8  # 5 % of 60 and three standard errors


def test_a_campaign_of_larger_jobs_is_no_change_but_a_change_among_alike_is() -> None:
    rng = np.random.default_rng(5)
    large = np.arange(200) >= 90
    values = rng.lognormal(0.0, 0.05, 200) * np.where(large, 4.0, 1.0)
    apart = Ranked.of(values, large.astype(np.int64))
    split = apart.split()
    assert split is not None

    assert apart.chance_of(split) > 0.01
    halved = Ranked.of(values / np.where(np.arange(200) >= 140, 2.0, 1.0), large.astype(np.int64))
    found = halved.split()
    assert found is not None
    assert found.place == 140
    assert halved.chance_of(found) < 1e-3


@pytest.mark.parametrize("length", [8, 40])
def test_a_low_stretch_is_found_to_the_job_though_one_saw_nothing(length: int) -> None:
    low = np.random.default_rng(length).random(400) < 0.02
    low[98:100] = low[100 + length : 102 + length] = False
    low[100 : 100 + length] = True
    low[100 + length // 2] = False

    found = low_stretch(low, usual=0.02)

    assert found is not None
    assert (found.first, found.end) == (100, 100 + length)
    assert found.probability < 1e-4


def test_rare_low_values_at_random_are_no_stretch() -> None:
    rng = np.random.default_rng(2)
    found = [low_stretch(rng.random(500) < 0.05, usual=0.05) for _ in range(200)]

    assert all(one is None or one.probability > 0.01 for one in found)


def test_short_and_constant_series_have_neither() -> None:
    constant = ranked(np.ones(50)).split()

    assert ranked(np.ones(9)).split() is None
    assert constant is not None
    assert constant.score == 0.0
    assert low_stretch(np.zeros(50, np.bool_), usual=0.01) is None
