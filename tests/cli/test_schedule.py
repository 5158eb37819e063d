"""`ioprism schedule` on described workloads, traces and stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ioprism.cli import main

WORKLOAD = """
bandwidth = "1GB"
horizon = 300
[[jobs]]
name = "fast"
count = 2
period = 5
io_share = 0.2
[[jobs]]
name = "slow"
period = 60
bytes = "12GB"
nodes = 8
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["schedule", *map(str, words)])


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.toml"
    path.write_text(WORKLOAD)
    return path


def test_policies_are_compared_with_intervals(workload: Path) -> None:
    result = run(workload, "--seeds", 3, "--json", "--phases", "given")
    document = json.loads(result.stdout)
    by_policy = {one["policy"]: one for one in document["outcomes"]}

    assert result.exit_code == 0
    assert list(by_policy) == ["fair-share", "fcfs", "set-10", "clairvoyant"]
    assert document["workload"]["load"] == pytest.approx(0.6, rel=0.2)
    set_10, fair = by_policy["set-10"], by_policy["fair-share"]
    assert set_10["io_slowdown"]["mean"] < fair["io_slowdown"]["mean"]
    assert set_10["io_slowdown"]["low"] <= set_10["io_slowdown"]["mean"]
    assert [job["name"] for job in set_10["jobs"]] == ["fast 1", "fast 2", "slow 1"]


def test_the_terminal_names_the_gain_and_the_page_is_written(
    workload: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    chosen = ("--policy", "fair-share", "--policy", "set-10", "--phases", "given")
    result = run(workload, "--seeds", 2, *chosen, "-o", page)

    assert result.exit_code == 0
    assert "Best policy: " in result.stdout and "95 % interval" in result.stdout
    assert '"lanes":[{"policy":"fair-share","jobs":[{"job":' in page.read_text()


def test_two_traces_are_repeated_beside_each_other(tmp_path: Path) -> None:
    for name, period in (("a", 10.0), ("b", 11.0)):
        starts = [period * number for number in range(1, 9)]
        body = {"t_rank_s": starts, "t_rank_e": [s + 3.0 for s in starts], "b_rank_avr": [1e9] * 8}
        (tmp_path / f"{name}.json").write_text(json.dumps({"write_sync": {"bandwidth": body}}))
    result = run(
        tmp_path / "a.json", tmp_path / "b.json", "--seeds", 2, "--phases", "given", "--json"
    )

    assert result.exit_code == 0, result.output
    fair = json.loads(result.stdout)["outcomes"][0]
    assert [job["name"] for job in fair["jobs"]] == ["1 a.json", "2 b.json"]
    assert fair["io_slowdown"]["mean"] > 1.05


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bandwidth = ", "this is not TOML"),
        ("horizon = 5", "it has no [[jobs]]"),
        ("[[jobs]]\nperiod = 10\nio_share = 1.5", "1.5 of its period"),
        ("[[jobs]]\nio_share = 0.5", "'period' is missing"),
        ("[[jobs]]\nperiod = 10\nio_share = 0.5\nspeed = 3", "nothing of a job is called speed"),
    ],
)
def test_what_makes_no_sense_is_one_message(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    result = run(path)

    assert result.exit_code == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_ftio_needs_an_interpreter() -> None:
    result = run("--phases", "ftio")

    assert result.exit_code != 0
    assert "--ftio-python" in result.stderr


def test_the_example_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(run("--example").stdout)
    result = run(path, "--seeds", 1, "--horizon", 100, "--phases", "given", "--json")

    assert result.exit_code == 0
