"""The machine's numbers follow from its jobs, and the simulated truth is recovered."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.servers import JobMetrics
from ioprism.servers.compute import job_metrics
from ioprism.servers.fleet import fleet, quantile, top_share
from ioprism.servers.load import machine_load
from ioprism.servers.settings import MetricSettings
from ioprism.servers.simulated_load import Simulation, SimulationSettings, simulate
from ioprism.servers.validate import PerfectCounters, duty_cycles, validate
from tests.servers.sources import Memory

SETTINGS = MetricSettings(120 * SECOND)


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
    found = fleet(metrics, machine_load(source, simulation.jobs, settings=SETTINGS))

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
    table = metrics.table.join(duty_cycles(simulation), on="job")

    for direction in DIRECTIONS:
        error = (table[f"{direction}_bytes"] - table[f"{direction}_moved"].fill_null(0)).abs()
        assert (error <= table[f"{direction}_boundary_bytes"] + 2 * table["servers"]).all()


def test_perfect_counters_give_the_true_duty_cycle_and_volume(simulation: Simulation) -> None:
    settings = MetricSettings(120 * SECOND, grid="native", gap_factor=float("inf"))
    perfect = job_metrics(PerfectCounters(simulation), simulation.jobs, settings=settings).table
    table = perfect.join(duty_cycles(simulation), on="job")
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

    found = validate(metrics, simulation, native)

    assert found.passed
    medians = {check.name: check.median for check in found.checks}
    assert medians["write intensity"] > medians["write intensity, native grid"]


def test_a_wrong_chain_is_noticed(simulation: Simulation, metrics: JobMetrics) -> None:
    doubled = metrics.table.with_columns(pl.col("write_bytes") * 2)

    found = validate(JobMetrics(doubled, SETTINGS), simulation, metrics)

    assert not found.passed


def test_the_same_seed_gives_the_same_machine() -> None:
    one, two = (simulate(SimulationSettings(servers=3, days=1.0, seed=5)) for _ in range(2))

    assert one.jobs.equals(two.jobs)
    assert pl.concat(one.counters()).equals(pl.concat(two.counters()))
