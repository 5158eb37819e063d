"""What starts the ranks of a job is no rank of it: balance is judged among one program's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ioprism
from ioprism import Insights, Severity

MIB = 2**20
LAUNCHERS = ("mpirun", "hydra_pmi_proxy")


def born(pid: int, parent: int, program: str) -> list[str]:
    fork = f"{parent} 1700000000.{pid:06d} clone(child_stack=NULL, flags=SIGCHLD) = {pid} <0.0001>"
    exec_ = f'{pid} 1700000001.000000 execve("/usr/bin/{program}", ["{program}"], 0x7f) = 0 <0.001>'
    return [fork, exec_]


def moved(pid: int, path: str, size: int, *, start: float = 2.0) -> list[str]:
    """Write a file, a MiB or less in each call and 100 ms for each."""
    begin = 1_700_000_000 + start
    opened = f'openat(AT_FDCWD, "{path}", O_WRONLY|O_CREAT, 0644) = 5 <0.000010>'
    pieces = [min(MIB, size - at) for at in range(0, size, MIB)]
    writes = [
        f'{pid} {begin + 0.1 * number:.6f} write(5, "x"..., {piece}) = {piece} <0.100000>'
        for number, piece in enumerate(pieces, start=1)
    ]
    return [f"{pid} {begin:.6f} {opened}", *writes]


def job(path: Path, sizes: list[int]) -> Insights:
    """A launcher and its proxy start ranks that write so many MiB each, and print a little."""
    text = ['1 1700000000.000000 execve("/usr/bin/mpirun", ["mpirun"], 0x7f) = 0 <0.001>']
    text += born(2, 1, "hydra_pmi_proxy") + moved(1, "/home/me/nodes", 100)
    for number, size in enumerate(sizes):
        pid = 10 + number
        text += born(pid, 2, "simulation")
        text += moved(pid, f"/scratch/out.{number}", size * MIB, start=3.0)
    path.write_text("\n".join(text) + "\n")
    return ioprism.insights(ioprism.read(path))


def high(found: Insights) -> dict[str, str | None]:
    return {f.code: f.subject.name for f in found.findings if f.severity is Severity.HIGH}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([20, 20], {}),
        ([20, 20, 20, 20, 20, 20, 20, 20], {}),
        ([20, 20, 20, 25], {"rank-data-imbalance": "3", "unbalanced-ranks": "3"}),
        ([20, 20, 20, 24], {}),
        ([40, 4, 4, 4], {"rank-0-heavy": "0"}),
    ],
)
def test_balance_is_judged_without_launchers(
    tmp_path: Path, sizes: list[int], expected: dict[str, str]
) -> None:
    assert high(job(tmp_path / "a.strace", sizes)) == expected


def test_one_rank_under_a_launcher_is_a_single_process(tmp_path: Path) -> None:
    codes = {f.code for f in job(tmp_path / "a.strace", [20]).findings}

    assert "single-process" in codes
    assert "no-parallel-interface" not in codes


def workflow(path: Path, sizes: Mapping[str, int]) -> set[str]:
    """The codes of a shell that starts programs, which write so many bytes each."""
    text = ['1 1700000000.000000 execve("/bin/sh", ["sh"], 0x7f) = 0 <0.001>']
    for pid, (program, size) in enumerate(sizes.items(), start=2):
        text += born(pid, 1, program) + moved(pid, f"/scratch/{program}", size)
    path.write_text("\n".join(text) + "\n")
    return {f.code for f in ioprism.insights(ioprism.read(path)).findings}


def test_steps_of_a_workflow_are_no_single_process(tmp_path: Path) -> None:
    codes = workflow(tmp_path / "a.strace", {"simulate": 50 * MIB, "analyse": 20 * MIB})

    assert "single-process" not in codes


@pytest.mark.parametrize(
    ("sizes", "little"),
    [
        ({"a": MIB // 2, "b": MIB // 2, "c": MIB // 2}, True),
        ({"a": MIB // 2, "b": MIB // 2, "c": 4 * MIB}, False),
        ({"a": 3 * MIB // 2, "b": 100, "c": 100}, False),  # b and c say hello
    ],
)
def test_the_data_of_a_workflow_is_shared_by_all_its_steps(
    tmp_path: Path, sizes: dict[str, int], little: bool
) -> None:
    assert ("small-total-data" in workflow(tmp_path / "a.strace", sizes)) is little


def test_ranks_of_the_program_are_counted_before_its_launchers(tmp_path: Path) -> None:
    job(tmp_path / "a.strace", [20, 20])
    trace = ioprism.read(tmp_path / "a.strace")
    named = trace.processes.sort("rank")["application"].to_list()

    assert named == ["simulation", "simulation", *LAUNCHERS]
    assert trace.job.executable == "simulation"


def test_a_program_that_does_the_work_itself_is_no_launcher(tmp_path: Path) -> None:
    path = tmp_path / "a.strace"
    text = ['1 1700000000.000000 execve("/usr/bin/solver", ["solver"], 0x7f) = 0 <0.001>']
    text += born(2, 1, "date") + moved(2, "/scratch/log", 100)
    text += moved(1, "/scratch/out", 50 * MIB)
    path.write_text("\n".join(text) + "\n")
    trace = ioprism.read(path)
    numbers = dict(trace.processes.select("application", "rank").iter_rows())

    assert numbers == {"solver": 0, "date": 1}
    assert "single-process" in {f.code for f in ioprism.insights(trace).findings}
