"""Changes are tried in turn with runs without them; what they do is seen in the trace."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ioprism.recording.choice import FIND, Choice
from ioprism.recording.command import CommandLine, parse_command
from ioprism.recording.steps import Plan
from ioprism.recording.tracer import Start, Tracer
from ioprism.recording.trials import Hint, fitting_hints, try_hints

LINE = '7 1700000000.{number:06} write(3</out>, "x"..., {size}) = {size} <0.000100>'
MANY = "\n".join(LINE.format(number=number, size=100) for number in range(1, 41))
FEW = "\n".join(LINE.format(number=number, size=1000) for number in range(1, 5))
# Waits for the time that stands in the file of hints; exits as it says.
PROGRAM = """
seconds=0.6 code=0
while read -r key value; do
    [ "$key" = seconds ] && seconds=$value
    [ "$key" = exit ] && code=$value
done < "${ROMIO_HINTS:-/dev/null}"
sleep "$seconds"
exit "$code"
"""
STRIDED = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size, count = 512, length = 512;
    MPI_Datatype type;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(count, length, length * size, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, rank * length, MPI_CHAR, type, "native", MPI_INFO_NULL);
    MPI_File_write(file, calloc(count, length), count * length, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class StandIn(Tracer):
    """Leaves a trace of many writes, or of few where the file of hints says so."""

    name = "strace"
    version: str = "strace 6.1"
    where: str = ""

    def obstacle(self, command: CommandLine) -> str | None:  # noqa: ARG002 - as Tracer has it
        return None

    def blind_spots(self, command: CommandLine) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def start(self, command: CommandLine, folder: Path) -> Start:
        (folder / "many").write_text(f"{MANY}\n")
        (folder / "few").write_text(f"{FEW}\n")
        script = (
            'if grep -q large "$ROMIO_HINTS" 2> /dev/null; then other=many; else other=few; fi; '
            'rm "$0/$other"; exec "$@"'
        )
        return Start(("sh", "-c", script, str(folder), *command.words), {})


def plan(folder: Path, tracer: Tracer, *words: str) -> Plan:
    folder.mkdir()
    return Plan(parse_command(words), Choice(tracer, ""), folder, None)


def hint(name: str, **hints: str) -> Hint:
    return Hint(name, hints, {}, frozenset())


def test_gains_are_proven_and_hints_without_effect_are_called_ignored(tmp_path: Path) -> None:
    program = tmp_path / "program.sh"
    program.write_text(PROGRAM)
    trials = try_hints(
        plan(tmp_path / "out", StandIn(), "sh", str(program)),
        [
            hint("good", seconds="0", large="1"),
            hint("ignored", nonsense="1"),
            hint("bad", seconds="2", large="1"),
            hint("broken", exit="4"),
        ],
        rounds=5,
    )
    found = {trial.hint.name: trial for trial in trials}

    assert {name: trial.status for name, trial in found.items() if name != "bad"} == (
        {"good": "gain", "ignored": "ignored", "broken": "failed"}
    )
    assert found["bad"].status in ("no gain", "undecided")  # on a busy machine
    assert len(found["ignored"].seconds) == 1  # no run is spent on it
    assert found["good"].requests == (40, 4)
    assert found["good"].to_dict()["script"] == (
        [r"printf 'seconds 0\nlarge 1\n' > romio.hints", 'export ROMIO_HINTS="$PWD/romio.hints"']
    )


def test_hints_follow_the_causes_and_the_mpi_library(tmp_path: Path) -> None:
    parallel = tmp_path / "parallel.py"
    parallel.write_text("import mpi4py")
    command = parse_command([sys.executable, str(parallel)])
    serial = parse_command([sys.executable, "-c", "pass"])

    (sieving,) = fitting_hints(command, ["read-modify-write"], 4)
    (aggregators,) = fitting_hints(command, ["few-aggregators", "slow-target"], 64)
    assert sieving.hints == {"romio_ds_write": "disable"}
    assert aggregators.hints["cb_nodes"] == "8"
    assert fitting_hints(command, ["slow-target"], 4) == []
    assert fitting_hints(serial, ["read-modify-write"], 4) == []


def test_romio_takes_a_hint_and_silently_ignores_another(tmp_path: Path) -> None:
    tracers = [*FIND["dftracer"](), *FIND["strace"]()]
    # Debian names the programs of each library, as several may be installed.
    compiler, launcher = (
        next(filter(shutil.which, (f"{name}.mpich", name)), None) for name in ("mpicc", "mpiexec")
    )
    if compiler is None or launcher is None or not tracers:
        pytest.skip("mpicc, mpiexec or a tracer is missing")
    source, program = tmp_path / "strided.c", tmp_path / "strided"
    source.write_text(STRIDED)
    subprocess.run([compiler, "-o", program, source], check=True)
    words = (launcher, "-n", "2", str(program), str(tmp_path / "data"))
    recording = plan(tmp_path / "out", tracers[0], *words)
    if recording.command.launcher != "hydra":
        pytest.skip("this mpiexec starts no program that uses ROMIO")
    sieving, nonsense = try_hints(
        recording,
        [hint("no-data-sieving", romio_ds_write="disable"), hint("nonsense", no_such_hint="1")],
        rounds=3,
    )

    assert nonsense.status == "ignored"
    assert sieving.status != "ignored"
    assert sieving.requests is not None
    assert sieving.requests[1] > 10 * sieving.requests[0]
