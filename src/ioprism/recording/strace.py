"""strace: sees every system call of any program, at a price for each call."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from ioprism.recording.command import Command
from ioprism.recording.process import ask
from ioprism.recording.tracer import Start

BASE = ("-f", "-ttt", "-T", "-yy", "-s", "32", "-e", "trace=%file,%desc,%process")
SECCOMP_SINCE = (5, 3)  # --seccomp-bpf: calls that are not traced cost nothing
# Started by a launcher, each rank writes its own file; exec keeps the number of the process.
PER_RANK = 'folder=$0; exec {strace} -o "$folder/$(hostname).$$.strace" -- "$@"'


@dataclass(frozen=True, slots=True)
class Strace:
    """The strace of this machine."""

    path: str
    number: tuple[int, int]
    name: str = "strace"

    @property
    def version(self) -> str:
        """What it says of itself."""
        return f"strace {self.number[0]}.{self.number[1]}"

    @property
    def where(self) -> str:
        """The program."""
        return self.path

    def obstacle(self, command: Command) -> str | None:
        """Return why it cannot record this command, or None."""
        del command
        if ptrace_works(self.path):
            return None
        return "ptrace is not permitted here"

    def blind_spots(self, command: Command) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        hidden = [
            "accesses to mapped files (mmap)",
            "bytes copied within the kernel (copy_file_range, splice)",
            "requests submitted through io_uring",
        ]
        if command.program.mpi:
            hidden.insert(0, "MPI-IO and HDF5 calls (only the system calls below them)")
        return tuple(hidden)

    def start(self, command: Command, folder: Path) -> Start:
        """Return how to run the command so that traces go to the folder."""
        filtered = ("--seccomp-bpf",) if self.number >= SECCOMP_SINCE else ()
        strace = [self.path, *BASE, *filtered]
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
    return Strace(path, (int(version[1]), int(version[2])) if version else (0, 0))


def ptrace_works(strace: str) -> bool:
    """Whether a process may trace its own child; containers and hardened kernels forbid it."""
    return "+++ exited with 0" in ask(["sh", "-c", '"$0" -f -o /dev/stdout true', strace])
