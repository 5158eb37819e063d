"""What each tracer of ``ioprism record`` costs: programs with and without it, in turn.

``python -m benchmarks.record_overhead`` runs four programs plain and with every tracer that is
installed, in turn, and prints the medians of wall and CPU time (user and system), and their ratios
to the plain runs. The last column is the CPU time of the whole command, which measures the tracer
and writes the report, less that of the traced program.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.peers import OURS, measure, row
from benchmarks.real_programs import SOURCE
from ioprism.errors import UsageError
from ioprism.recording.choice import TRACERS, choose_tracer
from ioprism.recording.command import parse_command
from ioprism.recording.steps import Plan, run_once

REPEAT = 5
MEMORY = "/dev/shm"  # a file system without a disk, whose other users would disturb
WIDTHS = (26, 9, 7, 6, 6, 6, 10)
SMALL = """
import os
target = os.open("data", os.O_CREAT | os.O_WRONLY, 0o600)
for number in range(50_000):
    os.pwrite(target, b"x" * 4096, number * 4096)
"""
LARGE = """
with open("data", "wb", buffering=0) as file:
    for _ in range(128):
        file.write(bytes(4 << 20))
"""
FILES = """
for number in range(5_000):
    with open(f"{number}.txt", "wb") as file:
        file.write(b"x" * 1000)
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that a program takes."""

    wall: float
    cpu: float


def main() -> None:
    row("program", "tracer", "wall s", "ratio", "CPU s", "ratio", "command", widths=WIDTHS)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="ioprism-overhead-", dir=MEMORY) as folder:
        for name, words in _programs(Path(folder)).items():
            compare(name, words, Path(folder))
        os.chdir(before)


def _programs(folder: Path) -> dict[str, list[str]]:
    python = [sys.executable, "-I", "-S", "-c"]
    programs = {
        "50,000 writes of 4 KiB": [*python, SMALL],
        "128 writes of 4 MiB": [*python, LARGE],
        "5,000 files of 1 kB": [*python, FILES],
    }
    if shutil.which("mpicc") and shutil.which("mpiexec"):
        program = folder / "program"
        subprocess.run(["mpicc", "-O2", "-o", str(program), str(SOURCE)], check=True)
        steps = ("steps=5", "compute=0.2", "bytes=16777216", "request=65536", "dir=.")
        programs["MPI: 2 ranks, 5 bursts"] = ["mpiexec", "-n", "2", str(program), *steps]
    return programs


def compare(name: str, words: list[str], folder: Path) -> None:
    """Print the medians of a program without and with each tracer."""
    plans = _plans(words, folder)
    times: dict[str, list[Times]] = defaultdict(list)
    for _ in range(REPEAT):
        times["none"].append(_timed(folder, _run_plain, words))
        for tracer, plan in plans.items():
            traces = folder / "traces"
            times[tracer].append(_timed(folder, run_once, plan, traces))
            shutil.rmtree(traces)
    plain = _medians(times["none"])
    for tracer, runs in times.items():
        one = _medians(runs)
        ratios = (f"{one.wall / plain.wall:.2f}", f"{one.cpu / plain.cpu:.2f}")
        whole = "" if tracer == "none" else f"{_command_cpu(tracer, words, folder) - one.cpu:.1f}"
        wall, cpu = f"{one.wall:.2f}", f"{one.cpu:.2f}"
        row(name, tracer, wall, ratios[0], cpu, ratios[1], whole, widths=WIDTHS)


def _plans(words: list[str], folder: Path) -> dict[str, Plan]:
    command = parse_command(words)
    plans = {}
    for tracer in TRACERS:
        try:
            choice = choose_tracer(command, tracer)
        except UsageError as error:
            print(f"not measured: {error.args[0].splitlines()[0]}")
            continue
        plans[tracer] = Plan(
            command, choice, folder, None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    return plans


def _run_plain(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _timed(folder: Path, run: Callable[..., object], *arguments: object) -> Times:
    _enter_new_folder(folder / "work")
    began, cpu = time.perf_counter(), _cpu_of_children()
    run(*arguments)
    return Times(time.perf_counter() - began, _cpu_of_children() - cpu)


def _enter_new_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _medians(runs: list[Times]) -> Times:
    return Times(median(run.wall for run in runs), median(run.cpu for run in runs))


def _command_cpu(tracer: str, words: list[str], folder: Path) -> float:
    _enter_new_folder(folder / "work")
    command = [str(OURS), "-m", "ioprism", "record", "--quiet", "--tracer", tracer]
    return measure([*command, "--", *words]).cpu


if __name__ == "__main__":
    main()
