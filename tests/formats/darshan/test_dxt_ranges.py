"""A large log is cut between the streams of its ranks; what is read stays the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from benchmarks.synthetic.darshan_writer import write_trace
from ioprism import read
from ioprism.formats.darshan import dxt


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "job.darshan"
    write_trace(path, synthesise(checkpointing_job()).trace)
    return path


def test_ranges_hold_what_the_whole_holds(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(log)
    monkeypatch.setattr(dxt, "COMPRESSED", 2000)
    cut = read(log)

    assert len(whole.partitions) == 2  # POSIX and MPI-IO
    assert len(cut.partitions) >= 6
    assert_frame_equal(cut.events(), whole.events())
    assert_frame_equal(cut.processes, whole.processes)
    assert cut.completeness.whole


def test_what_is_lost_in_one_range_is_not_lost_in_others(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dxt, "COMPRESSED", 2000)
    second = read(log).partitions[1].inner  # type: ignore[attr-defined]
    data = bytearray(log.read_bytes())
    middle = second.region.offset + second.region.length // 2
    data[middle : middle + 8] = b"\xff" * 8
    broken = tmp_path / "broken.darshan"
    broken.write_bytes(data)
    trace = read(broken)
    events = trace.events()
    last = read(log).events().select(pl.col("rank").last()).item()

    assert last in events["rank"].unique()
    assert any("damaged" in warning for warning in trace.completeness.warnings)
