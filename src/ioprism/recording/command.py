"""The program to record: what it is, what it links to, and how other programs are asked.

A command line taken apart: the launcher with its options, and the program that it starts.

A tracer must reach the program and not the launcher. Variables go through the launcher's own
option (`mpirun -x`, `mpiexec -genv`, `srun --export`, `jsrun -E`, `flux run --env`), which needs no
knowledge of its other options. What has to stand before the program (strace, or `env` where the
launcher is not known well) needs its place: the first word that is neither an option, nor the
value of one, and that can be run.
"""

from __future__ import annotations

import mmap
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ioprism.errors import RunFailedError, UsageError
from ioprism.text import printable

QUICK = 30.0  # seconds for a tool that only has to answer


def call(command: Sequence[str], *, failure: str, timeout: float) -> str:
    """Return what the program printed.

    Raises:
        RunFailedError: it cannot be started, refuses, or takes longer than `timeout` seconds.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command lines
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that what it started ends with it
        )
    except OSError as error:
        reason = f"{command[0]} cannot be started ({error.strerror})"
        raise RunFailedError(f"{failure}: {reason}") from error
    try:
        output, complaint = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"{failure}: still running after {timeout:g} s") from None
    finally:
        _end(process)
    if process.returncode:
        raise RunFailedError(f"{failure}: {last_words(complaint or output)}")
    return output


def ask(command: Sequence[str]) -> str:
    """Return what a tool says, or nothing where it is missing, slow or unwilling."""
    try:
        return call(command, failure=command[0], timeout=QUICK)
    except RunFailedError:
        return ""


def last_words(complaint: str) -> str:
    """Return the last line of what a program said."""
    return printable(complaint.strip().rpartition("\n")[2])[-200:] or "no reason given"


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and everything it started, if anything is left."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5.0)
            return


LOADED, DYNAMIC, INTERPRETER = 1, 2, 3  # types of segments
NEEDED, STRING_TABLE = 1, 5  # tags of the dynamic segment
MPI_LIBRARIES = ("libmpi", "libpmpi", "libfmpi")  # MPICH and Open MPI, their profiling and Fortran


@dataclass(frozen=True, slots=True)
class Linkage:
    """What a program or library needs at run time."""

    static: bool  # no dynamic loader starts it
    needed: tuple[str, ...]  # shared libraries

    @property
    def uses_mpi(self) -> bool:
        """Whether an MPI library is linked directly."""
        return any(name.startswith(MPI_LIBRARIES) for name in self.needed)


def read_linkage(path: Path) -> Linkage | None:
    """Return how an ELF file is linked; None for scripts and everything else."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return _linkage(content) if content[:4] == b"\x7fELF" else None
    except (OSError, ValueError, IndexError, struct.error):  # no file, empty, or damaged
        return None


def _linkage(content: mmap.mmap) -> Linkage:
    """Follow the program headers to the interpreter and to the list of libraries."""
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    (table,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", content, 32 if wide else 28)
    size, count = struct.unpack_from(f"{order}HH", content, 54 if wide else 42)
    segments = [_segment(content, table + n * size, order, wide=wide) for n in range(count)]
    static = all(kind != INTERPRETER for kind, *_ in segments)
    entries: list[tuple[int, int]] = []
    for kind, offset, _, length in segments:
        if kind == DYNAMIC:
            form = struct.Struct(order + ("qQ" if wide else "iI"))
            entries = [
                *form.iter_unpack(content[offset : offset + length // form.size * form.size])
            ]
    by_tag = dict(reversed(entries))
    strings = next(
        (
            by_tag[STRING_TABLE] - address + offset
            for kind, offset, address, length in segments
            if kind == LOADED and address <= by_tag.get(STRING_TABLE, -1) < address + length
        ),
        0,
    )
    return Linkage(
        static, tuple(_text(content, strings + at) for tag, at in entries if tag == NEEDED)
    )


def _segment(content: mmap.mmap, at: int, order: str, *, wide: bool) -> tuple[int, int, int, int]:
    """Return type, place in the file, address in memory and length."""
    if wide:
        kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", content, at)
    else:
        kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", content, at)
    return kind, offset, address, length


def _text(content: mmap.mmap, at: int) -> str:
    return content[at : content.find(b"\0", at)].decode("utf-8", "replace")


PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?")
SCRIPT_HEAD = 2**16  # bytes of a script that are searched for mpi4py
CONTAINERS = ("docker", "podman", "apptainer", "singularity", "shifter", "ch-run", "enroot")


@dataclass(frozen=True, slots=True)
class Program:
    """What is traced."""

    words: tuple[str, ...]
    linkage: Linkage | None  # None: a script, or not found
    python: bool
    mpi: bool

    @property
    def static(self) -> bool:
        """Whether it is statically linked: preloading has no effect."""
        return self.linkage is not None and self.linkage.static

    @property
    def name(self) -> str:
        """The program's file name; for Python, that of the script."""
        scripts = (word for word in self.words if self.python and word.endswith(".py"))
        return Path(next(scripts, self.words[0])).name


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line: programs, and the launcher before them if there is one."""

    words: tuple[str, ...]
    launcher: str | None  # open-mpi, hydra, srun, jsrun, flux, or the name of any other
    starts: tuple[int, ...]  # where the programs begin; several for `mpirun a : b`
    program: Program  # the first of them

    def with_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return the command that starts the programs with these variables.

        Without a launcher the variables belong into the environment of the command itself.
        """
        if self.launcher is None:
            return list(self.words)
        if self.launcher == "srun":
            return _srun(self.words, variables)
        form = PASS_VARIABLES.get(self.launcher)
        if form is None:
            return self.with_prefix(["env", *(f"{k}={v}" for k, v in variables.items())])
        options = [word.format(name=k, value=v) for k, v in variables.items() for word in form]
        head = 2 if self.launcher == "flux" else 1  # `flux run`
        return [*self.words[:head], *options, *self.words[head:]]

    def exporting(self, variables: Mapping[str, str]) -> CommandLine:
        """Return the command whose launcher passes these variables on; without one, itself."""
        if self.launcher is None or not variables:
            return self
        words = self.with_environment(variables)
        return replace(self, words=tuple(words), starts=_starts(words, Path(words[0]).name))

    def with_prefix(self, prefix: Sequence[str]) -> list[str]:
        """Return the command with words before every program."""
        words = list(self.words)
        for start in reversed(self.starts):
            words[start:start] = prefix
        return words


def parse_command(words: Sequence[str]) -> CommandLine:
    """Find the launcher and the program.

    Raises:
        UsageError: the command runs a container, or no program can be found behind a launcher.
    """
    name = Path(words[0]).name
    if name in CONTAINERS:
        raise UsageError(container_recipe(words))
    if name not in VALUES:
        return CommandLine(tuple(words), None, (0,), _program(words))
    starts = _starts(words, name)
    end = next((n for n, word in enumerate(words) if word == ":" and n > starts[0]), None)
    program = _program(words[starts[0] : end])
    return CommandLine(tuple(words), _kind(words[0], name), starts, program)


def _kind(path: str, name: str) -> str:
    """Distinguish the families of mpirun and mpiexec by their version text."""
    if name in ("srun", "jsrun", "flux"):
        return name
    version = ask([path, "--version"])
    if any(mark in version for mark in ("Open MPI", "OpenRTE", "PRRTE", "prterun")):
        return "open-mpi"
    if any(mark in version for mark in ("HYDRA", "Hydra", "Intel(R) MPI", "MVAPICH")):
        return "hydra"
    return name


# Options with values, and how many: their values are not the program. Options that contain `=`, and
# those whose value cannot be run (`-n 4`), need not be listed.
_MPI = {
    "-n": 1, "-np": 1, "--np": 1, "-c": 1, "-N": 1, "-ppn": 1, "-hosts": 1, "-host": 1, "--host": 1,
    "-H": 1, "-f": 1, "-hostfile": 1, "--hostfile": 1, "-machinefile": 1, "--machinefile": 1,
    "--map-by": 1, "-map-by": 1, "--bind-to": 1, "-bind-to": 1, "--rank-by": 1, "-x": 1,
    "--mca": 2, "-mca": 2, "--gmca": 2, "-gmca": 2, "-genv": 2, "-env": 2, "-genvlist": 1,
    "-envlist": 1, "-wdir": 1, "--wdir": 1, "-wd": 1, "-launcher": 1, "-rmk": 1, "-iface": 1,
    "--tag-output": 0, "--prefix": 1, "--app": 1, "-configfile": 1, "-outfile-pattern": 1,
    "-errfile-pattern": 1, "-prepend-rank": 0, "--env": 1,
}  # fmt: skip
VALUES: Mapping[str, Mapping[str, int]] = {
    **dict.fromkeys(
        ("mpirun", "mpiexec", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpirun.openmpi",
         "mpiexec.openmpi", "orterun", "prterun", "ibrun", "aprun"), _MPI),
    "srun": dict.fromkeys(
        ("-n", "-N", "-c", "-p", "-t", "-A", "-J", "-o", "-e", "-i", "-w", "-x", "-q", "-D", "-m",
         "-d", "-C", "-G", "-M", "-b", "-r", "--ntasks", "--nodes", "--chdir", "--output",
         "--error", "--input", "--partition", "--nodelist", "--export", "--mpi", "--cpu-bind",
         "--time", "--account", "--job-name", "--ntasks-per-node", "--cpus-per-task"), 1),
    "jsrun": dict.fromkeys(
        ("-n", "-a", "-c", "-g", "-r", "-p", "-d", "-l", "-b", "-h", "-E", "-D", "-X", "-f", "-A",
         "--nrs", "--tasks_per_rs", "--cpu_per_rs", "--gpu_per_rs", "--rs_per_host", "--np",
         "--bind", "--chdir", "--env", "--stdio_stdout", "--stdio_stderr"), 1),
    "flux": dict.fromkeys(
        ("-n", "-N", "-c", "-g", "-t", "-q", "-B", "-o", "-O", "--ntasks", "--nodes", "--cores",
         "--env", "--cwd", "--output", "--error", "--queue", "--bank", "--setopt", "--requires",
         "--time-limit", "--tasks-per-node", "--job-name"), 1),
}  # fmt: skip


def _starts(words: Sequence[str], name: str) -> tuple[int, ...]:
    """Return where the programs begin: behind the launcher's options, and behind each colon."""
    values, starts, at, looking = VALUES[name], [], 1, True
    if name == "flux" and words[1:2] in (["run"], ["submit"]):
        at = 2
    while at < len(words):
        word = words[at]
        if word == ":":
            looking = True
        elif looking and word.startswith("-") and "=" not in word:
            at += values.get(word, 0)
        elif looking and shutil.which(word) is not None:
            starts.append(at)
            looking = False
        at += 1
    if not starts:
        raise UsageError(
            f"no program can be found behind {printable(words[0])}.\n"
            "Hint: check that the program exists and can be executed; a name in the current "
            "folder is written ./NAME."
        )
    return tuple(starts)


# Launchers' options that pass on a variable, before all their other options.
PASS_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "open-mpi": ("-x", "{name}={value}"),
    "hydra": ("-genv", "{name}", "{value}"),
    "jsrun": ("-E", "{name}={value}"),
    "flux": ("--env={name}={value}",),
}


def _srun(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Add to what the user exports; the last --export counts, and values cannot hold commas."""
    if bad := [value for value in variables.values() if "," in value]:
        raise UsageError(
            f"srun cannot pass on {printable(bad[0])!r}, because of the comma.\n"
            "Hint: choose an output folder without a comma in its name."
        )
    exported, rest = "ALL", list(words[1:])
    for at, word in enumerate(rest):
        if word.startswith("--export="):
            exported = rest.pop(at).partition("=")[2]
            break
        if word == "--export" and at + 1 < len(rest):
            exported = rest[at + 1]
            del rest[at : at + 2]
            break
    pairs = [f"{name}={value}" for name, value in variables.items()]
    kept = [] if exported == "NONE" else [exported]
    return [words[0], f"--export={','.join([*kept, *pairs])}", *rest]


def _program(words: Sequence[str]) -> Program:
    path = Path(shutil.which(words[0]) or words[0])
    linkage, first = read_linkage(path), _head(path).partition(b"\n")[0]
    script = first.startswith(b"#!") and b"python" in first
    python = script or PYTHON.fullmatch(path.name) is not None
    if linkage and not python:
        mpi = linkage.uses_mpi
    else:
        mpi = any(b"mpi4py" in _head(Path(word)) for word in words if Path(word).is_file())
    return Program(tuple(words), linkage, python, mpi)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SCRIPT_HEAD)
    except OSError:
        return b""


def container_recipe(words: Sequence[str]) -> str:
    """Say how a program in a container is recorded: the tracer has to be inside."""
    name = Path(words[0]).name
    here = os.path.relpath(os.curdir)
    command = shlex.join(words)
    bind = "--bind" if name in ("apptainer", "singularity") else "--volume"
    return (
        f"{printable(name)} starts the program in a container, where a tracer of this machine does "
        "not reach it.\n"
        "Hint: install ioprism and a tracer in the image, and record inside, into a folder that "
        f"is bound: {name} … {bind} {here} IMAGE ioprism record -o DIR -- PROGRAM. "
        f"What was given: {printable(command)}"
    )
