"""Each warning that data are damaged or missing is there: a test fails if one is dropped."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from benchmarks.synthetic.darshan_records import Counters, LogContent
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import Trace, convert, diagnose, read
from ioprism.formats.darshan.log import read_log
from tests.conftest import TEST_DATA
from tests.formats.darshan.test_writer import CONTRADICTION, JOB, NAMES, records

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
PFW = TEST_DATA / "dftracer/v2.2.0-md1-plain.pfw"


def said(trace: Trace) -> list[str]:
    """What is missing from a trace that was read whole."""
    trace.events()
    assert trace.processes.height
    for table in trace.counters.values():
        assert table.width
    return list(trace.completeness.warnings)


def damaged(path: Path, module: str) -> Path:
    """The log with other bytes in the midst of a module."""
    region = read_log(LOG).modules[module]
    data = bytearray(LOG.read_bytes())
    middle = region.offset + region.length // 2
    data[middle : middle + 32] = bytes(32)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("module", ["POSIX", "DXT_POSIX"])
def test_damaged_data_of_a_darshan_module(tmp_path: Path, module: str) -> None:
    path = damaged(tmp_path / "a.darshan", module)

    assert any(f"the {module} data are damaged" in one for one in said(read(path)))


def test_damaged_data_are_said_also_if_only_processes_are_asked_for(tmp_path: Path) -> None:
    trace = read(damaged(tmp_path / "a.darshan", "DXT_POSIX"))
    assert trace.processes.height == 4

    assert any("the DXT_POSIX data are damaged" in one for one in trace.completeness.warnings)


def test_damaged_records_of_a_log_that_is_judged_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.darshan"
    table = records("POSIX", 4).with_columns(rank=pl.Series([0, 1, 2, -1, 10**6]))
    write_log(path, LogContent(JOB, NAMES, [Counters("POSIX", table, 4)]))
    trace = read(path)
    diagnose(trace)

    assert "a.darshan: 1 damaged POSIX record left out" in trace.completeness.warnings
    assert "a.darshan: 1 damaged POSIX record left out" in said(read(path))


def test_a_log_whose_module_ran_out_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.darshan"
    content = LogContent(JOB, NAMES, [Counters("POSIX", records("POSIX", 4), 4)])
    write_log(path, content, partial=["POSIX"])

    assert any("the POSIX data are partial" in one for one in read(path).completeness.warnings)


def test_darshan_records_that_contradict_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.darshan"
    write_log(path, LogContent(JOB, NAMES, [Counters("POSIX", records("POSIX", 4), 4)]))

    assert any(CONTRADICTION in one for one in said(read(path)))


def test_calls_of_dftracer_on_files_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.pfw"
    text = re.sub(r'\{"name":"FH".*\n', "", PFW.read_text())
    path.write_text(text)

    assert any("with an undefined file hash" in one for one in said(read(path)))


def test_recorder_offsets_that_are_relative(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(TEST_DATA / "recorder/gotcha-ckpt", folder)
    header = bytearray((folder / "recorder.mt").read_bytes())
    assert header[39] == 0
    header[39] = 1
    (folder / "recorder.mt").write_bytes(header)

    assert any("offsets are not absolute" in one for one in said(read(folder)))


@pytest.mark.parametrize("kind", ["chrome", "store"])
def test_what_was_missing_is_still_said_of_a_copy(tmp_path: Path, kind: str) -> None:
    trace = read(LOG)
    trace.completeness.warn("half of it is missing")
    if kind == "chrome":
        convert(trace, tmp_path / "t.json")
    else:
        convert(trace, tmp_path / "t.store")
    copy = read(next(tmp_path.iterdir()))

    assert "half of it is missing" in copy.completeness.warnings
