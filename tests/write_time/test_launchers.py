"""Patterns run for real, through IOR where it is, and failures are told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ioprism import OutputError, UsageError
from ioprism.recording.schedulers import SCHEDULERS
from ioprism.write_time import WritePattern
from ioprism.write_time.launchers import (
    STARTS,
    BuiltIn,
    Ior,
    block_bytes,
    find_launcher,
    ior_arguments,
    ior_command,
    stripe_command,
)
from ioprism.write_time.machine import (
    MachineFacts,
    SamplingJob,
    allocated_hosts,
    draft,
    job_script,
    look_around,
)

SUMMARY = {
    "tests": [
        {
            "Parameters": {"filePerProc": 1, "segmentCount": 1, "blockSize": 4096},
            "Options": {"tasks": 4, "clients per node": 2},
            "Results": [{"access": "write", "totalTime": 1.25}],
        }
    ]
}
HEADERS = {
    "slurm": ("#SBATCH --nodes=16", "#SBATCH --time=01:30:00", "#SBATCH --account=abc"),
    "lsf": ("#BSUB -nnodes 16", "#BSUB -W 01:30", "#BSUB -P abc"),
    "pbs": ("#PBS -l select=16", "#PBS -l walltime=01:30:00", "#PBS -A abc"),
    "flux": ("# flux: --nodes=16", "# flux: --time-limit=90m", "# flux: --bank=abc"),
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
    measured = BuiltIn().run(WritePattern(1, 1, 5_000_001), tmp_path, timeout=60)

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
        BuiltIn().run(WritePattern(1, 1, 10), tmp_path, timeout=60)


# IOR's own options (its `createGlobalOptions`): letters that stand alone, and those with a value.
FLAGS = set("cCeEFgkKmrRuvwWxyYzZB")
VALUES = set("aAbdDfGijlMNoOQstTXV")
DIRECTIVES = {"summaryFormat", "summaryFile"}


def parsed_by_ior(arguments: list[str]) -> dict[str, list[str]]:
    """Read IOR's arguments as its option table says."""
    found: dict[str, list[str]] = {}
    words = iter(arguments[1:])
    for word in words:
        assert word[0] == "-"
        assert len(word) == 2
        assert word[1] in FLAGS | VALUES
        found.setdefault(word[1], []).append(next(words) if word[1] in VALUES else "")
    return found


@pytest.mark.parametrize("burst", [1, 1000, 2**20, 10**6, 498_000_000, 10_240_000_000, 3 * 2**20])
def test_ior_takes_every_burst_in_transfers_of_at_most_one_mebibyte(burst: int) -> None:
    options = parsed_by_ior(ior_arguments(WritePattern(1, 16, burst), Path("/scratch/run")))

    block, transfer = int(options["b"][0]), int(options["t"][0])
    assert burst <= block < burst + transfer
    assert transfer == 2**20 or transfer < burst + 8
    assert block % transfer == 0  # "block size must be a multiple of transfer size"
    assert transfer % 8 == 0  # "transfer size must be a multiple of access size"
    assert {"F", "w", "e", "a", "o"} <= set(options)
    assert "r" not in options
    assert {value.partition("=")[0] for value in options["O"]} == DIRECTIVES


def test_every_launcher_starts_as_many_processes_on_as_many_nodes() -> None:
    pattern = WritePattern(2, 4, 3 * 2**20, 2**20, 8, (1, 2))

    commands = {name: ior_command(pattern, name, Path("d"), ["a", "b"]) for name in STARTS}
    starts = {name: command[: command.index("ior")] for name, command in commands.items()}

    assert starts == {
        "srun": ["srun", "-N", "2", "-n", "8", "--ntasks-per-node", "4", "--nodelist", "a,b"],
        "mpirun": ["mpirun", "-n", "8", "--map-by", "ppr:4:node", "--host", "a:4,b:4"],
        "mpirun (MPICH)": ["mpirun", "-n", "8", "-ppn", "4", "-hosts", "a,b"],
        "jsrun": ["jsrun", "-n", "2", "-r", "1", "-a", "4", "-c", "4"],
        "flux": ["flux", "run", "-N", "2", "--tasks-per-node=4", "--requires=host:a,b"],
    }
    stripes = stripe_command(pattern, Path("d"))
    assert stripes == ["lfs", "setstripe", "-c", "8", "-S", "1048576", "d"]


def test_a_folder_whose_name_ior_would_cut_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()

    with pytest.raises(UsageError, match="cannot write to"):
        Ior("srun").run(WritePattern(1, 1, 8), folder, timeout=60)


def test_an_ior_too_old_for_json_is_read_from_what_it_prints(
    programs: Path, tmp_path: Path
) -> None:
    printed = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O
access = file-per-process
clients = 4 (2 per node)
xfersize = 1 MiB
blocksize = 2 MiB
write 1.0 2048 1024 0.1 3.5 0.1 3.75 0
"""
    program(programs, "srun", f"cat <<'END'\n{printed}END\n")

    measured = Ior("srun").run(WritePattern(2, 2, 2 * 2**20), tmp_path, timeout=60)

    assert measured.seconds == 3.75
    assert measured.details["burst_bytes"] == block_bytes(2 * 2**20)


def test_ior_runs_and_its_total_time_is_taken(programs: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(SUMMARY))
    program(programs, "ior", "exit 0")
    program(programs, "srun", f'for a; do f=$a; done; cp {answer} "${{f#summaryFile=}}"')
    folder = tmp_path / "run"
    folder.mkdir()
    launcher = find_launcher("auto", hosts={})

    measured = launcher.run(WritePattern(2, 2, 4096), folder, timeout=60)

    assert launcher.name == "srun"
    assert measured.seconds == 1.25
    with pytest.raises(OutputError, match="IOR ran on 2 nodes with 2 processes each"):
        launcher.run(WritePattern(1, 4, 4096), folder, timeout=60)


def test_a_failing_ior_is_told_with_its_last_words(programs: Path, tmp_path: Path) -> None:
    program(programs, "srun", "echo 'no such partition' >&2; exit 3")

    with pytest.raises(OutputError, match="no such partition"):
        Ior("srun").run(WritePattern(1, 1, 10), tmp_path, timeout=60)


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
    assert "more nodes" in (launcher.obstacle(WritePattern(2, 1, 1)) or "")
    told = Ior("jsrun", {1: "nid1"}).obstacle(WritePattern(1, 1, 1, node_list=(1,)))
    assert told == "jsrun does not allow choosing the nodes"


def test_hosts_of_a_slurm_job_get_their_node_numbers(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, "scontrol", "echo nid00007; echo nid00012; echo login1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid[00007,00012]")

    assert allocated_hosts(r"nid0*(\d+)") == {7: "nid00007", 12: "nid00012"}
    assert allocated_hosts(None) == {}


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE"])
def test_hosts_of_pbs_and_lsf_jobs_are_read_from_their_files(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").write_text("batch1\nnode7\nnode7\nnode9\n")
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "hosts"))

    assert allocated_hosts(r"^node(\d+)") == {7: "node7", 9: "node9"}


def test_hosts_of_a_flux_job_are_asked_for(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs, "flux", "[ \"$1 $2 $3\" = 'hostlist --expand local' ] && echo tux1 tux2")
    monkeypatch.setenv("FLUX_URI", "local:///run/flux/local")

    assert allocated_hosts(r"tux(\d+)") == {1: "tux1", 2: "tux2"}


def test_a_draft_tells_measured_from_guessed(programs: Path, tmp_path: Path) -> None:
    program(programs, "sinfo", "echo '100 64'")

    found = look_around(tmp_path)
    text = draft(found)

    assert (found.nodes, found.cores_per_node) == (100, 64)
    assert "nodes = 100\n" in text
    assert "targets = 16 # check" in draft(MachineFacts("x", "lustre", 4))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_script_asks_for_nodes_and_time_and_is_valid_shell(
    scheduler: str, tmp_path: Path
) -> None:
    job = SamplingJob(
        tmp_path / "my runs.db", tmp_path, tmp_path / "job.sh", 16, 90, "abc", "debug"
    )

    text = job_script(scheduler, job)

    assert set(HEADERS[scheduler]) <= set(text.splitlines())
    assert f"--store '{tmp_path}/my runs.db'" in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize(("code", "submitted"), [(0, False), (3, True), (1, False)])
def test_a_script_submits_itself_again_only_while_something_is_left(
    code: int, submitted: bool, tmp_path: Path
) -> None:
    job = SamplingJob(tmp_path / "s.db", tmp_path, tmp_path / "job.sh", 1, 60)
    for name, body in (("ioprism", f"exit {code}"), ("sbatch", f"echo $1 > {tmp_path}/sent")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)

    subprocess.run(
        ["/bin/bash"], input=job_script("slurm", job), text=True, env={"PATH": str(tmp_path)}
    )

    assert (tmp_path / "sent").exists() == submitted
