"""A command line is taken apart: launcher, program, and how variables reach it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ioprism.errors import UsageError
from ioprism.recording.command import parse_command

VERSIONS = {
    "openmpi": "mpirun (Open MPI) 4.1.4",
    "hydra": "HYDRA build details:\n    Version: 4.0.2",
    "other": "a launcher nobody knows",
}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in PATH with a program and launchers of every kind."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name in ("simulate", "srun", "jsrun", "flux"):
        script(tmp_path / name, "true")
    return tmp_path


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def launcher(path: Path, kind: str, name: str = "mpirun") -> None:
    script(path / name, f"echo '{VERSIONS[kind]}'")


def passed(words: Sequence[str]) -> list[str]:
    return parse_command(words).with_environment({"A": "1", "B": "2"})


def test_a_plain_program_is_left_alone() -> None:
    command = parse_command(["simulate", "-n", "4"])

    assert command.launcher is None
    assert command.program.words == ("simulate", "-n", "4")
    assert command.with_prefix(["strace"]) == ["strace", "simulate", "-n", "4"]


@pytest.mark.parametrize(
    ("kind", "inserted"),
    [
        ("openmpi", ["mpirun", "-x", "A=1", "-x", "B=2", "-n", "4", "simulate"]),
        ("hydra", ["mpirun", "-genv", "A", "1", "-genv", "B", "2", "-n", "4", "simulate"]),
        ("other", ["mpirun", "-n", "4", "env", "A=1", "B=2", "simulate"]),
    ],
)
def test_mpirun_passes_variables_in_its_own_way(path: Path, kind: str, inserted: list[str]) -> None:
    launcher(path, kind)

    assert passed(["mpirun", "-n", "4", "simulate"]) == inserted


@pytest.mark.parametrize(
    ("words", "inserted"),
    [
        (["srun", "-N", "2", "simulate"], ["srun", "--export=ALL,A=1,B=2", "-N", "2", "simulate"]),
        (["srun", "--export=X,Y", "simulate"], ["srun", "--export=X,Y,A=1,B=2", "simulate"]),
        (["srun", "--export", "NONE", "simulate"], ["srun", "--export=A=1,B=2", "simulate"]),
        (["jsrun", "-n2", "simulate"], ["jsrun", "-E", "A=1", "-E", "B=2", "-n2", "simulate"]),
        (["flux", "run", "-n2", "simulate"],
         ["flux", "run", "--env=A=1", "--env=B=2", "-n2", "simulate"]),
    ],
)  # fmt: skip
def test_schedulers_pass_variables_in_their_own_way(words: list[str], inserted: list[str]) -> None:
    assert passed(words) == inserted


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["mpirun", "-n", "4", "simulate", "-n", "9"], 3),
        (["mpirun", "--mca", "io", "simulate", "simulate"], 4),
        (["mpirun", "-genv", "X", "simulate", "simulate"], 4),
        (["mpirun", "--map-by", "ppr:2:node", "-wdir", "/tmp", "simulate"], 5),
        (["srun", "-p", "simulate", "--exclusive", "simulate"], 4),
        (["flux", "run", "--nodes=2", "simulate"], 3),
    ],
)
def test_the_program_behind_a_launcher_is_found(path: Path, words: list[str], start: int) -> None:
    launcher(path, "openmpi")

    assert parse_command(words).starts == (start,)


def test_every_program_of_a_launch_gets_the_prefix(path: Path) -> None:
    launcher(path, "openmpi")
    command = parse_command(["mpirun", "-n", "1", "simulate", "a", ":", "-n", "2", "simulate", "b"])

    assert command.with_prefix(["strace"]) == (
        ["mpirun", "-n", "1", "strace", "simulate", "a", ":", "-n", "2", "strace", "simulate", "b"]
    )
    assert command.program.words == ("simulate", "a")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["mpirun", "-n", "4", "./missing"], "no program can be found behind mpirun"),
        (["podman", "run", "image", "simulate"], "in a container"),
        (["apptainer", "exec", "image.sif", "simulate"], "ioprism record -o DIR -- PROGRAM"),
    ],
)
def test_what_cannot_be_recorded_is_refused_with_a_way_out(
    path: Path, words: list[str], reason: str
) -> None:
    launcher(path, "openmpi")

    with pytest.raises(UsageError, match=reason):
        parse_command(words)


def test_a_comma_cannot_pass_through_srun() -> None:
    with pytest.raises(UsageError, match="because of the comma"):
        parse_command(["srun", "simulate"]).with_environment({"A": "/a,b"})


def test_python_programs_and_their_use_of_mpi_are_recognised(path: Path) -> None:
    plain, parallel = path / "plain.py", path / "parallel.py"
    plain.write_text("print(1)")
    parallel.write_text("from mpi4py import MPI")

    assert not parse_command([sys.executable, str(plain)]).program.mpi
    program = parse_command([sys.executable, str(parallel)]).program
    assert (program.python, program.mpi, program.name) == (True, True, "parallel.py")
