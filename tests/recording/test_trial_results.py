"""A search for gains finds none by chance in 99 of 100, and finds true ones."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.recording.trials import Judgement, Requests, judge, same_requests


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


def test_two_runs_decide_nothing() -> None:
    assert judge([10.0, 10.0], [1.0, 1.0], rounds=8, changes=1) == "undecided"


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
