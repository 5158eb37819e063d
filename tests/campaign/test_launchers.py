"""Patterns run for real, through IOR where it is, and failures are told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ioprism.campaign.launchers import (
    BuiltIn,
    Ior,
    find_launcher,
    ior_command,
    stripe_command,
)
from ioprism.campaign.machine import MachineFacts, draft, look_around
from ioprism.campaign.allocation import allocated_hosts
from ioprism.errors import OutputError, UsageError
from ioprism.model.samples import WritePattern

SUMMARY = {
    "tests": [
        {
            "Parameters": {"filePerProc": 1, "segmentCount": 1, "blockSize": 4096},
            "Options": {"tasks": 4, "clients per node": 2},
            "Results": [{"access": "write", "totalTime": 1.25}],
        }
    ]
}


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that stand in for those of a machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin{os.pathsep}/usr/bin")
    return folder


def test_the_built_in_writer_writes_syncs_and_times_bursts(tmp_path: Path) -> None:
    measured = BuiltIn().run(WritePattern(1, 1, 5_000_001), tmp_path)

    written = list(tmp_path.iterdir())
    assert [path.stat().st_size for path in written] == [5_000_001]
    assert 0 < measured.seconds < 30
    assert measured.details["launcher"] == "builtin"


def test_the_built_in_writer_knows_what_it_cannot_do() -> None:
    assert "this node only" in (BuiltIn().obstacle(WritePattern(2, 1, 1)) or "")
    assert "cores" in (BuiltIn().obstacle(WritePattern(1, 4096, 1)) or "")
    assert BuiltIn().obstacle(WritePattern(1, 1, 1)) is None


def test_a_burst_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    (tmp_path / f"burst.{core}").write_text("somebody else's")

    with pytest.raises(OutputError, match="File exists"):
        BuiltIn().run(WritePattern(1, 1, 10), tmp_path)


def test_ior_is_started_with_a_file_per_process_and_fsync(programs: Path) -> None:
    program(programs, "mpirun", "echo 'mpirun (Open MPI) 5.0'")
    pattern = WritePattern(2, 4, 3 * 2**20, 2**20, 8, (1, 2))

    by_srun = ior_command(pattern, "srun", Path("d"), ["nid1", "nid2"])
    by_mpirun = ior_command(pattern, "mpirun", Path("d"))

    assert by_srun[:9] == [
        "srun", "-N", "2", "-n", "8", "--ntasks-per-node", "4", "--nodelist", "nid1,nid2",
    ]  # fmt: skip
    assert by_mpirun[:5] == ["mpirun", "-n", "8", "--map-by", "ppr:4:node"]
    assert {"-F", "-w", "-e", "-C", "summaryFormat=JSON"} <= set(by_srun)
    assert by_srun[by_srun.index("-b") + 1] == str(3 * 2**20)
    assert stripe_command(pattern, Path("d")) == [
        "lfs",
        "setstripe",
        "-c",
        "8",
        "-S",
        "1048576",
        "d",
    ]


def test_ior_runs_and_its_total_time_is_taken(programs: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(SUMMARY))
    program(programs, "ior", "exit 0")
    program(programs, "srun", f'for a; do f=$a; done; cp {answer} "${{f#summaryFile=}}"')
    folder = tmp_path / "run"
    folder.mkdir()
    launcher = find_launcher("auto", hosts={})

    measured = launcher.run(WritePattern(2, 2, 4096), folder)

    assert launcher.name == "srun"
    assert measured.seconds == 1.25
    with pytest.raises(OutputError, match="IOR ran on 2 nodes with 2 processes each"):
        launcher.run(WritePattern(1, 4, 4096), folder)


def test_a_failing_ior_is_told_with_its_last_words(programs: Path, tmp_path: Path) -> None:
    program(programs, "srun", "echo 'no such partition' >&2; exit 3")

    with pytest.raises(OutputError, match="no such partition"):
        Ior("srun").run(WritePattern(1, 1, 10), tmp_path)


def test_launchers_that_are_not_there_are_named(programs: Path) -> None:
    assert not list(programs.iterdir())
    with pytest.raises(UsageError, match="ior and srun cannot be found"):
        find_launcher("srun", hosts={})
    assert find_launcher("auto", hosts={}).name == "builtin"


def test_ior_knows_what_it_cannot_do(programs: Path) -> None:
    assert not list(programs.iterdir())
    launcher = Ior("srun", {1: "nid1"})

    assert "allocation" in (launcher.obstacle(WritePattern(1, 1, 1, node_list=(4,))) or "")
    assert "lfs" in (launcher.obstacle(WritePattern(1, 1, 1, None, 4)) or "")
    assert launcher.obstacle(WritePattern(1, 1, 1, node_list=(1,))) is None


def test_hosts_of_a_slurm_job_get_their_node_numbers(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, "scontrol", "echo nid00007; echo nid00012; echo login1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid[00007,00012]")

    assert allocated_hosts(r"nid0*(\d+)") == {7: "nid00007", 12: "nid00012"}
    assert allocated_hosts(None) == {}


def test_a_draft_tells_measured_from_guessed(programs: Path, tmp_path: Path) -> None:
    program(programs, "sinfo", "echo '100 64'")

    found = look_around(tmp_path)
    text = draft(found)

    assert (found.nodes, found.cores_per_node) == (100, 64)
    assert "nodes = 100\n" in text
    assert "targets = 16 # check" in draft(MachineFacts("x", "lustre", 4))
