"""Every metric of every case equals its exact expectation, in every mode there is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ioprism.model.counters import DIRECTIONS
from tests.servers.sources import CASES, DATA, assert_alike, case, measured

PLAIN = {
    "bytes": "N_bytes",
    "operations": "N_ops",
    "max_bandwidth": "B_max_job",
    "max_server_bandwidth": "B_max_server",
    "max_operation_rate": "Gamma_max_job",
}
BY_THRESHOLD = {
    "intensity": "I",
    "burstiness": "rho",
    "parallel_intensity": "P",
    "has_io": "has_io",
}


def expectations() -> list[tuple[str, str]]:
    return [
        (name, mode)
        for name in CASES
        for mode in json.loads((DATA / f"{name}.expected.json").read_text())["modes"]
    ]


def number(value: Any) -> Any:
    return value["float"] if isinstance(value, dict) else value


def expected(name: str, mode: str) -> dict[str, Any]:
    case_of = json.loads((DATA / f"{name}.expected.json").read_text())["modes"][mode]
    wanted = {"opens": number(case_of["opens"]), "closes": number(case_of["closes"])}
    for direction in DIRECTIONS:
        block = case_of[direction]
        wanted |= {f"{direction}_{ours}": number(block[key]) for ours, key in PLAIN.items()}
        for threshold, values in block["by_threshold"].items():
            for ours, key in BY_THRESHOLD.items():
                wanted[f"{direction}_{ours}_{threshold}"] = number(values[key])
    return wanted


@pytest.mark.parametrize(("name", "mode"), expectations())
def test_every_metric_is_exact(name: str, mode: str) -> None:
    wanted = expected(name, mode)
    policy = json.loads((DATA / f"{name}.expected.json").read_text())["reset_policy"]

    found = measured(*case(name), window=mode, reset=policy).row(0, named=True)

    assert len(wanted) == 36
    for key, value in wanted.items():
        assert (value is None) == (found[key] is None), key
        assert value is None or found[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("B_")])
def test_both_grids_agree_where_servers_are_sampled_together(name: str) -> None:
    table, jobs = case(name)

    on_job, native = (
        measured(table, jobs, grid=grid, reset="drop" if "drop" in name else "restart")
        for grid in ("job", "native")
    )

    assert_alike(on_job, native)


def test_the_native_grid_does_not_smear_bursts_over_windows() -> None:
    table, jobs = case("B_unsynchronised")

    on_job = measured(table, jobs, grid="job").row(0, named=True)
    native = measured(table, jobs, grid="native").row(0, named=True)

    # 600 kB/min at each server from 490 to 610, 540 to 660 and 570 to 690: the union is 200 s.
    assert native["write_intensity_131072"] == pytest.approx(200 / 960)
    assert native["write_max_bandwidth"] == pytest.approx(60_000)
    assert on_job["write_intensity_131072"] == 0.25
