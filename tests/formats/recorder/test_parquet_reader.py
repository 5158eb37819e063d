"""Recorder's events as Parquet, whole files or a folder of parts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ioprism import read


def part(rank: int, app: str = "a") -> pl.DataFrame:
    calls = [
        ("open", 0.0, 0),
        ("read", 1.0, 10),
        ("lseek", 2.0, 7),
        ("write", 3.0, 5),
        ("read", 4.0, 1),
    ]
    return pl.DataFrame(
        {
            "rank": pl.Series([rank] * 5, dtype=pl.Int32),
            "thread_id": pl.Series([1] * 5, dtype=pl.Int32),
            "app": [app] * 5,
            "hostname": ["n1"] * 5,
            "func_id": [name for name, _, _ in calls],
            "tstart": pl.Series([start for _, start, _ in calls], dtype=pl.Float32),
            "tend": pl.Series([start + 0.5 for _, start, _ in calls], dtype=pl.Float32),
            "duration": pl.Series([0.5] * 5, dtype=pl.Float32),
            "tmid": [int((start + 0.25) * 1e7) for _, start, _ in calls],
            "file_name": ["/f"] * 5,
            "size": [size for _, _, size in calls],
        }
    )


def test_parts_are_one_trace(tmp_path: Path) -> None:
    for rank in range(3):
        part(rank).write_parquet(tmp_path / f"part.{rank}.parquet")
    trace = read(tmp_path)
    events = trace.events()

    assert trace.format == "recorder-parquet"
    assert trace.job.ranks == 3
    assert events.filter(rank=0)["start"].to_list() == pytest.approx([0, 1, 2, 3, 4])
    assert events.filter(rank=0)["bytes"].to_list() == [None, 10, None, 5, 1]
    assert events.filter(rank=0)["offset"].to_list() == [None, 0, None, None, None]


def test_equal_ranks_of_two_applications_are_told_apart(tmp_path: Path) -> None:
    pl.concat([part(0, "a"), part(0, "b")]).write_parquet(tmp_path / "all.parquet")
    trace = read(tmp_path / "all.parquet")

    assert trace.events()["rank"].n_unique() == 2
    assert trace.processes["application"].to_list() == ["a", "b"]


@pytest.mark.corpus
def test_the_public_trace_adds_up(shared_data: Path) -> None:
    trace = read(shared_data / "wisio/recorder-parquet")
    sums = trace.events().group_by("operation").agg(pl.len(), pl.sum("bytes"))
    found = {operation: (n, b) for operation, n, b in sums.iter_rows()}

    assert found["read"] == (1282, 21_508_390_912)
    assert found["write"] == (2303, 1_230_852_944)
    assert trace.job.ranks == 1280


@pytest.mark.corpus
def test_a_folder_of_different_traces_can_be_a_workflow(shared_data: Path) -> None:
    trace = read(shared_data / "wisio", one_job=True)

    assert set(trace.format.split("+")) == {"darshan", "recorder-parquet"}
    assert trace.job.ranks == 1288
