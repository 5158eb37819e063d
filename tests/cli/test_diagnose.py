"""`ioprism diagnose`: the contract of its JSON, its first line, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.simulated_storage.cases import make, write_case
from ioprism.cli import main
from tests.conftest import TEST_DATA

HEALTHY = TEST_DATA / "darshan" / "a_ckpt_fpp_period5s.darshan"


@pytest.fixture(scope="module")
def slow_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    write_case(folder, "case", make("slow-target", seed=2))
    return next(folder.glob("*.darshan"))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["diagnose", *map(str, arguments)])


def test_the_json_has_every_key_of_the_contract(slow_target: Path) -> None:
    answer = json.loads(run(slow_target, "--json").output)

    assert set(answer["verdict"]) == {"status", "line", "first"}
    assert answer["schema"] == 2
    assert set(answer["io_stall"]) == {"seconds", "share", "core_hours", "basis"}
    cause = answer["causes"][0]
    assert {"code", "title", "culprit", "saving", "confidence", "contrast", "symptoms",
            "advice", "core_hours"} <= set(cause)  # fmt: skip
    assert set(cause["saving"]) == {"seconds", "low", "high", "share"}
    assert set(cause["contrast"]["slow"]) == {"count", "bytes", "median_seconds", "rate"}
    assert cause["code"] == answer["verdict"]["first"] == "slow-target"
    assert {"possible", "ledger", "not_checked"} <= set(answer)
    assert sum(line["seconds"] for line in answer["ledger"]) == pytest.approx(
        answer["io_stall"]["seconds"]
    )


def test_the_first_line_says_what_it_costs_and_who_causes_it(slow_target: Path) -> None:
    said = " ".join(run(slow_target).output.partition("Stall time =")[0].split())

    assert json.loads(run(slow_target, "--json").output)["verdict"]["line"] in said
    assert "I/O stalls the job for " in said
    assert "Main cause: storage target" in said


def test_advice_names_other_targets_for_one_file_and_a_pool_for_many(
    slow_target: Path, tmp_path: Path
) -> None:
    write_case(tmp_path, "case", make("slow-target-shared", seed=41))
    causes = [
        json.loads(run(log, "--json").output)["causes"][0]
        for log in (next(tmp_path.glob("*.darshan")), slow_target)
    ]
    one, many = (
        [item["snippet"] for item in cause["advice"] if item["snippet"]] for cause in causes
    )

    assert not any("{" in text for text in [*(cause["title"] for cause in causes), *one, *many])
    assert str(causes[0]["culprit"]["target"]) not in one[0].split("-o ")[1].split()[0].split(",")
    assert many == ["lfs setstripe -c 2 --pool POOL NEW_DIRECTORY"]


@pytest.mark.parametrize(("share", "code"), [("0.01", 3), ("1%", 3), ("0.99", 0), ("10", 2)])
def test_fail_on_exits_with_3_where_causes_cost_that_share(
    slow_target: Path, share: str, code: int
) -> None:
    assert run(slow_target, "--fail-on", share).exit_code == code


def test_a_healthy_job_is_told_that_nothing_is_worth_changing() -> None:
    done = run(HEALTHY)

    assert done.exit_code == 0
    assert "No cause was found" in " ".join(done.output.split())


def test_top_shortens_the_list_but_not_the_ledger(slow_target: Path) -> None:
    answer = json.loads(run(slow_target, "--json", "--top", "1").output)

    assert len(answer["causes"]) == 1
    assert sum(line["seconds"] for line in answer["ledger"]) == pytest.approx(
        answer["io_stall"]["seconds"]
    )


def test_a_layout_file_without_layouts_is_refused_with_a_hint(tmp_path: Path) -> None:
    layout = tmp_path / "layout.csv"
    layout.write_text("path,targets\n")

    done = run(HEALTHY, "--layout", layout)

    assert done.exit_code == 1
    assert "Hint: give a CSV" in done.output


def test_several_logs_are_one_job_only_where_that_is_said() -> None:
    other = HEALTHY.with_name("c_rank0_all_io.darshan")

    refused, together = run(HEALTHY, other), run(HEALTHY, other, "--one-job", "--json")

    assert refused.exit_code == 2
    assert "--one-job" in refused.output
    assert len(json.loads(together.output)["source"]["paths"]) == 2
