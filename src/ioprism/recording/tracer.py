"""The tracers that record a run: what each needs and how it is started."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from ioprism.recording.command import CommandLine, ask

PRELOAD = "LD_PRELOAD"
INHERITED = "files that another program opened, such as the shell for `PROGRAM > FILE`"
IN_KERNEL = "bytes copied within the kernel (copy_file_range, splice)"
STAT_IS_A_SYMBOL = (2, 33)  # glibc from which stat is no longer a wrapper of __xstat


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is run with a tracer."""

    words: tuple[str, ...]
    environment: Mapping[str, str]  # for the command itself


@dataclass(frozen=True, slots=True)
class Tracer:
    """Something that records what a program does."""

    name: ClassVar[str]  # how users choose it

    version: str  # its name and version, such as `strace 6.1`
    where: str  # the program that is started, or the library that is preloaded

    def obstacle(self, command: CommandLine) -> str | None:
        """Return why it cannot record this command, or None."""
        if command.program.static:
            title = self.version.partition(" ")[0]
            return f"the program is statically linked, so that {title} cannot be loaded into it"
        return None

    def blind_spots(self, command: CommandLine) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        raise NotImplementedError

    def start(self, command: CommandLine, folder: Path) -> Start:
        """Return how to run the command so that traces go to an existing, empty folder."""
        raise NotImplementedError


def preload(command: CommandLine, library: str, variables: Mapping[str, str]) -> Start:
    """Return how to run a command whose programs load a library first."""
    present = os.environ.get(PRELOAD)
    chain = f"{library}:{present}" if present and library not in present else library
    wanted = {**variables, PRELOAD: chain}
    if command.launcher is None:
        return Start(command.words, wanted)
    return Start(tuple(command.with_environment(wanted)), {})


def glibc_version() -> tuple[int, int]:
    """Return the version of the C library; zeros where it is another one."""
    name, version = platform.libc_ver()
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return (numbers[0], numbers[1]) if name == "glibc" and len(numbers) == 2 else (0, 0)


def hidden_stat() -> tuple[str, ...]:
    """Name the calls that interposed libraries miss with this C library."""
    if glibc_version() < STAT_IS_A_SYMBOL:
        return ()
    version = ".".join(map(str, glibc_version()))
    return (f"stat, lstat and fstat (they bypass its wrappers with glibc {version})",)


BASE = ("-f", "-ttt", "-T", "-yy", "-s", "32", "-e", "trace=%file,%desc,%process")
SECCOMP_SINCE = (5, 3)  # --seccomp-bpf: calls that are not traced cost nothing
# Started by a launcher, each rank writes its own file; exec keeps the number of the process.
PER_RANK = 'folder=$0; exec {strace} -o "$folder/$(hostname).$$.strace" -- "$@"'


@dataclass(frozen=True, slots=True)
class Strace(Tracer):
    """The strace of this machine."""

    name = "strace"

    number: tuple[int, int]  # of its version

    def obstacle(self, command: CommandLine) -> str | None:
        """Return why it cannot record this command, or None."""
        del command
        return None if ptrace_works(self.where) else "ptrace is not permitted here"

    def blind_spots(self, command: CommandLine) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        mpi = "MPI-IO and HDF5 calls (only the system calls below them)"
        return (
            *([mpi] if command.program.mpi else []),
            "accesses to mapped files (mmap)",
            "requests submitted through io_uring",
        )

    def start(self, command: CommandLine, folder: Path) -> Start:
        """Return how to run the command so that traces go to the folder."""
        filtered = ("--seccomp-bpf",) if self.number >= SECCOMP_SINCE else ()
        strace = [self.where, *BASE, *filtered]
        if command.launcher is None:
            # -D: the program is our child, and strace is not between us: signals and the exit
            # code are the program's, and what it leaves in the background is not waited for.
            file = folder / f"{command.program.name}.strace"
            return Start((*strace, "-D", "-o", str(file), "--", *command.words), {})
        script = PER_RANK.format(strace=shlex.join(strace))
        return Start(tuple(command.with_prefix(["sh", "-c", script, str(folder)])), {})


def find_strace() -> Strace | None:
    """Return the strace in PATH, or None."""
    path = shutil.which("strace")
    if path is None:
        return None
    version = re.search(r"version (\d+)\.(\d+)", ask([path, "--version"]))
    number = (int(version[1]), int(version[2])) if version else (0, 0)
    return Strace(f"strace {number[0]}.{number[1]}", path, number)


def ptrace_works(strace: str) -> bool:
    """Whether a process may trace its own child; containers and hardened kernels forbid it."""
    return "+++ exited with 0" in ask(["sh", "-c", '"$0" -f -o /dev/stdout true', strace])


LIBRARY = "lib64/libdftracer_preload.so"
# Bytes of events that are kept in memory: what a killed process loses, about 20 calls. Its default
# is 1 MiB, which loses short programs altogether and saved no measurable time per call.
KEPT_IN_MEMORY = 4096
ASK = (
    "from importlib.util import find_spec; from importlib.metadata import version; "
    "print(find_spec('dftracer').submodule_search_locations[0]); print(version('dftracer'))"
)


@dataclass(frozen=True, slots=True)
class DFTracer(Tracer):
    """The DFTracer of a Python environment."""

    name = "dftracer"

    def blind_spots(self, command: CommandLine) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        mpi = ("MPI-IO calls (only the POSIX calls below them)",) if command.program.mpi else ()
        return (
            *mpi,
            *hidden_stat(),
            "bytes of buffered streams (fprintf, fputs, fread_unlocked; fwrite and fread are seen)",
            INHERITED,
            "files whose descriptor was copied (dup2, as `dd` does)",
            IN_KERNEL,
            "accesses to mapped files (mmap)",
            "statically linked child processes",
            "the last 20 calls or so of a process that is killed",
        )

    def start(self, command: CommandLine, folder: Path) -> Start:
        """Return how to run the command so that traces go to the folder."""
        variables = {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_TRACE_COMPRESSION": "0",  # a killed process leaves every line written so far
            "DFTRACER_WRITE_BUFFER_SIZE": str(KEPT_IN_MEMORY),
            "DFTRACER_LOG_FILE": str(folder / command.program.name),
        }
        return preload(command, self.where, variables)


def find_dftracer() -> DFTracer | None:
    """Return the DFTracer of our Python, else of the `python3` in PATH; None where both lack it."""
    spec = find_spec("dftracer")
    if spec is not None and spec.submodule_search_locations:
        place = [spec.submodule_search_locations[0], metadata.version("dftracer")]
    else:
        place = ask(["python3", "-c", ASK]).split("\n")[:2]
    if len(place) == 2 and (library := Path(place[0]) / LIBRARY).is_file():
        return DFTracer(f"DFTracer {place[1]}", str(library))
    return None
