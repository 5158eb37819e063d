"""Clocks that differ are noticed, said and brought together; those that do not are left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ioprism import Trace, UsageError, api, read
from ioprism.engine.base import in_memory
from ioprism.formats.reading import read_clock_offsets
from ioprism.formats.recorder import reader as recorder_reader
from ioprism.formats.recorder import streams
from tests.conftest import ROOT

BEGIN = 1_700_000_000
STEPS, RANKS = 8, 4


def job(folder: Path, *, ahead: float = 0.0, barriers: bool = True, later: float = 0.0) -> Path:
    """Write a job on two nodes that writes a shared file in every step; node2's clock is off."""
    folder.mkdir()
    rng = np.random.default_rng(seed=3)
    for rank in range(RANKS):
        host = f"node{1 + rank // 2}"
        wrong = ahead + later if host == "node2" else 0.0
        lines = [_metadata(rank, "HH", host, host), *_files(rank)]
        for step in range(STEPS):
            at = BEGIN + 10.0 * step
            lag = rng.uniform(0, 0.01)
            if barriers:
                lines.append(_call(rank, "MPI_Barrier", "MPI", at + wrong + lag, 1 - lag))
            lines.append(_call(rank, "open64", "POSIX", at + 1 + wrong + lag, 0.001, step))
            for n in range(20):
                when = at + 1.1 + 0.05 * n + wrong + lag
                lines.append(_call(rank, "write", "POSIX", when, 0.04, step))
        (folder / f"{rank}.pfw").write_text(
            "\n".join(json.dumps(one, separators=(",", ":")) for one in lines)
        )
    return folder


def _call(
    rank: int, name: str, category: str, at: float, seconds: float, step: int | None = None
) -> dict[str, Any]:
    arguments: dict[str, Any] = {"hhash": f"node{1 + rank // 2}"}
    if step is not None:
        arguments |= {"fhash": f"f{step}", "ret": 2**20}
    return {
        "name": name, "cat": category, "pid": rank + 1, "tid": rank + 1, "ts": round(at * 1e6),
        "dur": round(seconds * 1e6), "ph": "X", "args": arguments,
    }  # fmt: skip


def _metadata(rank: int, name: str, text: str, value: str) -> dict[str, Any]:
    arguments = {"hhash": f"node{1 + rank // 2}", "name": text, "value": value}
    return {"name": name, "cat": "dftracer", "pid": rank + 1, "tid": rank + 1, "ph": "M",
            "args": arguments}  # fmt: skip


def _files(rank: int) -> list[dict[str, Any]]:
    return [_metadata(rank, "FH", f"/data/step{n}", f"f{n}") for n in range(STEPS)]


def moved_by(trace: Trace, true: Trace) -> float:
    """The largest error of a call's time, in seconds."""
    times = (one.events().sort("rank", "start")["start"] for one in (trace, true))
    found, expected = times
    return float((found - expected).abs().max() or 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("ahead", [60.0, -60.0, 3.5])
@pytest.mark.parametrize("barriers", [True, False])
def test_a_clock_that_is_off_is_found_and_set_right(
    tmp_path: Path, ahead: float, barriers: bool
) -> None:
    true = read(job(tmp_path / "true", barriers=barriers))
    trace = read(job(tmp_path / "skewed", ahead=ahead, barriers=barriers))
    (warning,) = [w for w in trace.completeness.warnings if "clock" in w]
    phases, expected = (api.phases(one).to_frame() for one in (trace, true))

    assert f"{abs(ahead):.1f}" in warning
    assert "node2" in warning
    assert moved_by(trace, true) < 0.05
    assert trace.job.runtime == pytest.approx(true.job.runtime, abs=0.1)
    assert phases.height == expected.height > 1
    assert trace.events()["start"].min() == pytest.approx(0.0, abs=0.05)


def test_clocks_that_agree_are_left_alone(tmp_path: Path) -> None:
    trace = read(job(tmp_path / "job"))
    slow = read(job(tmp_path / "late", later=0.2))

    assert trace.completeness.whole
    assert slow.completeness.whole


def test_what_the_user_says_counts(tmp_path: Path) -> None:
    said = tmp_path / "offsets"
    said.write_text("# seconds ahead\nnode2 60\n")
    true = read(job(tmp_path / "true", barriers=False))
    trace = read(
        job(tmp_path / "skewed", ahead=60.0, barriers=False), clock_offsets=read_clock_offsets(said)
    )

    assert moved_by(trace, true) < 1e-3
    assert trace.completeness.whole


@pytest.mark.parametrize("ahead", ["soon", "nan", "inf"])
def test_a_file_of_offsets_that_makes_no_sense_is_one_message(tmp_path: Path, ahead: str) -> None:
    (tmp_path / "offsets").write_text(f"node2 {ahead}\n")

    with pytest.raises(UsageError, match=r"line 1(.|\n)*node2 60"):
        read_clock_offsets(tmp_path / "offsets")


def test_steps_of_a_workflow_are_not_taken_for_a_clock(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", barriers=False, later=100.0)
    for path in folder.iterdir():
        if int(path.stem) >= RANKS // 2:  # the second step reads what the first one wrote
            path.write_text(path.read_text().replace('"write"', '"read"'))
    trace = read(folder, one_job=True)
    last = trace.events().filter(pl.col("rank") == RANKS - 1)

    assert last["start"].min() > 100  # type: ignore[operator]
    assert not [w for w in trace.completeness.warnings if "is moved" in w or "are moved" in w]


def strace_of(path: Path, *, ahead: float) -> None:
    calls = [f'7 {BEGIN + ahead}.0 openat(AT_FDCWD, "/data/x", O_RDWR) = 3 <0.001>']
    calls += [f'7 {BEGIN + ahead + n}.5 write(3, "x", 9) = 9 <0.001>' for n in range(9)]
    path.write_text("\n".join(calls) + "\n")


def test_a_trace_that_names_no_hosts_is_moved_by_the_name_of_its_file(tmp_path: Path) -> None:
    strace_of(tmp_path / "a.strace", ahead=0)
    strace_of(tmp_path / "b.strace", ahead=60)
    paths = tmp_path / "a.strace", tmp_path / "b.strace"
    wrong = read(*paths, one_job=True)
    right = read(*paths, one_job=True, clock_offsets={"b.strace": 60.0})

    assert wrong.job.runtime == pytest.approx(68.5, abs=0.1)
    assert right.job.runtime == pytest.approx(8.5, abs=0.1)
    assert right.job.start_time == BEGIN
    by_rank = right.events().group_by("rank").agg(pl.col("start").min())["start"].to_list()
    assert by_rank == pytest.approx([0.0, 0.0])


def test_an_unused_offset_is_reported_once(tmp_path: Path) -> None:
    strace_of(tmp_path / "a.strace", ahead=0)
    strace_of(tmp_path / "b.strace", ahead=60)
    trace = read(
        tmp_path / "a.strace",
        tmp_path / "b.strace",
        clock_offsets={"b.strace": 60.0, "nodo2": 60.0},
    )

    (warning,) = [w for w in trace.completeness.warnings if "clock offset" in w]
    assert warning.endswith("no host, rank or file is called nodo2: its clock offset is unused")


def test_hosts_of_other_formats_are_moved_as_the_user_says(tmp_path: Path) -> None:
    rows = "start,end,operation,rank,host\n0,1,write,0,node1\n60,61,write,1,node2\n"
    (tmp_path / "a.csv").write_text(rows)
    trace = read(tmp_path / "a.csv", clock_offsets={"node2": 59.5})

    assert trace.events().sort("rank")["start"].to_list() == [0.0, 0.5]
    assert trace.job.runtime == 1.5


def test_ranks_of_recorder_that_are_ahead_are_set_right(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ROOT / "tests/data/recorder/v2.4.0-mpiio_coll"
    true = in_memory(read(source))
    ticks = streams.read_ticks

    def ahead(layout: Any, rank: int) -> Any:
        found = ticks(layout, rank).copy()
        if rank >= 2:
            found[:1] += round(60 / layout.resolution)
        return found

    for module in (streams, recorder_reader):
        monkeypatch.setattr(module, "read_ticks", ahead)
    trace = read(source)
    (warning,) = [w for w in trace.completeness.warnings if "clock" in w]

    assert "rank2, rank3" in warning
    assert "s ahead of that of rank0" in warning
    assert moved_by(trace, true) < 0.05
    assert moved_by(read(source, clock_offsets={"rank2": 60.0, "rank3": 60.0}), true) < 0.05
