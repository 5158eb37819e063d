"""Totals, the 80 % table, users, busy hours and trends equal what a simulated machine did."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_servers import (
    PerfectCounters,
    Simulation,
    SimulationSettings,
    compare_with_truth,
    simulate,
    true_bytes,
)
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.servers import JobMetrics
from ioprism.servers.fleet import (
    monthly_trend,
    quantile,
    summarise_fleet,
    top_share,
    weekly_profile,
)
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.load import MachineLoad, machine_load
from ioprism.servers.series import MetricSettings
from tests.servers.sources import Memory, one_job, samples

SETTINGS = MetricSettings(120 * SECOND)
MONDAY = 1_767_571_200  # 2026-01-05 00:00 UTC
HOUR = 3600.0
HOURLY = MetricSettings(round(HOUR) * SECOND, min_runtime=0.0)


def busy_seconds(simulation: Simulation) -> pl.DataFrame:
    """The seconds in which each job truly read or wrote: the union of its bursts."""
    truth = simulation.jobs.select("job")
    reached = pl.col("end").cum_max().shift(1).over("job")
    fresh = (pl.col("end") - pl.max_horizontal("start", reached)).clip(0.0)
    for direction in DIRECTIONS:
        bursts = simulation.bursts.filter(direction=direction).sort("job", "start", "end")
        busy = bursts.with_columns(fresh=fresh).group_by("job").agg(pl.col("fresh").sum())
        truth = truth.join(busy.rename({"fresh": f"{direction}_busy"}), on="job", how="left")
    return truth.with_columns(pl.col(f"{d}_busy").fill_null(0.0) for d in DIRECTIONS)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(SimulationSettings(servers=15, days=6.0, seed=11))


@pytest.fixture(scope="module")
def metrics(simulation: Simulation) -> JobMetrics:
    source = Memory(pl.concat(simulation.counters()))
    return job_metrics(source, simulation.jobs, settings=SETTINGS)


def test_eighty_percent_is_a_value_that_occurs() -> None:
    assert quantile(pl.Series([5.0, 1.0, 4.0, 2.0, 3.0])) == 4.0
    assert quantile(pl.Series([0.5, None])) == 0.5
    assert quantile(pl.Series([None], dtype=pl.Float64)) is None


def test_the_share_of_the_top_jobs() -> None:
    assert top_share(pl.Series([90.0, 5.0, 3.0, 1.0, 1.0])) == pytest.approx(0.9)
    assert top_share(pl.Series([0.0, 0.0])) is None


def test_the_sums_of_the_machine_are_those_of_its_jobs_and_of_nobody(
    simulation: Simulation, metrics: JobMetrics
) -> None:
    source = Memory(pl.concat(simulation.counters()))
    found = summarise_fleet(metrics, machine_load(source, simulation.jobs, settings=SETTINGS))

    for direction in DIRECTIONS:
        totals = found.totals[direction]
        users = sum(user.bytes[direction] for user in found.users)
        moved = simulation.bursts.filter(direction=direction)["bytes"].sum()
        assert totals.bytes == pytest.approx(moved)
        assert totals.shared == 0
        assert users == pytest.approx(totals.attributed)
        assert users >= metrics.table[f"{direction}_bytes"].sum()
        assert users + totals.unattributed == pytest.approx(totals.bytes)
    assert sum(user.jobs for user in found.users) == found.listed == simulation.jobs.height
    assert found.jobs == found.attributions["exclusive"] == metrics.table.height
    assert found.busiest["moved"].is_sorted(descending=True)


def test_errors_of_volume_stay_within_the_bytes_called_uncertain(
    simulation: Simulation, metrics: JobMetrics
) -> None:
    table = metrics.table.join(true_bytes(simulation), on="job")

    for direction in DIRECTIONS:
        error = (table[f"{direction}_bytes"] - table[f"{direction}_moved"].fill_null(0)).abs()
        assert (error <= table[f"{direction}_boundary_bytes"] + 2 * table["servers"]).all()


def test_perfect_counters_give_the_true_duty_cycle_and_volume(simulation: Simulation) -> None:
    settings = MetricSettings(120 * SECOND, grid="native", gap_factor=float("inf"))
    perfect = job_metrics(PerfectCounters(simulation), simulation.jobs, settings=settings).table
    table = perfect.join(busy_seconds(simulation), on="job").join(true_bytes(simulation), on="job")
    runtime = ((table["end_us"] - table["start_us"]) / SECOND).to_numpy()

    for direction in DIRECTIONS:
        busy = table[f"{direction}_busy"].to_numpy() / runtime
        moved = table[f"{direction}_moved"].fill_null(0).to_numpy()
        assert np.allclose(table[f"{direction}_intensity_0"].to_numpy(), busy, atol=1e-6)
        assert np.allclose(table[f"{direction}_bytes"].to_numpy(), moved, atol=100)


def test_the_simulated_truth_is_recovered_within_the_stated_bias(
    simulation: Simulation, metrics: JobMetrics
) -> None:
    native = job_metrics(
        Memory(pl.concat(simulation.counters())),
        simulation.jobs,
        settings=MetricSettings(120 * SECOND, grid="native"),
    )

    found = compare_with_truth(metrics, simulation, native)

    assert found.passed
    medians = {check.name: check.median for check in found.checks}
    assert medians["write intensity"] > medians["write intensity, native grid"]


def test_a_wrong_chain_is_noticed(simulation: Simulation, metrics: JobMetrics) -> None:
    doubled = metrics.table.with_columns(pl.col("write_bytes") * 2)

    found = compare_with_truth(JobMetrics(doubled, SETTINGS), simulation, metrics)

    assert not found.passed


def test_the_same_seed_gives_the_same_machine() -> None:
    one, two = (simulate(SimulationSettings(servers=3, days=1.0, seed=5)) for _ in range(2))

    assert one.jobs.equals(two.jobs)
    assert pl.concat(one.counters()).equals(pl.concat(two.counters()))


def load_of(growth: np.ndarray, jobs: pl.DataFrame | None = None) -> MachineLoad:
    """A server that moved some bytes in each hour from a Monday on."""
    totals = np.concatenate([[0], np.cumsum(growth.astype(np.int64))]).tolist()
    values = {MONDAY + HOUR * n: total for n, total in enumerate(totals)}
    chosen = one_job(MONDAY, MONDAY + HOUR, "ion0") if jobs is None else jobs
    return machine_load(Memory(samples("ion0", values)), chosen, settings=HOURLY)


def test_the_busy_hour_is_found_in_the_local_week() -> None:
    growth = np.zeros(14 * 24)
    growth[[24 + 9, 8 * 24 + 9]] = 3.6e12  # Tuesdays from 9 to 10

    here, there = (weekly_profile(load_of(growth), zone) for zone in ("UTC", "Asia/Kolkata"))

    assert here.rates[1, 1, 9] == pytest.approx(1e9)
    assert here.rates[1].sum() == pytest.approx(1e9)
    assert there.rates[1, 1, [14, 15]].tolist() == pytest.approx([5e8, 5e8])  # half an hour each
    assert here.rates[0].sum() == 0


def test_hours_that_nobody_recorded_are_unknown() -> None:
    found = weekly_profile(load_of(np.ones(24)))

    assert not np.isnan(found.rates[1, 0]).any()
    assert np.isnan(found.rates[1, 1:]).all()


def test_a_month_is_compared_with_the_one_before_by_day() -> None:
    days = 27 + 28 + 3  # to the end of January, February, and a little of March
    growth = np.full(days * 24, 1e9)
    growth[27 * 24 :] = 1.5e9
    runs = [one_job(MONDAY + HOUR, MONDAY + 9 * HOUR, "ion0", job="1"),
            one_job(MONDAY + 28 * 24 * HOUR, MONDAY + 30 * 24 * HOUR, "ion0", job="2")]  # fmt: skip
    jobs = pl.concat(runs).with_columns(account=pl.lit("a"))

    found = monthly_trend(load_of(growth, jobs))

    assert [month.month for month in found.months] == ["2026-01", "2026-02", "2026-03"]
    assert [month.days for month in found.months] == pytest.approx([27, 28, 3])
    assert found.compared == ("2026-01", "2026-02")
    assert found.months[1].change["write"] == pytest.approx(0.5)
    assert found.months[1].change["read"] is None
    assert found.months[2].change["write"] is None  # three days are no month
    assert found.accounts[0].before == pytest.approx(8e9 / 27)
    assert found.accounts[0].after == pytest.approx(48 * 1.5e9 / 28)


def test_accounts_that_changed_alike_come_in_one_order() -> None:
    names = [f"account{n}" for n in range(9)]
    idle = [one_job(MONDAY + HOUR, MONDAY + 9 * HOUR, "other", job=name) for name in names]
    jobs = pl.concat(idle).with_columns(account=pl.col("job")).reverse()

    found = monthly_trend(load_of(np.ones(58 * 24), jobs))

    assert [change.name for change in found.accounts] == names
