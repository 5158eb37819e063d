"""Run one write pattern for real: through IOR and a launcher, or with a writer of our own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ioprism.errors import OutputError, UsageError
from ioprism.formats.samples.runs import read_runs
from ioprism.model.samples import WritePattern
from ioprism.text import printable

LAUNCHERS = ("auto", "srun", "mpirun", "builtin")
TRANSFER = 2**20  # bytes of IOR's single writes, where the burst is a multiple of it


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds from the first open to the last close, and the circumstances."""

    seconds: float
    details: Mapping[str, object]


class Launcher(Protocol):
    """Runs patterns."""

    @property
    def name(self) -> str:
        """What the launcher is called."""
        ...

    def obstacle(self, pattern: WritePattern) -> str | None:
        """Return why this pattern cannot run here, or None."""
        ...

    def run(self, pattern: WritePattern, folder: Path) -> Measured:
        """Write the pattern's files into an empty folder."""
        ...


def find_launcher(name: str, *, hosts: Mapping[int, str]) -> Launcher:
    """Return the launcher of this name; `auto` takes IOR where it can be started.

    Raises:
        UsageError: it is not there.
    """
    ior = shutil.which("ior")
    if name == "auto":
        found = [n for n in ("srun", "mpirun") if ior and shutil.which(n)]
        name = found[0] if found else "builtin"
    if name == "builtin":
        return BuiltIn()
    missing = [program for program in ("ior", name) if shutil.which(program) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} cannot be found in PATH.\n"
            "Hint: load the module that has it, or say --launcher builtin for this node alone."
        )
    return Ior(name, hosts if name == "srun" else {})


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One process per core of this node, each writing and syncing a file of its own."""

    name: str = "builtin"

    def obstacle(self, pattern: WritePattern) -> str | None:
        """Return why this pattern cannot run here, or None."""
        if pattern.nodes > 1:
            return "the built-in writer runs on this node only"
        cores = len(os.sched_getaffinity(0))
        if pattern.cores_per_node > cores:
            return f"this node has {cores} cores for us"
        return None

    def run(self, pattern: WritePattern, folder: Path) -> Measured:
        """Start the writers, let them begin together, and take the longest span."""
        cores = sorted(os.sched_getaffinity(0))[: pattern.cores_per_node]
        writers = [_start_writer(folder / f"burst.{c}", pattern.burst_bytes, c) for c in cores]
        try:
            spans = _run_together(writers)
        finally:
            for writer in writers:
                writer.kill()
                writer.communicate()
        seconds = max(end for _, end in spans) - min(start for start, _ in spans)
        return Measured(seconds, _circumstances(self.name, folder))


def _start_writer(path: Path, size: int, core: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-P",  # nothing is imported from where the user is
        "-m",
        "ioprism.campaign.burst_writer",
        str(path),
        str(size),
        str(core),
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603


def _run_together(writers: Sequence[subprocess.Popen[str]]) -> list[tuple[float, float]]:
    for writer in writers:
        if writer.stdout is None or writer.stdout.readline() != "ready\n":
            raise _failed("the built-in writer did not start", writer.communicate()[1])
    for writer in writers:
        if writer.stdin is not None:
            writer.stdin.write("go\n")
            writer.stdin.flush()
    spans = []
    for writer in writers:
        output, complaint = writer.communicate()
        if writer.returncode or not output.strip():
            raise _failed("a burst could not be written", complaint)
        start, end = output.split()
        spans.append((float(start), float(end)))
    return spans


@dataclass(frozen=True, slots=True)
class Ior:
    """IOR with one file per process, started by srun or mpirun."""

    name: str
    hosts: Mapping[int, str] = field(default_factory=dict)  # of the allocation, by node number

    def obstacle(self, pattern: WritePattern) -> str | None:
        """Return why this pattern cannot run here, or None."""
        if pattern.node_list is not None and not set(pattern.node_list) <= set(self.hosts):
            return "its nodes are not in this allocation"
        if pattern.stripe_count is not None and shutil.which("lfs") is None:
            return "its stripe count needs the program lfs"
        return None

    def run(self, pattern: WritePattern, folder: Path) -> Measured:
        """Set the stripes, run IOR once, and read its result."""
        if pattern.stripe_count is not None:
            _call(stripe_command(pattern, folder), "stripes could not be set")
        summary = folder / "summary.json"
        names = [self.hosts[node] for node in pattern.node_list or ()]
        _call(ior_command(pattern, self.name, folder, names), "IOR failed")
        run = read_runs(summary).runs[0]
        ran, wanted = run.pattern, pattern
        if (ran.nodes, ran.cores_per_node) != (wanted.nodes, wanted.cores_per_node):
            raise _failed(
                f"IOR ran on {ran.nodes} nodes with {ran.cores_per_node} processes each",
                f"{wanted.nodes} with {wanted.cores_per_node} were asked for",
            )
        return Measured(run.seconds, _circumstances(self.name, folder))


def ior_command(
    pattern: WritePattern, launcher: str, folder: Path, hosts: Sequence[str] = ()
) -> list[str]:
    """Return the command that writes the pattern's files into a folder once, with fsync."""
    whole = pattern.burst_bytes % TRANSFER == 0
    size = TRANSFER if whole else pattern.burst_bytes
    ior = ["ior", "-a", "POSIX", "-F", "-w", "-e", "-C", "-b", str(pattern.burst_bytes)]
    ior += ["-t", str(size), "-o", str(folder / "burst")]
    ior += ["-O", "summaryFormat=JSON", "-O", f"summaryFile={folder / 'summary.json'}"]
    per_node = str(pattern.cores_per_node)
    if launcher == "srun":
        start = ["srun", "-N", str(pattern.nodes), "-n", str(pattern.files)]
        start += ["--ntasks-per-node", per_node]
        return [*start, *(["--nodelist", ",".join(hosts)] if hosts else []), *ior]
    spread = ["--map-by", f"ppr:{per_node}:node"] if _is_open_mpi() else ["-ppn", per_node]
    return ["mpirun", "-n", str(pattern.files), *spread, *ior]


def _is_open_mpi() -> bool:
    command = ["mpirun", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return "Open MPI" in done.stdout


def stripe_command(pattern: WritePattern, folder: Path) -> list[str]:
    """Return the command that sets the stripes of new files in a folder."""
    size = ["-S", str(pattern.stripe_bytes)] if pattern.stripe_bytes else []
    return ["lfs", "setstripe", "-c", str(pattern.stripe_count), *size, str(folder)]


def _call(command: Sequence[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise _failed(failure, done.stderr or done.stdout)


def _failed(what: str, complaint: str) -> OutputError:
    last = printable(complaint.strip().rpartition("\n")[2])[-200:]
    return OutputError(
        f"{what}: {last or 'no reason given'}.\n"
        "Hint: runs so far are kept; solve the problem and start `sample run` again."
    )


def _circumstances(launcher: str, folder: Path) -> dict[str, object]:
    usage = shutil.disk_usage(folder)
    return {
        "launcher": launcher,
        "host": socket.gethostname(),
        "fill": round(1 - usage.free / usage.total, 4),
        "load": os.getloadavg()[0],
        "job": os.environ.get("SLURM_JOB_ID"),
    }
