"""A search for gains finds none by chance in 99 of 100, and finds true ones."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.comparison.repetitions import MAX_FALSE_ALARM, difference
from ioprism.recording.trials import EARLY_SHARE, Judgement, Requests, judge, same_requests


def search(rng: np.random.Generator, gains: list[float], rounds: int = 8) -> list[Judgement]:
    """Run rounds of a job with 5 % noise, and of changes that save a share of it."""
    base: list[float] = []
    times: list[list[float]] = [[] for _ in gains]
    status: list[Judgement] = ["undecided"] * len(gains)
    for _ in range(rounds):
        base.append(float(rng.normal(10.0, 0.5)))
        for number, gain in enumerate(gains):
            if status[number] == "undecided":
                times[number].append(float((1 - gain) * rng.normal(10.0, 0.5)))
                status[number] = judge(base, times[number], rounds=rounds, changes=len(gains))
    return status


def test_changes_without_effect_bring_no_gain_in_99_of_100_searches() -> None:
    rng = np.random.default_rng(seed=3)
    false_gains = sum("gain" in search(rng, [0.0, 0.0, 0.0]) for _ in range(300))

    assert false_gains <= 6  # 1 % of 300, and 1.7 standard errors


def test_a_gain_of_a_fifth_is_proven() -> None:
    rng = np.random.default_rng(seed=4)
    found = [search(rng, [0.2, 0.0]) for _ in range(60)]

    assert sum(status[0] == "gain" for status in found) >= 57


def test_a_change_that_slows_the_job_down_is_no_gain() -> None:
    rng = np.random.default_rng(seed=5)

    assert [search(rng, [-0.5]) for _ in range(20)].count(["no gain"]) == 20


def test_three_outliers_decide_nothing() -> None:
    assert judge([15.0, 15.1, 15.2], [10.0, 9.9, 10.1], rounds=8, changes=1) == "undecided"


def test_the_chance_of_a_false_gain_after_the_last_round_is_what_it_may_be() -> None:
    """Exact: one order of the runs for each number of pairs, with the share of orders like it."""
    runs, pairs = 8, 64
    before = range(1, runs + 1)
    false_gains, at_most_before = 0.0, 0.0
    for slower in range(pairs + 1):
        after = order(runs, slower)
        at_most = difference(after, before).slower_by_chance
        assert at_most is not None
        if judge(before, after, rounds=runs, changes=1) == "gain":
            false_gains += at_most - at_most_before
        at_most_before = at_most

    assert 0.005 < false_gains <= (1 - EARLY_SHARE) * MAX_FALSE_ALARM


def order(runs: int, slower: int) -> list[float]:
    """Return as many times, so that these many pairs with 1, 2, … have the longer one here."""
    above_all, above_some = divmod(slower, runs)
    times = [float(runs + 1 + number) for number in range(above_all)]
    if len(times) < runs:
        times.append(above_some + 0.5)
    return times + [-float(number) for number in range(runs - len(times))]


@pytest.mark.parametrize(
    ("after", "same"),
    [
        (Requests(50, 50, 500, 500), True),
        (Requests(50, 40, 500, 500), False),
        (Requests(50, 50, 500, 600), False),
    ],
)
def test_a_hint_that_changes_no_request_had_no_effect(after: Requests, same: bool) -> None:
    assert same_requests(Requests(50, 50, 500, 500), after) is same
