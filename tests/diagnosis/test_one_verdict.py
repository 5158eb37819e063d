"""Every command gives a job one verdict, its sums hold, and no finding exceeds the stall time."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ioprism
from ioprism.cli import main
from tests.conftest import TEST_DATA

SAMPLES = [
    *sorted(TEST_DATA.glob("darshan/*.darshan")),
    *sorted(path for path in TEST_DATA.glob("dftracer/*.pfw*") if "agg" not in path.name),
    *sorted(path for path in TEST_DATA.glob("recorder/*") if path.is_dir()),
    TEST_DATA / "strace/randread_np2.strace",
]
STATUS = {"cause", "possible", "none", "cannot-judge"}


@cache
def said(command: str, path: Path) -> dict[str, Any]:
    done = CliRunner().invoke(main, [command, str(path), "--json", "-q"])
    assert done.exit_code == 0, done.output
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_diagnose_insights_and_report_agree(path: Path) -> None:
    diagnose, insights, report = (said(name, path) for name in ("diagnose", "insights", "report"))
    library = ioprism.diagnose(ioprism.read(path)).to_dict()

    for other in (insights, report["diagnosis"], json.loads(json.dumps(library))):
        for key in ("verdict", "io_stall", "causes", "possible"):
            assert other[key] == diagnose[key], key
    assert report["verdict"]["line"] == diagnose["verdict"]["line"]
    assert report["verdict"]["status"] == diagnose["verdict"]["status"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sums_hold(path: Path) -> None:
    found = said("insights", path)
    stall, ledger = found["io_stall"]["seconds"], found["ledger"]

    assert found["verdict"]["status"] in STATUS
    assert sum(line["seconds"] for line in ledger) == pytest.approx(stall, abs=1e-9)
    assert all(line["seconds"] >= 0 for line in ledger)
    assert sum(cause["saving"]["seconds"] for cause in found["causes"]) <= stall * (1 + 1e-9)
    for finding in found["findings"]:
        assert (finding["seconds_at_stake"] or 0.0) <= stall * (1 + 1e-9), finding["code"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_status_line_and_causes_fit_each_other(path: Path) -> None:
    found = said("diagnose", path)
    verdict, causes = found["verdict"], found["causes"]
    real = [cause for cause in causes if cause["saving"]["seconds"] > 0]

    assert (verdict["status"] == "cause") == bool(real)
    assert verdict["first"] == (real[0]["code"] if real else None)
    assert ("Main cause: " in verdict["line"]) == bool(real)
    for cause in real:
        saving = cause["saving"]
        assert 0 < saving["low"] <= saving["seconds"] <= saving["high"]
    for one in found["possible"]:
        assert one["upper"] > 0
        assert one["decide"]["text"]
        assert one["code"] not in {cause["code"] for cause in causes}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_finding_names_a_cause_of_the_verdict_and_the_cause_names_it(path: Path) -> None:
    found = said("insights", path)
    symptoms = {cause["code"]: set(cause["symptoms"]) for cause in found["causes"]}

    for finding in found["findings"]:
        if finding["cause"] is not None:
            assert finding["code"] in symptoms[finding["cause"]]
