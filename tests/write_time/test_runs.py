"""Runs are read from tables and from IOR's results; bad ones are refused with their line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ioprism import BrokenTraceError, TraceError
from ioprism.write_time import Run, WritePattern
from ioprism.write_time.run_files import read_runs

HEADER = "pattern,nodes,cores_per_node,burst_bytes,stripe_bytes,stripe_count,node_list,seconds\n"
GOOD = HEADER + '1,2,4,1000000,,,"0-1",6.5\n1,2,4,1000000,,,"0-1",6.7\n2,1,1,5,1000000,4,7,1.5\n'

IOR_TEXT = """IOR-4.1.0: MPI Coordinated Test of Parallel I/O
Began               : Thu Jan  1 00:00:00 2026
Options:
api                 : POSIX
access              : file-per-process
segments            : 2
nodes               : 2
tasks               : 8
clients per node    : 4
xfersize            : 262144 bytes
blocksize           : 1 MiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     1000.00    4000       0.001       1024.00    256.00     0.001000   0.50       0.002      0.5100     0
read      2000.00    8000       0.001       1024.00    256.00     0.001000   0.25       0.002      0.2500     0
write     1000.00    4000       0.001       1024.00    256.00     0.001000   0.60       0.002      0.6100     1
"""  # noqa: E501 - as IOR prints it

OLD_IOR_TEXT = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O
Summary:
	api                = POSIX
	access             = file-per-process
	clients            = 8 (4 per node)
	xfersize           = 1 MiB
	blocksize          = 2 MiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
write     1000.00    2048.00    1024.00    0.001000   0.50       0.002      0.5200     0
"""


def ior_json(*, times: tuple[object, ...] = (0.25, 0.5), own_files: int = 1) -> str:
    results = [{"access": "write", "totalTime": seconds} for seconds in times]
    test = {
        "Parameters": {
            "filePerProc": own_files, "segmentCount": 1, "blockSize": 64, "tasksPerNode": 4,
        },
        "Options": {"tasks": 8, "clients per node": 4},
        "Results": [*results, {"access": "read", "totalTime": 9.0}],
    }  # fmt: skip
    return json.dumps({"Version": "4.1.0", "tests": [test]})


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "runs"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("pack", [False, True])
def test_a_table_has_one_row_a_run(tmp_path: Path, pack: bool) -> None:
    found = read_runs(write(tmp_path, gzip.compress(GOOD.encode()) if pack else GOOD))

    assert found.format == "csv"
    assert found.runs[1] == Run(WritePattern(2, 4, 10**6, None, None, (0, 1), "1"), 6.7)
    assert found.runs[2].pattern == WritePattern(1, 1, 5, 10**6, 4, (7,), "2")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,2,4,1000,,,0-1,", "line 5: seconds is missing"),
        ("1,2,4,1000,,,0-1,-3", "line 5: seconds is -3, not positive"),
        ("1,2,4,1000,,,0-1,nan", "not positive"),
        ("1,2,4,1000,,,0-1,soon", "'soon', not a number"),
        ("1,2,4,1000,,,0-5,3", "6 nodes listed, but nodes is 2"),
        ("1,2,4,1000,,,x-y,3", "not a node list"),
        ("1,0,4,1000,,,,3", "nodes is 0, not a positive"),
        ("1,2.5,4,1000,,,,3", "not a whole number"),
        ("1,2", "cores_per_node is missing"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, row: str, reason: str) -> None:
    path = write(tmp_path, GOOD + row.replace("0-1", '"0-1"') + "\n")
    with pytest.raises(BrokenTraceError, match=reason):
        read_runs(path)

    found = read_runs(path, skip_bad=True)

    assert len(found.runs) == 3
    assert len(found.warnings) == 1


def test_ior_results_are_read_from_its_json(tmp_path: Path) -> None:
    found = read_runs(write(tmp_path, ior_json()))

    assert found.format == "ior-json"
    assert [(run.pattern.access, run.seconds) for run in found.runs] == [
        ("write", 0.25),
        ("write", 0.5),
        ("read", 9.0),
    ]
    assert found.runs[0].pattern == WritePattern(2, 4, 64, label="ior 8x4")


@pytest.mark.parametrize(
    ("text", "burst", "times"),
    [(IOR_TEXT, 2 * 2**20, [0.51, 0.61]), (OLD_IOR_TEXT, 2 * 2**20, [0.52])],
)
def test_ior_results_are_read_from_its_text(
    tmp_path: Path, text: str, burst: int, times: list[float]
) -> None:
    found = read_runs(write(tmp_path, text))

    assert found.format == "ior-text"
    writes = [run.seconds for run in found.runs if run.pattern.access == "write"]
    assert writes == times
    assert found.runs[0].pattern == WritePattern(2, 4, burst, label="ior 8x4")


@pytest.mark.parametrize(
    "text", [ior_json(own_files=0), IOR_TEXT.replace("file-per-process", "single-shared-file")]
)
def test_one_file_of_all_processes_is_another_access(tmp_path: Path, text: str) -> None:
    found = read_runs(write(tmp_path, text))

    assert {run.pattern.access for run in found.runs} == {"shared-write", "shared-read"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello", "neither a table"),
        ("", "neither a table"),
        ("seconds,burst_bytes\n1,2\n", "columns nodes, cores_per_node are missing"),
        (HEADER, "it contains no runs"),
        ('{"tests": [{}]}', "not a complete JSON result"),
        (ior_json()[:-40], "not a complete JSON result"),
        (ior_json(times=(0.0, 1.0)), "1 write time missing"),
        (IOR_TEXT.replace("tasks  ", "taskz  "), "options cannot be read"),
        (b"\x1f\x8b\x08broken", "damaged"),
        (b"\xff\xfe\x00\x01", "damaged"),
    ],
)
def test_what_holds_no_runs_is_refused(tmp_path: Path, content: str | bytes, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        read_runs(write(tmp_path, content))


@pytest.mark.corpus
def test_the_json_of_a_real_ior_run_is_read(shared_data: Path) -> None:
    found = read_runs(shared_data / "darshan/made/h_ior_easy_fpp_posix.ior.json")

    writes = [run.seconds for run in found.runs if run.pattern.access == "write"]
    assert writes == [0.26, 0.244]
    assert found.runs[0].pattern.burst_bytes == 64 * 2**20


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        read_runs(tmp_path / "none")
    with pytest.raises(TraceError, match="a folder"):
        read_runs(tmp_path)
