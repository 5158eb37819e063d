"""Policies do what they promise, and Set-10 needs no more than ioprism's live periods."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ioprism.scheduling.knowledge import LivePeriods, PredictedPeriods, TruePeriods
from ioprism.scheduling.machine import Iteration, MachineRun, SimulatedJob, simulate
from ioprism.scheduling.policies import (
    POLICIES,
    Policy,
    Waiting,
    clairvoyant,
    fair_share,
    first_come_first_served,
    set_10,
)
from ioprism.scheduling.result import interval
from ioprism.scheduling.steps import draw_jobs, repeating, three_magnitudes

RATE = 100.0


def job(name: str, compute: float, moved: float, start: float = 0.0) -> SimulatedJob:
    return SimulatedJob(name, (Iteration(compute, moved),), start=start)


def run(policy: Policy, *jobs: SimulatedJob, horizon: float = 1000.0) -> MachineRun:
    knowledge = TruePeriods(jobs, RATE)
    return simulate(jobs, policy, knowledge, bandwidth=RATE, horizon=horizon)


def test_a_job_alone_is_never_slowed_down() -> None:
    for policy in POLICIES.values():
        alone = run(policy, job("a", 8.0, 200.0))

        assert alone.io_slowdown == pytest.approx(1.0)
        assert alone.utilisation == pytest.approx(0.8, abs=0.002)


def test_equal_jobs_in_step_take_twice_as_long_by_fair_share_and_part_by_turns() -> None:
    jobs = job("a", 8.0, 200.0), job("b", 8.0, 200.0)
    fair, turns = run(fair_share, *jobs), run(first_come_first_served, *jobs)

    assert fair.io_slowdown == pytest.approx(2.0, rel=0.01)
    assert turns.io_slowdown == pytest.approx(1.0, abs=0.02)  # after one wait they are apart
    assert turns.utilisation == pytest.approx(0.8, abs=0.01)


def test_no_policy_gives_more_than_there_is_or_than_a_job_can_use() -> None:
    chance = np.random.default_rng(5)
    for policy, count in itertools.product(POLICIES.values(), (1, 3, 9)):
        waiting = [
            Waiting(n, float(n), 1.0 + n, 5.0, float(chance.uniform(5.0, 80.0)),
                    float(chance.choice([5.0, 50.0, 5000.0])))
            for n in range(count)
        ]  # fmt: skip
        rates = policy(waiting, RATE)

        assert sum(rates) <= RATE * (1 + 1e-9)
        assert all(0.0 <= rate <= one.limit for rate, one in zip(rates, waiting, strict=True))
        assert sum(rates) == pytest.approx(min(RATE, sum(one.limit for one in waiting)))


def test_sets_share_by_magnitude_and_take_turns_within() -> None:
    periods = (10.0, 12.0, 100.0, 1000.0)
    waiting = [Waiting(n, float(n), 1.0, 1.0, RATE, period) for n, period in enumerate(periods)]

    assert set_10(waiting, 111.0) == pytest.approx([100.0, 0.0, 10.0, 1.0])


def test_the_clairvoyant_serves_the_small_phase_first() -> None:
    waiting = [Waiting(0, 0.0, 90.0, 100.0, RATE, None), Waiting(1, 1.0, 10.0, 10.0, RATE, None)]

    assert clairvoyant(waiting, RATE) == [0.0, RATE]


def test_set_10_with_live_periods_gains_nearly_what_it_gains_with_true_ones() -> None:
    workload = three_magnitudes()
    runs: dict[str, list[float]] = {"fair": [], "given": [], "live": []}
    for seed in range(2):
        jobs = draw_jobs(workload, seed=seed)
        given = TruePeriods(jobs, workload.bandwidth)
        for name, policy, known in (
            ("fair", fair_share, given), ("given", set_10, given),
            ("live", set_10, LivePeriods(jobs)),
        ):  # fmt: skip
            ran = simulate(jobs, policy, known, bandwidth=workload.bandwidth, horizon=1200.0)
            runs[name].append(ran.io_slowdown)
    fair, given_mean, live = (float(np.mean(runs[name])) for name in ("fair", "given", "live"))

    assert given_mean < 0.9 * fair
    assert fair - live >= 0.95 * (fair - given_mean)


def test_a_predictor_that_finds_nothing_leaves_the_distance_of_phases() -> None:
    jobs = (job("a", 8.0, 200.0),)
    known = PredictedPeriods(jobs, lambda _: None)

    assert known.period(0, now=8.0) is None
    known.observe(0, start=8.0, end=10.0, moved=200.0)
    assert known.period(0, now=18.0) == 10.0  # before the second phase is served
    known.observe(0, start=18.0, end=20.0, moved=200.0)
    assert known.period(0, now=30.0) == 11.0


def test_a_first_phase_moves_to_slower_sets_the_longer_it_is_served() -> None:
    def magnitude(left: float) -> int:
        return Waiting(0, 0.0, left, 100.0 * RATE, RATE, None, age=12.0).magnitude

    assert [magnitude(seconds * RATE) for seconds in (100.0, 98.0, 96.0, 60.0)] == [1, 1, 2, 3]
    assert Waiting(0, 0.0, 1.0, 100.0 * RATE, RATE, 12.0, age=12.0).magnitude == 1


def test_a_phase_that_runs_at_the_horizon_is_followed_to_its_end() -> None:
    cut = run(first_come_first_served, job("a", 8.0, 400.0), job("b", 9.0, 400.0), horizon=10.0)

    assert [one.phases for one in cut.jobs] == [1, 1]
    assert [one.io_slowdown for one in cut.jobs] == pytest.approx([1.0, 7.0 / 4.0])
    assert [one.compute for one in cut.jobs] == pytest.approx([8.0, 9.0])


def test_a_trace_is_repeated_with_its_gaps_and_bytes() -> None:
    made = repeating("x", [(5.0, 6.0, 100.0), (12.0, 14.0, 50.0)])

    assert made.iterations == (Iteration(5.0, 100.0), Iteration(6.0, 50.0))
    assert made.bandwidth == 100.0


def test_the_interval_is_student_s() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])

    assert found.mean == 3.0
    assert found.high - found.mean == pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=0.01)
