"""Which tracer records a command: what is installed, fits, and disturbs least."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ioprism.errors import UsageError
from ioprism.recording.command import Command
from ioprism.recording.darshan import find_darshan, module_hint
from ioprism.recording.tracer import Tracer, find_dftracer, find_strace

INSTALL: Mapping[str, str] = {
    "darshan": "`module load darshan`, `spack install darshan-runtime`, or set LD_LIBRARY_PATH to "
    "the folder of libdarshan.so",
    "dftracer": "pip install 'ioprism[record]'",
    "strace": "apt install strace, dnf install strace, or `module load strace`",
}
TRACERS = tuple(INSTALL)


@dataclass(frozen=True, slots=True)
class Choice:
    """The tracer of a recording."""

    tracer: Tracer
    reason: str


def find_tracers(name: str) -> Sequence[Tracer]:
    """Return what is installed of a tracer, the most likely first."""
    return FIND[name]()


def choose_tracer(command: Command, name: str = "auto") -> Choice:
    """Return the tracer for a command.

    Raises:
        UsageError: it is not installed, or does not fit; the message says how to get one.
    """
    wanted = _preference(command) if name == "auto" else (name,)
    problems: dict[str, str] = {}
    for kind in wanted:
        for tracer in find_tracers(kind):
            problem = tracer.obstacle(command)
            if problem is None:
                why = _reason(kind, command) if name == "auto" else "chosen with --tracer"
                return Choice(tracer, why + _passed_over(problems))
            problems.setdefault(kind, problem)
        problems.setdefault(kind, "not installed")
    if name == "auto":
        listed = "; ".join(f"{kind}: {problem}" for kind, problem in problems.items())
        raise UsageError(f"no tracer can record this command ({listed}).\nHint: {_hint('strace')}")
    raise UsageError(f"{name} cannot record this command: {problems[name]}.\nHint: {_hint(name)}")


def _passed_over(problems: Mapping[str, str]) -> str:
    return "".join(f"; {name}: {problem}" for name, problem in problems.items())


def _hint(name: str) -> str:
    install = (module_hint() if name == "darshan" else None) or INSTALL[name]
    return f"to get it: {install}; `ioprism record --check` lists what is there."


def _preference(command: Command) -> tuple[str, ...]:
    if command.program.static:
        return ("strace",)
    return (
        ("darshan", "dftracer", "strace")
        if command.program.mpi
        else ("dftracer", "darshan", "strace")
    )


def _reason(name: str, command: Command) -> str:
    if command.program.static:
        return "the program is statically linked, and only strace sees its calls"
    if name == "darshan" and command.program.mpi:
        return "it records MPI-IO and the calls below it at low cost"
    return {
        "darshan": "it records reads and writes at low cost",
        "dftracer": "it records every call, also of child processes, at low cost",
        "strace": "it records every system call of any program",
    }[name]


FIND: Mapping[str, Callable[[], Sequence[Tracer]]] = {
    "darshan": find_darshan,
    "dftracer": lambda: [tracer for tracer in (find_dftracer(),) if tracer is not None],
    "strace": lambda: [tracer for tracer in (find_strace(),) if tracer is not None],
}


@dataclass(frozen=True, slots=True)
class Batch:
    """How a scheduler is asked for a job."""

    lines: tuple[str, ...]  # what every job needs; users change the numbers
    job: str  # the variable that holds the job's number
    submit: str


BATCHES: Mapping[str, Batch] = {
    "slurm": Batch(
        ("#SBATCH --job-name=record", "#SBATCH --nodes=1", "#SBATCH --time=00:30:00"),
        "SLURM_JOB_ID",
        "sbatch",
    ),
    "pbs": Batch(
        ("#PBS -N record", "#PBS -l select=1", "#PBS -l walltime=00:30:00"), "PBS_JOBID", "qsub"
    ),
    "lsf": Batch(("#BSUB -J record", "#BSUB -nnodes 1", "#BSUB -W 00:30"), "LSB_JOBID", "bsub <"),
    "flux": Batch(
        ("# flux: --job-name=record", "# flux: --nodes=1", "# flux: --time-limit=30m"),
        "FLUX_JOB_ID",
        "flux batch",
    ),
}


def job_script(scheduler: str, words: Sequence[str], choice: Choice, *, repeat: int) -> str:
    """Return a script that records the command in a job, into a folder named after the job."""
    batch, tracer = BATCHES[scheduler], choice.tracer
    times = f" --repeat {repeat}" if repeat > 1 else ""
    lines = [
        "#!/bin/bash",
        *batch.lines,
        "",
        f"# Submit with: {batch.submit} FILE",
        f"# Recorded with {tracer.version} ({choice.reason}).",
        *(['cd "$PBS_O_WORKDIR"'] if scheduler == "pbs" else []),
        f'ioprism record -o "record-${batch.job}" --tracer {tracer.name}{times} -- \\',
        f"    {shlex.join(words)}",
    ]
    return "\n".join(lines) + "\n"
