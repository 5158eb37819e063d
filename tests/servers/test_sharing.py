"""Bytes of shared servers are counted once: attributed, shared and unattributed add up."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulated_servers import SimulationSettings, simulate
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.servers.fleet import summarise_fleet
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.load import MachineLoad, machine_load
from ioprism.servers.series import MetricSettings
from tests.servers.sources import Memory, measured, one_job, samples
from tests.servers.test_properties import machines

GIGA = 10**9


def account(table: pl.DataFrame, jobs: pl.DataFrame, **chosen: object) -> MachineLoad:
    method = MetricSettings(120 * SECOND, min_runtime=0.0, **chosen)  # type: ignore[arg-type]
    return machine_load(Memory(table), jobs, settings=method)


def steady(
    server: str, *, steps: int = 120, growth: int = 6 * GIGA, **facts: object
) -> pl.DataFrame:
    return samples(server, {120.0 * n: n * growth for n in range(steps + 1)}, **facts)  # type: ignore[arg-type]


def ten_jobs(**nodes: int) -> pl.DataFrame:
    runs = [one_job(0, 14_400, "oss1", "oss2", job=str(n)) for n in range(10)]
    counts = [nodes.get(f"job{n}", 1) for n in range(10)]
    return pl.concat(runs).with_columns(nodes=pl.Series(counts, dtype=pl.Int64))


TWO_SERVERS = pl.concat([steady("oss1"), steady("oss2")])
WRITTEN = 2 * 120 * 6 * GIGA  # 1.31 TiB


def test_ten_jobs_on_two_servers_wrote_what_the_servers_wrote() -> None:
    load = account(TWO_SERVERS, ten_jobs())
    table = measured(TWO_SERVERS, ten_jobs())

    assert load.moved.sum(axis=1).tolist() == [0, WRITTEN]
    assert load.parts[:, 1].sum(axis=1).tolist() == pytest.approx([0, WRITTEN, 0])
    assert table["write_bytes"].to_list() == pytest.approx([WRITTEN / 10] * 10)
    assert set(table["attribution"]) == {"split"}
    assert table["write_max_bandwidth"].to_list() == pytest.approx([WRITTEN / 10 / 14_400] * 10)


def test_shared_bytes_are_split_in_proportion_to_nodes() -> None:
    table = measured(TWO_SERVERS, ten_jobs(job3=11))

    found = dict(table.select("job", "write_bytes").iter_rows())
    assert found["3"] == pytest.approx(WRITTEN * 11 / 20)
    assert found["4"] == pytest.approx(WRITTEN / 20)


def test_nodes_behind_a_server_weigh_there_only() -> None:
    jobs = pl.concat(
        [
            one_job(0, 1200, "oss1", "oss1", "oss1", "oss2", job="a"),
            one_job(0, 1200, "oss1", job="b"),
        ]
    )

    found = measured(TWO_SERVERS, jobs)

    assert found["write_bytes"].to_list() == pytest.approx(
        [60 * GIGA * 0.75 + 60 * GIGA, 15 * GIGA]
    )
    assert found["write_shared_bytes"].to_list() == pytest.approx([45 * GIGA, 15 * GIGA])
    assert found["servers"].to_list() == [2, 1]


def test_bytes_are_attributed_while_a_job_is_alone_and_to_nobody_between_jobs() -> None:
    jobs = pl.concat(
        [one_job(0, 2400, "oss1", job="a"), one_job(1200, 3600, "oss1", job="b"),
         one_job(6000, 7200, "oss1", job="c")]
    )  # fmt: skip
    load = account(steady("oss1", steps=100), jobs)

    step = 6 * GIGA / 120
    assert load.parts[:, 1, 0].tolist() == pytest.approx([3600 * step, 1200 * step, 7200 * step])
    assert load.outside[1] == pytest.approx(4800 * step)
    assert load.jobs["write_attributed"].to_list() == pytest.approx([1200 * step] * 3)
    assert load.jobs["write_shared"].to_list() == pytest.approx([600 * step, 600 * step, 0])


def test_marked_bytes_are_given_to_nobody_and_that_time_is_unknown() -> None:
    jobs = pl.concat([one_job(0, 2400, "oss1", job="a"), one_job(1200, 3600, "oss1", job="b")])
    table = measured(steady("oss1"), jobs, shared="mark")
    load = account(steady("oss1"), jobs, shared="mark")

    assert table["write_bytes"].to_list() == pytest.approx([60 * GIGA, 60 * GIGA])
    assert table["unknown"].to_list() == pytest.approx([1200, 1200])
    assert set(table["attribution"]) == {"marked"}
    assert load.parts[1, 1, 0] == pytest.approx(60 * GIGA)
    assert load.jobs["write_shared"].sum() == 0


def test_what_a_server_counts_by_job_is_measured_and_the_rest_unattributed() -> None:
    whole = steady("ost0", steps=30)
    own = steady("ost0", steps=30, growth=2 * GIGA, job="7", since=0.0)
    foreign = steady("ost0", steps=30, growth=GIGA, job="bash.0", since=0.0)
    jobs = pl.concat([one_job(0, 3600, "node1", job="7"), one_job(0, 3600, "node2", job="8")])

    load = account(pl.concat([whole, own, foreign]), jobs)
    alone = account(pl.concat([own, foreign]), jobs)

    assert load.parts[:, 1, 0].tolist() == pytest.approx([60 * GIGA, 0, 120 * GIGA])
    assert alone.parts[:, 1, 0].tolist() == pytest.approx([60 * GIGA, 0, 30 * GIGA])
    assert load.measured[1] == pytest.approx(60 * GIGA)


def test_a_server_that_counts_less_than_its_jobs_still_adds_up() -> None:
    whole = steady("ost0", steps=30, growth=GIGA)
    own = steady("ost0", steps=30, growth=2 * GIGA, job="7", since=0.0)

    load = account(pl.concat([whole, own]), one_job(0, 3600, "node1", job="7"))

    assert load.parts[:, 1, 0].tolist() == pytest.approx([30 * GIGA, 0, 0])


def test_bytes_of_a_pause_of_more_than_a_day_are_unattributed_not_lost() -> None:
    table = samples("ion0", {0.0: 0, 120.0: GIGA, 200_000.0: 500 * GIGA, 200_120.0: 501 * GIGA})

    load = account(table, one_job(0, 200_120, "ion0"))

    assert load.moved[1].sum() == pytest.approx(501 * GIGA)
    assert load.parts[:, 1, 0].tolist() == pytest.approx([2 * GIGA, 0, 499 * GIGA])


def test_a_run_is_counted_apart_only_while_its_own_counters_are_there() -> None:
    whole = steady("ost0")
    own = samples("ost0", {120.0 * n: n * GIGA for n in range(31)}, job="7", since=0.0)
    jobs = pl.concat(
        [one_job(0, 3600, "ost0", job="7"), one_job(0, 3600, "ost0", job="8"),
         one_job(6000, 7200, "ost0", job="7")]
    )  # fmt: skip

    found = measured(pl.concat([whole, own]), jobs)
    load = account(pl.concat([whole, own]), jobs)

    assert found["attribution"].to_list() == ["measured", "exclusive", "exclusive"]
    # Job 8 can only have what the server did not count for job 7.
    assert found["write_bytes"].to_list() == pytest.approx([30 * GIGA, 150 * GIGA, 60 * GIGA])
    assert load.parts[0, 1, 0] == pytest.approx(240 * GIGA)
    assert load.parts[:, 1, 0].sum() == pytest.approx(load.moved[1, 0])


def test_what_a_job_moved_before_its_server_was_watched_is_in_no_total() -> None:
    whole = samples("ost0", {7200 + 120.0 * n: n * GIGA for n in range(31)})
    own = samples(
        "ost0", {7200 + 120.0 * n: (60 + n) * GIGA for n in range(31)}, job="7", since=0.0
    )

    load = account(pl.concat([whole, own]), one_job(0, 7200 + 1800, "node1", job="7"))

    assert load.parts[:, 1, 0].tolist() == pytest.approx([15 * GIGA, 0, 15 * GIGA])


def test_a_machine_where_five_jobs_share_each_server_moves_what_they_move() -> None:
    made = simulate(SimulationSettings(servers=8, days=1.0, seed=4, jobs_at_once=5))

    load = account(pl.concat(made.counters()), made.jobs)

    for number, direction in enumerate(DIRECTIONS):
        moved = float(made.bursts.filter(direction=direction)["bytes"].sum())
        assert load.moved[number].sum() == pytest.approx(moved, rel=1e-9, abs=100)
        assert load.parts[:, number].sum() == pytest.approx(moved, rel=1e-9, abs=100)
        given_out = load.jobs[f"{direction}_attributed"] + load.jobs[f"{direction}_shared"]
        assert given_out.sum() == pytest.approx(load.parts[:2, number].sum())
        assert load.parts[1, number].sum() > 0.5 * moved


def slowly(table: pl.DataFrame, jobs: pl.DataFrame, chosen: str) -> float:
    """A job's bytes, one span between any two starts or ends after another."""
    total = 0.0
    rows = jobs.to_dicts()
    cuts = sorted({row[name] for row in rows for name in ("start_us", "end_us")})
    for server in table["server"].unique():
        own = table.filter(server=server)
        times, values = own["time_us"].to_numpy(), own["bw"].to_numpy()
        for begin, end in itertools.pairwise(cuts):
            there = {
                row["job"]: row["nodes"] * row["servers"].count(server) / len(row["servers"])
                for row in rows
                if server in row["servers"] and row["start_us"] <= begin and end <= row["end_us"]
            }
            if chosen in there:
                moved = np.interp(end, times, values) - np.interp(begin, times, values)
                total += float(moved) * there[chosen] / sum(there.values())
    return total


@pytest.mark.parametrize("seed", range(6))
def test_every_job_gets_what_a_slow_and_simple_count_gives_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["oss0", "oss1", "oss2"]
    tables = []
    for name in names:
        times = np.cumsum(rng.uniform(60, 150, 60)).tolist()
        values = np.cumsum(rng.integers(0, GIGA, 60)).tolist()
        tables.append(samples(name, dict(zip(times, values, strict=True))))
    runs = [
        one_job(start, start + rng.uniform(60, 3000),
                *rng.choice(names, rng.integers(1, 5)).tolist(), job=str(number))
        for number, start in enumerate(rng.uniform(0, 4000, 9))
    ]  # fmt: skip
    jobs = pl.concat(runs).with_columns(nodes=pl.Series(rng.integers(1, 50, 9)))
    table = pl.concat(tables)

    for grid in ("job", "native"):
        found = measured(table, jobs, grid=grid, gap_factor=100.0)
        wanted = [slowly(table, jobs, job) for job in found["job"]]
        assert found["write_bytes"].to_list() == pytest.approx(wanted, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(machines(), st.sampled_from(["split", "mark"]), st.sampled_from(["restart", "drop"]))
def test_the_three_parts_always_add_up_to_what_the_servers_moved(
    machine: tuple[pl.DataFrame, pl.DataFrame], shared: str, reset: str
) -> None:
    table, jobs = machine
    if table["time_us"].n_unique() < 2:
        return
    load = account(table, jobs, shared=shared, reset=reset)
    method = MetricSettings(120 * SECOND, min_runtime=0.0, shared=shared, reset=reset)  # type: ignore[arg-type]
    metrics = job_metrics(Memory(table), jobs, settings=method)
    found = summarise_fleet(metrics, load)

    assert (load.parts >= 0).all()
    for number, direction in enumerate(DIRECTIONS):
        totals = found.totals[direction]
        assert totals.attributed + totals.shared + totals.unattributed == pytest.approx(
            totals.bytes
        )
        given_out = totals.attributed + (totals.shared if shared == "split" else 0.0)
        assert metrics.table[f"{direction}_bytes"].sum() == pytest.approx(given_out, abs=1e-3)
        assert sum(user.bytes[direction] for user in found.users) == pytest.approx(
            given_out, abs=1e-3
        )
        assert load.bytes[number].sum() == pytest.approx(load.moved[number].sum())
