"""Which tracer records a run here: what this machine has, what fits the command, job scripts."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ioprism.errors import UsageError
from ioprism.recording.command import Command
from ioprism.recording.darshan import Darshan, find_darshan, module_hint
from ioprism.recording.process import ask
from ioprism.recording.tracer import (
    STAT_IS_A_SYMBOL,
    Strace,
    Tracer,
    find_dftracer,
    find_strace,
    glibc_version,
    ptrace_works,
)

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


Status = Literal["ok", "missing", "no"]
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
ONLY_ROOT = 2  # the smallest scope that forbids tracing a child
LAUNCHERS = ("mpirun", "mpiexec", "srun", "jsrun", "flux")
STRIPING = "lfs"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that recording may need."""

    what: str
    status: Status  # no: it is there but cannot be used
    found: str
    hint: str = ""


def check_machine(folder: Path) -> tuple[Check, ...]:
    """Return what can be used to record here.

    Args:
        folder: where traces would be written.
    """
    return tuple(_checks(folder))


def _checks(folder: Path) -> Iterator[Check]:
    yield from _darshan()
    for name in ("dftracer", "strace"):
        tracers = find_tracers(name)
        if not tracers:
            yield Check(name, "missing", "not installed", INSTALL[name])
        for tracer in tracers:
            yield Check(name, "ok", f"{tracer.version}, {tracer.where}")
            if isinstance(tracer, Strace):
                yield _ptrace(tracer)
    yield from _launchers()
    yield _c_library()
    yield _kernel()
    if find_spec("mpi4py") is not None:
        yield Check("mpi4py", "ok", "Python programs can use MPI")
    if shutil.which(STRIPING):
        yield Check("lfs", "ok", "striping of Lustre folders can be read and set")
    yield _folder(folder)


def _darshan() -> Iterator[Check]:
    libraries = [tracer for tracer in find_tracers("darshan") if isinstance(tracer, Darshan)]
    if not libraries:
        hint = module_hint()
        yield Check("darshan", "missing", "libdarshan.so was not found", hint or INSTALL["darshan"])
    for library in libraries:
        kind = next((n for n in library.linkage.needed if n.startswith("libmpi")), "no MPI")
        yield Check("darshan", "ok", f"{library.version} for {kind}, {library.where}")


def _ptrace(strace: Strace) -> Check:
    scope = _text(SCOPE)
    detail = f"ptrace_scope is {scope}" if scope else "the kernel has no ptrace_scope"
    if ptrace_works(strace.path):
        return Check("ptrace", "ok", f"a program can be traced ({detail})")
    hint = "start the container with --cap-add=SYS_PTRACE"
    if scope.isdigit() and int(scope) >= ONLY_ROOT:
        hint = "ask the administrator to set kernel.yama.ptrace_scope to 1"
    return Check("ptrace", "no", f"tracing is not permitted ({detail})", hint)


def _launchers() -> Iterator[Check]:
    installed = [(name, path) for name in LAUNCHERS if (path := shutil.which(name))]
    if not installed:
        yield Check("MPI", "missing", "no launcher in PATH", "module load openmpi, or mpich")
    for name, path in installed:
        lines = ask([path, "--version"]).strip().split("\n")
        version = " ".join(" ".join(lines[:2]).split())
        yield Check(name, "ok", f"{path}: {version or 'says no version'}")


def _c_library() -> Check:
    version = glibc_version()
    if version == (0, 0):
        return Check("C library", "ok", f"not glibc ({' '.join(platform.libc_ver()) or 'unknown'})")
    hidden = version >= STAT_IS_A_SYMBOL
    library = f"glibc {version[0]}.{version[1]}"
    hint = "Darshan and DFTracer cannot see stat here; use --tracer strace to see it"
    return Check("C library", "ok", library, hint if hidden else "")


def _kernel() -> Check:
    release = os.uname().release
    uring = _text(Path("/proc/sys/kernel/io_uring_disabled"))
    hint = "" if uring == "2" else "requests through io_uring are invisible to all tracers"
    return Check("kernel", "ok", f"Linux {release}", hint)


def _folder(folder: Path) -> Check:
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return Check("output", "no", f"{place} cannot be written to", "choose another with -o DIR")
    return Check("output", "ok", f"{place} has {free / 1e9:,.1f} GB free")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""
