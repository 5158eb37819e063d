"""Counters read as columns are those of the tables, for every module and version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.synthetic import checkpointing_job, synthesise
from benchmarks.synthetic.darshan_writer import VERSIONS, write_trace
from ioprism import Finding, Thresholds, Trace, TraceError, read
from ioprism.diagnosis.evidence import Evidence, evidence_of_counters
from ioprism.diagnosis.insights import judge_group
from ioprism.diagnosis.rules.registry import judge
from ioprism.formats.darshan.log import is_log
from ioprism.model.usage import Usage
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


def as_tables(trace: Trace) -> Trace:
    """The same trace as if it came from a format that has tables only."""
    return replace(trace, counters=dict(trace.counters), load_files=lambda: trace.files)


def assert_same(log: Path, *, sound: bool = False) -> None:
    """Both give the same evidence; of a sound log, no record is taken for damaged."""
    trace = read(log)
    notes = trace.completeness.warnings
    columns = evidence_of_counters(trace)
    if sound:
        assert trace.completeness.warnings == notes, log
    tables = evidence_of_counters(as_tables(read(log)))

    assert _plain(columns.usages) == _plain(tables.usages)
    assert columns.files.paths == tables.files.paths
    assert columns.files.not_data == tables.files.not_data
    assert columns.files.striping == tables.files.striping
    assert columns.files.system_targets == tables.files.system_targets
    assert columns.modules == tables.modules
    assert {k: dict(v.bytes) for k, v in columns.loads.items()} == {
        k: dict(v.bytes) for k, v in tables.loads.items()
    }
    assert findings(columns) == findings(tables)
    assert set(columns.completeness.warnings) == set(tables.completeness.warnings)


def findings(evidence: Evidence) -> list[Finding]:
    """All but the list of warnings, whose order depends on which module is read first."""
    return [one for one in judge(evidence).findings if one.code != "incomplete-data"]


def _plain(usages: Mapping[str, Usage]) -> dict[str, object]:
    return {layer: asdict(usage) for layer, usage in usages.items()}


@pytest.mark.parametrize("log", sorted(DATA.glob("*.darshan")), ids=lambda path: path.stem)
def test_columns_and_tables_agree(log: Path) -> None:
    assert_same(log)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_they_agree_for_old_and_big_endian_logs(
    version: tuple[int, int], byte_order: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.darshan"
    trace = synthesise(checkpointing_job()).trace
    write_trace(log, trace, version=version, byte_order=byte_order)  # type: ignore[arg-type]

    assert_same(log)


@pytest.mark.corpus
def test_they_agree_for_every_public_log(shared_data: Path) -> None:
    logs = [path for path in sorted((shared_data / "darshan").rglob("*.darshan")) if is_log(path)]
    assert len(logs) > 100

    for log in logs:
        assert_same(log, sound="public" in log.parts)


@pytest.mark.corpus
def test_they_agree_for_damaged_logs(shared_data: Path) -> None:
    compared = 0
    for log in sorted((shared_data / "broken").glob("*.darshan"))[::4]:
        try:
            assert_same(log)
        except TraceError:
            continue
        compared += 1

    assert compared > 12


@pytest.mark.corpus
def test_damaged_logs_are_judged_or_refused_but_never_crash(shared_data: Path) -> None:
    judged = 0
    for log in sorted((shared_data / "broken").iterdir())[1::3]:
        try:
            judge_group((log,), thresholds=Thresholds())
        except TraceError:
            continue
        judged += 1

    assert judged > 15
