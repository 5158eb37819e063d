"""One list over all views: what costs most above its peers comes first, told in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks.synthetic.darshan_content import log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import (
    PROCESSES,
    Bottlenecks,
    Job,
    MemoryPartition,
    Trace,
    bottlenecks,
    file_table,
    read,
)
from tests.call_tables import calls

MIB = 2**20
Row = dict[str, Any]


def workflow(rows: list[Row], paths: list[str], applications: list[str]) -> Trace:
    """A trace of processes that run these applications, one rank each."""
    processes = PROCESSES.conform(
        pl.DataFrame(
            {
                "process": range(len(applications)),
                "rank": range(len(applications)),
                "application": applications,
                "host": [f"node{number // 4}" for number in range(len(applications))],
            }
        )
    )
    runtime = max(row["start"] + row["seconds"] for row in rows)
    return Trace(
        "synthetic",
        (),
        Job(ranks=len(applications), runtime=runtime),
        (MemoryPartition(calls(rows)),),
        load_files=lambda: file_table(paths),
        load_processes=lambda: processes,
    )


def checkpoints(ranks: int, *, bursts: int = 10, slow: int | None = None) -> list[Row]:
    """Every rank writes 8 MiB to a file of its own, again and again; one may be slow."""
    return [
        {"start": 20.0 * burst + 0.01 * rank, "seconds": (10.0 if rank == slow else 1.0),
         "process": rank, "file": rank, "operation": "write", "bytes": 512 * MIB,
         "offset": burst * 512 * MIB}
        for burst in range(bursts)
        for rank in range(ranks)
    ]  # fmt: skip


def data_files(ranks: int) -> list[str]:
    return [f"/scratch/run/out{rank % 2}/rank.{rank}" for rank in range(ranks)]


def first_of(found: Bottlenecks) -> str:
    return found.bottlenecks[0].title


def test_a_lock_directory_with_most_of_the_metadata_time_comes_first() -> None:
    ranks = 8
    locks = [
        {"start": 20.0 * burst + 5 + 0.2 * turn, "seconds": 0.15, "process": rank,
         "file": ranks + rank, "operation": "open"}
        for burst in range(10)
        for rank in range(ranks)
        for turn in range(20)
    ]  # fmt: skip
    others = [
        {"start": 20.0 * burst + 12, "seconds": 0.1, "process": rank, "file": rank,
         "operation": "stat"}
        for burst in range(10)
        for rank in range(ranks)
    ]  # fmt: skip
    paths = [*data_files(ranks), *(f"/scratch/run/locks/part.{rank}" for rank in range(ranks))]
    trace = workflow([*checkpoints(ranks), *locks, *others], paths, ["simulate"] * ranks)

    found = bottlenecks(trace)

    assert "directory /scratch/run/locks" in first_of(found).lower()
    assert found.bottlenecks[0].record["directory"] == "/scratch/run/locks"
    assert found.bottlenecks[0].excess_seconds == pytest.approx(30.0, rel=0.1)


def test_small_random_reads_of_one_application_in_one_window_come_first() -> None:
    applications = ["simulate"] * 4 + ["analyse"] * 4
    small = [
        {"start": 60.0 + 0.005 * turn, "seconds": 0.004, "process": 4 + rank, "file": 8,
         "operation": "read", "bytes": 512, "offset": (turn * 7919 + rank) % 4096 * 512}
        for turn in range(4000)
        for rank in range(4)
    ]  # fmt: skip
    paths = [*data_files(8), "/scratch/run/index/table.bin"]
    trace = workflow([*checkpoints(8), *small], paths, applications)

    first = bottlenecks(trace).bottlenecks[0]

    assert first.record["application"] == "analyse"
    assert first.record["file"] == "/scratch/run/index/table.bin"
    assert first.peers["window_start"] == pytest.approx(60, abs=2)
    assert first.peers["window_end"] == pytest.approx(80, abs=2)
    assert {"file", "application"} <= set(first.views)
    assert "512" in first.title


def test_one_rank_ten_times_slower_comes_first_and_is_told_by_its_peers() -> None:
    trace = workflow(checkpoints(16, slow=11), data_files(16), ["simulate"] * 16)

    found = bottlenecks(trace)

    first = found.bottlenecks[0]
    assert "rank 11" in first.title.lower()
    assert "10 times the median" in first.title
    assert first.excess_seconds == pytest.approx(90.0, rel=0.05)
    assert {"process", "file"} <= set(first.views)
    assert len(found.bottlenecks) == 1  # the file and the rank are the same calls


def test_ranks_that_are_alike_are_folded() -> None:
    rows = checkpoints(10)
    for row in rows:
        row["seconds"] = 8.0 if row["process"] in (1, 4, 7) else 1.0
    trace = workflow(rows, data_files(10), ["simulate"] * 10)

    found = bottlenecks(trace)

    assert "(3 of 10" in first_of(found)
    assert len(found.bottlenecks) == 1


def test_every_record_of_a_group_is_in_the_json_however_many_there_are() -> None:
    slow = range(10, 70)
    rows = checkpoints(200, bursts=3)
    for row in rows:
        row["seconds"] = 8.0 if row["process"] in slow else 1.0
    trace = workflow(rows, data_files(200), ["simulate"] * 200)

    (group,) = bottlenecks(trace).to_dict()["bottlenecks"]

    assert "(60 of 200" in group["title"]
    assert len(group["members"]) == 60
    assert [m["excess_seconds"] for m in group["members"]] == pytest.approx([21.0] * 60)


def test_records_that_cost_the_same_for_different_work_are_not_folded() -> None:
    rows = checkpoints(10)
    for row in rows:
        row["seconds"] = 8.0 if row["process"] in (1, 4) else 1.0
    opens = [{**row, "operation": "open", "seconds": 0.001, "bytes": None, "offset": None,
              "start": row["start"] + 10}
             for row in rows if row["process"] == 4 for _ in range(50)]  # fmt: skip
    trace = workflow([*rows, *opens], data_files(10), ["simulate"] * 10)

    ranks = {one.record.get("process") for one in bottlenecks(trace).bottlenecks}

    assert {"rank 1 on node0", "rank 4 on node1"} <= ranks


def test_what_holds_all_of_the_io_is_not_reported_but_its_parts_are() -> None:
    rows = checkpoints(8, slow=5)
    for row in rows:
        row["seconds"] *= 3 if row["file"] == 2 else 1
    config = [{"start": 0.5, "seconds": 0.001, "process": 0, "file": 8 + n, "operation": "open"}
              for n in range(3)]  # fmt: skip
    paths = [f"/scratch/run/rank.{rank}" for rank in range(8)]
    paths += [f"/home/user/conf{n}/settings" for n in range(3)]
    trace = workflow([*rows, *config], paths, ["simulate"] * 8)

    found = bottlenecks(trace)

    assert "rank 5" in first_of(found).lower()
    assert all("directory" not in one.record for one in found.bottlenecks)
    assert all(one.time_share < 1 for one in found.bottlenecks)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_time_that_is_that_of_the_data_is_no_bottleneck(spread: float) -> None:
    rows = checkpoints(8)
    for number, row in enumerate(rows):
        size = 1 + row["process"]
        row["bytes"] *= size
        row["seconds"] *= size * (1 + spread * (number * 37 % 11 / 10 - 0.5))
    trace = workflow(rows, data_files(8), ["simulate"] * 8)

    assert bottlenecks(trace).bottlenecks == ()


def test_no_share_is_above_the_whole_and_no_cost_above_the_run() -> None:
    trace = workflow(checkpoints(16, slow=3), data_files(16), ["simulate"] * 16)

    for one in bottlenecks(trace).bottlenecks:
        assert 0 <= one.time_share <= 1
        assert one.excess_seconds <= (trace.job.runtime or 0.0)


def test_the_papers_angles_are_behind_their_method() -> None:
    trace = workflow(checkpoints(4, slow=2), data_files(4), ["simulate"] * 4)

    found = bottlenecks(trace, method="slope")

    assert len(found.views) == 15
    assert found.settings["method"] == "slope"


def test_what_the_kernel_makes_up_and_the_console_are_no_bottlenecks() -> None:
    paths = ["/proc/self/maps", "<STDOUT>", "/scratch/a", "/scratch/b", "/scratch/c"]
    rows = [
        {"start": 1.0 * n + file, "seconds": 0.9 if file < 2 else 0.1, "process": 0,
         "operation": "write", "bytes": 100 if file < 2 else MIB, "file": file, "offset": n * MIB}
        for n in range(8) for file in range(5)
    ]  # fmt: skip
    found = bottlenecks(workflow(rows, paths, ["app"]))

    named = {str(value) for one in found.bottlenecks for value in one.record.values()}
    assert not named & {"/proc/self/maps", "/proc/self", "<STDOUT>"}


def test_opens_that_last_longer_than_the_run_are_no_bottleneck(tmp_path: Path) -> None:
    """A process that waits for the other end of pipes is not held up by storage."""
    opens = [{"start": 0.0, "seconds": 9.9, "process": 0, "operation": "open", "file": n}
             for n in range(4)]  # fmt: skip
    writes = [{"start": 9.9, "seconds": 0.02, "process": 0, "operation": "write", "bytes": MIB,
               "file": 4, "offset": 0}]  # fmt: skip
    names = [f"/scratch/p{n}" for n in range(4)] + ["/scratch/data"]
    trace = workflow(opens + writes, names, ["app"])
    write_log(tmp_path / "log", log_content(trace, file_alignment=4096, modules=("POSIX",)))

    found = bottlenecks(read(tmp_path / "log"))

    assert all(one.excess_seconds < 1.0 for one in found.bottlenecks)
