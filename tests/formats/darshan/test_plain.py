"""Counters read in plain Python are those of the tables, for every module and version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.synthetic import checkpointing_job, synthesise
from benchmarks.synthetic.darshan_writer import VERSIONS, write_trace
from ioprism import LocalEngine, Thresholds, Trace, TraceError, read
from ioprism.diagnosis.evidence import evidence_of_log, evidence_of_trace
from ioprism.diagnosis.rules.registry import judge
from ioprism.formats.darshan.log import is_log
from ioprism.formats.darshan.plain import counters_alone, read_plain
from ioprism.model.usage import Usage
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


def counters_only(trace: Trace) -> Trace:
    return Trace(
        trace.format, trace.paths, trace.job, (), trace.counters,
        load_files=trace.load_files, load_processes=trace.load_processes,
        completeness=trace.completeness,
    )  # fmt: skip


def assert_same(log: Path) -> None:
    quick = evidence_of_log(read_plain(log), Thresholds())
    slow = evidence_of_trace(counters_only(read(log)), LocalEngine(), Thresholds())

    assert _plain(quick.usages) == _plain(slow.usages)
    assert {k: dict(v.bytes) for k, v in quick.loads.items()} == {
        k: dict(v.bytes) for k, v in slow.loads.items()
    }
    assert judge(quick).findings == judge(slow).findings


def _plain(usages: Mapping[str, Usage]) -> dict[str, object]:
    return {layer: asdict(usage) for layer, usage in usages.items()}


@pytest.mark.parametrize("log", sorted(DATA.glob("*.darshan")), ids=lambda path: path.stem)
def test_a_log_is_judged_the_same_in_both_ways(log: Path) -> None:
    assert_same(log)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_so_are_old_and_big_endian_logs(
    version: tuple[int, int], byte_order: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.darshan"
    trace = synthesise(checkpointing_job()).trace
    write_trace(log, trace, version=version, byte_order=byte_order)  # type: ignore[arg-type]

    assert_same(log)


@pytest.mark.corpus
def test_so_is_every_public_log(shared_data: Path) -> None:
    logs = [path for path in sorted((shared_data / "darshan").rglob("*.darshan")) if is_log(path)]
    assert len(logs) > 100

    for log in logs:
        assert_same(log)


@pytest.mark.corpus
def test_damaged_logs_are_judged_or_refused_but_never_crash(shared_data: Path) -> None:
    from ioprism.diagnosis.insights import judge_group

    judged = 0
    for log in sorted((shared_data / "broken").iterdir()):
        try:
            judge_group((log,), thresholds=Thresholds())
        except TraceError:
            continue
        judged += 1

    assert judged > 50


@pytest.mark.corpus
def test_the_short_way_is_for_sound_logs_alone_and_hides_no_damage(shared_data: Path) -> None:
    short = 0
    for log in sorted((shared_data / "broken").glob("*.darshan")):
        try:
            plain = counters_alone([log], None)
        except TraceError:
            continue
        if plain is not None:
            trace = read(log)
            assert all(table.width for table in trace.counters.values())  # all are read
            assert plain.completeness.warnings == trace.completeness.warnings, log
            short += 1
    assert short > 10


@pytest.mark.corpus
def test_public_logs_are_sound(shared_data: Path) -> None:
    logs = sorted((shared_data / "darshan" / "public").rglob("*.darshan"))

    assert [log for log in logs if not read_plain(log).sound] == []
