"""Every command that states a number states the same number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ioprism
from ioprism import Thresholds
from ioprism.diagnosis.insights import judge_group
from tests.conftest import SHARED_DATA, TEST_DATA

SAMPLES = [
    *sorted(TEST_DATA.glob("darshan/*.darshan")),
    *sorted(path for path in TEST_DATA.glob("dftracer/*.pfw*") if "agg" not in path.name),
    *sorted(path for path in TEST_DATA.glob("recorder/*") if path.is_dir()),
    TEST_DATA / "strace/randread_np2.strace",
]
CAUSES = sorted(SHARED_DATA.glob("causes/*_1.darshan")) if SHARED_DATA.is_dir() else []
CORPUS = [
    pytest.param(path, marks=pytest.mark.corpus, id=path.stem)
    for path in [*CAUSES[::4], SHARED_DATA / "dftracer/dlio", SHARED_DATA / "recorder/master/hdf5"]
]


@pytest.mark.parametrize("path", [*(pytest.param(p, id=p.name) for p in SAMPLES), *CORPUS])
def test_all_commands_tell_the_same_numbers(path: Path) -> None:
    trace = ioprism.read(path)
    told: dict[str, Any] = json.loads(ioprism.analyse(trace).to_json())
    counted = ioprism.characterise(trace)
    totals = ioprism.bottlenecks(trace, top=1).totals
    judged = judge_group((path,), thresholds=Thresholds())
    amounts = counted.by_operation

    assert told["job"]["ranks"] == counted.job.ranks == judged.job.ranks
    assert (told["job"]["processes"], told["job"]["hosts"]) == (counted.processes, counted.hosts)
    assert (totals["processes"] or 0) <= (counted.processes or 0)
    assert (totals["hosts"] or 0) <= (counted.hosts or 0)
    assert told["totals"]["files"] == counted.files == totals["files"]
    for direction, name in (("read", "bytes_read"), ("write", "bytes_written")):
        assert told["totals"][name] == amounts[direction].bytes == totals[f"{direction}_size"]
        assert amounts[direction].operations == totals[f"{direction}_count"]
    assert amounts["metadata"].operations == totals["metadata_count"]


@pytest.mark.parametrize("path", [p for p in SAMPLES if "recorder" in str(p)], ids=lambda p: p.name)
def test_report_and_phases_tell_the_same_phases(path: Path) -> None:
    trace = ioprism.read(path)
    told = json.loads(ioprism.analyse(trace).to_json())

    assert told["phases"]["layers"] == ioprism.phases(trace).to_dict()["layers"]
