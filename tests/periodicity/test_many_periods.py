"""Several jobs become one table of periods, and a site store keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism.cli import main


def burst_file(path: Path, period: float, count: int = 10) -> None:
    starts = [period * number for number in range(1, count + 1)]
    body = {"t_rank_s": starts, "t_rank_e": [s + 1.0 for s in starts], "b_rank_avr": [2e9] * count}
    path.write_text(json.dumps({"write_sync": {"bandwidth": body}}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    burst_file(tmp_path / "ten.json", 10.0)
    burst_file(tmp_path / "twenty.json", 20.0)
    body = {"t_rank_s": [1.0], "t_rank_e": [3.0], "b_rank_avr": [1e9]}
    (tmp_path / "once.json").write_text(json.dumps({"write_sync": {"bandwidth": body}}))
    return tmp_path


def test_a_folder_becomes_a_table(folder: Path) -> None:
    result = CliRunner().invoke(main, ["period", str(folder), "--each", "--json"])
    document = json.loads(result.stdout)
    rows = {Path(job["path"]).name: job for job in document["jobs"]}

    assert result.exit_code == 0
    assert rows["ten.json"]["seconds"] == pytest.approx(10.0, rel=0.01)
    assert rows["twenty.json"]["duty_cycle"] == pytest.approx(0.05, rel=0.1)
    assert rows["ten.json"]["phase_bytes"] == pytest.approx(2e9, rel=0.05)
    assert rows["once.json"]["pattern"] == "none" and rows["once.json"]["seconds"] is None
    assert document["failed"] == []


def test_what_cannot_be_read_is_named_and_the_rest_answered(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"write_sync": {"bandwidth": {"b_rank_avr": [3], "t_rank_s": ["x"]}}}')
    words = ["period", str(folder / "ten.json"), str(broken), "--each", "--json"]
    document = json.loads(CliRunner().invoke(main, words).stdout)

    assert [Path(job["path"]).name for job in document["jobs"]] == ["ten.json"]
    assert len(document["failed"]) == 1 and "broken.json" in document["failed"][0]


def test_one_job_alone_is_answered_as_before(folder: Path) -> None:
    result = CliRunner().invoke(main, ["period", str(folder / "ten.json"), "--json"])

    assert json.loads(result.stdout)["period"]["seconds"] == pytest.approx(10.0, rel=0.01)


def test_a_site_lists_periodic_applications_with_their_share(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    logs = [str(folder / "ten.json"), str(folder / "once.json")]
    added = CliRunner().invoke(main, ["site", "add", *logs, "--store", str(store)])
    listed = CliRunner().invoke(main, ["site", "periods", "--store", str(store), "--json"])
    page = tmp_path / "site.html"
    made = CliRunner().invoke(main, ["site", "report", "--store", str(store), "-o", str(page)])
    (row,) = json.loads(listed.stdout)["periods"]

    assert added.exit_code == made.exit_code == 0
    assert row["jobs"] == 1
    assert row["period"] == pytest.approx(10.0, rel=0.01)
    assert "report a quarter to a third" in page.read_text()
