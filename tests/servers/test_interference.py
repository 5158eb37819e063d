"""Applications that slow each other down are told, those that only seem to are not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ioprism.model.counters import SECOND
from ioprism.servers.fleet import contacts
from ioprism.servers.interference import Disturbance, interference
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.load import machine_load
from ioprism.servers.series import MetricSettings
from ioprism.site.change_point import rank_sum
from tests.servers.sources import Memory, one_job, samples

SETTINGS = MetricSettings(120 * SECOND, min_runtime=0.0)
STEPS = 600


def named(jobs: pl.DataFrame, user: str) -> pl.DataFrame:
    return jobs.with_columns(user=pl.lit(user), name=pl.lit(f"{user}'s program"))


def found_in(table: pl.DataFrame, jobs: pl.DataFrame) -> tuple[Disturbance, ...]:
    source = Memory(table)
    load = machine_load(source, jobs, settings=SETTINGS)
    return interference(source, load, settings=SETTINGS)


def measured_pair(rng: np.random.Generator, *, slowdown: float) -> tuple[Disturbance, ...]:
    """A program that always writes, beside one that writes for an hour and pauses for one."""
    busy = np.arange(STEPS) // 30 % 2 == 1
    noise = np.exp(0.3 * rng.standard_normal(STEPS))
    victim = 1e9 * noise / np.where(busy, slowdown, 1.0)
    moved = {"1": victim, "2": np.where(busy, 2e9, 0.0)}
    tables = []
    for job, growth in moved.items():
        totals = np.concatenate([[0], np.cumsum(growth.astype(np.int64))]).tolist()
        values = {120.0 * n: total for n, total in enumerate(totals)}
        tables.append(samples("ost0", values, job=job, since=0.0))
    end = 120.0 * STEPS
    jobs = pl.concat(
        [named(one_job(0, end, job="1"), "ann"), named(one_job(0, end, job="2"), "bob")]
    )
    return found_in(pl.concat(tables), jobs)


def test_a_program_slowed_by_its_neighbour_is_told_with_how_much() -> None:
    found = measured_pair(np.random.default_rng(1), slowdown=2.0)

    slowed = [pair for pair in found if pair.certain]
    assert [(pair.application.user, pair.neighbour.user) for pair in slowed] == [("ann", "bob")]
    assert slowed[0].slowdown == pytest.approx(2.0, rel=0.1)
    assert slowed[0].measure == "bandwidth"
    assert slowed[0].hours == pytest.approx(10.0, rel=0.1)


def test_programs_that_do_not_disturb_each_other_are_called_slow_no_more_often_than_asked() -> None:
    rng = np.random.default_rng(2)

    alarms = sum(any(pair.certain for pair in measured_pair(rng, slowdown=1.0)) for _ in range(30))

    assert alarms <= 4  # 5 % of 30, and two standard errors


def shared_runs(rng: np.random.Generator, *, slowdown: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Runs of one program on a server, every other one beside another program."""
    jobs, clock = [], 0.0
    for number in range(24):
        beside = number % 2 == 1
        length = 3600 * float(np.exp(0.1 * rng.standard_normal())) * (slowdown if beside else 1.0)
        jobs.append(named(one_job(clock, clock + length, "oss", job=f"v{number}"), "ann"))
        if beside:
            jobs.append(named(one_job(clock, clock + length, "oss", job=f"n{number}"), "bob"))
        clock += length + 300
    steps = int(clock / 120) + 2
    table = samples("oss", {120.0 * n: n * 10**9 for n in range(steps)})
    return table, pl.concat(jobs)


def test_run_times_tell_where_servers_do_not_count_by_job() -> None:
    table, jobs = shared_runs(np.random.default_rng(3), slowdown=1.5)

    found = found_in(table, jobs)

    assert found[0].certain
    assert (found[0].application.user, found[0].neighbour.user) == ("ann", "bob")
    assert (found[0].measure, found[0].beside, found[0].quiet) == ("run_time", 12, 12)
    assert found[0].slowdown == pytest.approx(1.5, rel=0.1)


def test_who_disturbs_others_is_someone_to_talk_to() -> None:
    table, jobs = shared_runs(np.random.default_rng(3), slowdown=1.5)
    metrics = job_metrics(Memory(table), jobs, settings=SETTINGS)

    found = contacts(metrics, found_in(table, jobs))

    disturbing = next(one for one in found if one.reason == "disturbs_others")
    assert (disturbing.user, disturbing.jobs) == ("bob", 12)
    assert disturbing.hours_at_stake == pytest.approx(12 * 0.5, rel=0.15)  # what the other lost


def test_run_times_that_do_not_differ_are_chance() -> None:
    rng = np.random.default_rng(4)

    alarms = sum(
        any(pair.certain for pair in found_in(*shared_runs(rng, slowdown=1.0))) for _ in range(24)
    )

    assert alarms <= 3


def test_long_runs_are_not_taken_for_slowed_ones_because_they_meet_more_neighbours() -> None:
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(16):
        tables = []
        for user, spread, pause in (("ann", 0.8, 3600.0), ("bob", 0.3, 3600.0)):
            clock = float(rng.uniform(0, 3600))
            while clock < 10 * 86_400:
                length = 3600 * float(np.exp(spread * rng.standard_normal()))
                tables.append(named(one_job(clock, clock + length, "oss", job=f"{clock}"), user))
                clock += length + float(rng.exponential(pause))
        table = samples("oss", {7200.0 * n: n * 10**9 for n in range(125)})
        found = found_in(table, pl.concat(tables))
        alarms += any(pair.certain and pair.application.user == "ann" for pair in found)

    assert alarms <= 3  # 5 % of 16, and two standard errors; of runs compared whole it was 61 %


def test_the_rank_sum_test_is_that_of_the_tables() -> None:
    # Siegel (1956) and every table since: of 5 and 5 without overlap, U is 0, one-sided 0.004.
    low, high = np.arange(5.0), np.arange(5.0) + 10

    assert rank_sum(high, low) == pytest.approx(0.006, abs=0.002)
    assert rank_sum(low, high) > 0.99
    assert rank_sum(np.ones(6), np.ones(6)) == 1.0


def test_many_pairs_make_each_less_certain() -> None:
    table, jobs = shared_runs(np.random.default_rng(5), slowdown=1.5)
    alone = found_in(table, jobs)

    assert alone[0].adjusted >= alone[0].probability
