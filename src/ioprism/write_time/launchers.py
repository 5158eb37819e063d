"""Run one write pattern for real: through IOR and a launcher, or with the built-in writer.

IOR's own checks decide the sizes: a block must be a multiple of a transfer, and both of 8 bytes.
Transfers are 1 MiB: IOR keeps one transfer in memory, not the whole burst.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ioprism.errors import RunFailedError, TraceError, UsageError
from ioprism.model.samples import Run, WritePattern
from ioprism.recording.command import QUICK, ask, call, last_words
from ioprism.recording.schedulers import SCHEDULERS
from ioprism.units import format_counted
from ioprism.write_time.run_files import read_runs

TRANSFER_BYTES = 2**20  # of one write request; planned bursts are multiples
STARTERS = ("srun", "flux", "jsrun", "mpirun")  # in the order `auto` looks for them
LAUNCHERS = ("auto", *STARTERS, "builtin")
BURST_WRITER = Path(__file__).with_name("burst_writer.py")
CHOOSES_HOSTS = frozenset({"srun", "mpirun", "flux"})


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds from the first open to the last close, and the circumstances."""

    seconds: float
    details: Mapping[str, object]


def find_launcher(name: str, *, hosts: Mapping[int, str]) -> Launcher:
    """Return the launcher of this name; `auto` takes IOR where it can be started.

    Raises:
        UsageError: it is not there.
    """
    ior = shutil.which("ior")
    if name == "auto":
        installed = [n for n in STARTERS if ior and shutil.which(n)]
        name = installed[0] if installed else "builtin"
    if name == "builtin":
        return BuiltIn()
    missing = [program for program in ("ior", name) if shutil.which(program) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} cannot be found in PATH.\n"
            "Hint: load the module that provides it, or use --launcher builtin for this node only."
        )
    return Ior(name, hosts)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One process per core of this node, each writing and syncing a separate file."""

    name: str = "builtin"
    chooses_hosts: bool = False

    def obstacle(self, pattern: WritePattern) -> str | None:
        """Return why this pattern cannot run here, or None."""
        if pattern.nodes > 1:
            return "the built-in writer runs on this node only"
        cores = len(os.sched_getaffinity(0))
        if pattern.cores_per_node > cores:
            return f"only {cores} cores of this node are available"
        return None

    def run(self, pattern: WritePattern, folder: Path, *, timeout: float) -> Measured:
        """Start the writers, let them begin together, and take the longest span."""
        cores = sorted(os.sched_getaffinity(0))[: pattern.cores_per_node]
        writers = [_start_writer(folder, pattern, n, core) for n, core in enumerate(cores)]
        try:
            spans = _run_together(writers, timeout)
        finally:
            for writer in writers:
                writer.kill()
                writer.communicate()
        seconds = max(end for _, end in spans) - min(start for start, _ in spans)
        return Measured(seconds, _circumstances(self.name, folder))


def _start_writer(
    folder: Path, pattern: WritePattern, number: int, core: int
) -> subprocess.Popen[str]:
    path = folder / ("burst" if pattern.shared else f"burst.{core}")
    size, offset = pattern.burst_bytes, number * pattern.burst_bytes * pattern.shared
    # -P: nothing is imported from where the user is. By its path: nothing of the package is loaded.
    command = [sys.executable, "-P", str(BURST_WRITER), str(path), str(size),
               str(core), str(offset), pattern.access]  # fmt: skip
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603


def _run_together(
    writers: Sequence[subprocess.Popen[str]], timeout: float
) -> list[tuple[float, float]]:
    for writer in writers:
        if writer.stdout is None or writer.stdout.readline() != "ready\n":
            raise _failure("the built-in writer did not start", writer.communicate()[1])
    for writer in writers:
        if writer.stdin is not None:
            writer.stdin.write("go\n")
            writer.stdin.flush()
    end = time.monotonic() + timeout
    return [_span(writer, end - time.monotonic()) for writer in writers]


def _span(writer: subprocess.Popen[str], timeout: float) -> tuple[float, float]:
    try:
        output, complaint = writer.communicate(timeout=max(timeout, 0.0))
    except subprocess.TimeoutExpired:
        raise RunFailedError("a burst was not written in time") from None
    if writer.returncode or not output.strip():
        raise _failure("a burst could not be written", complaint)
    start, end = output.split()
    return float(start), float(end)


@dataclass(frozen=True, slots=True)
class Ior:
    """IOR with one file per process, started by one of the `STARTERS`."""

    name: str
    hosts: Mapping[int, str] = field(default_factory=dict)  # of the allocation, by node number

    @property
    def chooses_hosts(self) -> bool:
        """Whether a run can be put on chosen hosts of the allocation."""
        return self.name in CHOOSES_HOSTS

    def obstacle(self, pattern: WritePattern) -> str | None:
        """Return why this pattern cannot run here, or None."""
        if pattern.node_list is not None and not set(pattern.node_list) <= set(self.hosts):
            return "its nodes are not part of this allocation"
        if pattern.node_list is not None and not self.chooses_hosts:
            return f"{self.name} does not allow choosing the nodes"
        if self.hosts and pattern.nodes > len(self.hosts):
            return f"it needs more nodes than the {len(self.hosts)} of this allocation"
        if pattern.stripe_count is not None and shutil.which("lfs") is None:
            return "its stripe count needs the program lfs"
        return None

    def run(self, pattern: WritePattern, folder: Path, *, timeout: float) -> Measured:
        """Set the stripes, run IOR once, and read its result.

        Raises:
            RunFailedError: IOR was refused, did not end in time, or said nothing usable.
            UsageError: the folder's name cannot be given to IOR.
        """
        if bad := sorted(set(str(folder)) & FORBIDDEN):
            raise UsageError(
                f"IOR cannot write to {str(folder)!r}: its options are cut at {' '.join(bad)!r}.\n"
                "Hint: choose a --directory with a plain name."
            )
        if pattern.stripe_count is not None:
            call(stripe_command(pattern, folder), failure="stripes cannot be set", timeout=QUICK)
        names = [self.hosts[node] for node in pattern.node_list or ()]
        start = self.name
        if start == "mpirun" and "Open MPI" not in ask(["mpirun", "--version"]):
            start = "mpirun (MPICH)"
        command = ior_command(pattern, start, folder, names)
        output = call(command, failure="IOR", timeout=timeout)
        run = _result(folder, output, pattern.access)
        ran = run.pattern
        if (ran.nodes, ran.cores_per_node) != (pattern.nodes, pattern.cores_per_node):
            raise RunFailedError(
                f"IOR ran on {format_counted(ran.nodes, 'node')} with "
                f"{format_counted(ran.cores_per_node, 'process', 'processes')} each, "
                f"{pattern.nodes} with {pattern.cores_per_node} were asked for"
            )
        if ran.burst_bytes != block_bytes(pattern.burst_bytes):
            raise RunFailedError(
                f"IOR wrote bursts of {ran.burst_bytes} bytes, "
                f"{block_bytes(pattern.burst_bytes)} were asked for"
            )
        details = {**_circumstances(self.name, folder), "burst_bytes": run.pattern.burst_bytes}
        return Measured(run.seconds, details)


Launcher = BuiltIn | Ior


def _result(folder: Path, output: str, access: str) -> Run:
    """Read IOR's JSON, or what it printed where it is too old to write JSON."""
    summary = folder / SUMMARY
    if not summary.exists():
        summary = folder / "printed.txt"
        summary.write_text(output, "utf-8")
    try:
        runs = [run for run in read_runs(summary).runs if run.pattern.access == access]
        if not runs:
            raise RunFailedError(f"IOR's result has no time of the {access}")
        return runs[0]
    except TraceError as error:
        reason = str(error).partition("\n")[0].removeprefix(f"{summary}: ")
        raise RunFailedError(f"IOR's result cannot be read: {reason}") from error


def _failure(what: str, complaint: str) -> RunFailedError:
    return RunFailedError(f"{what}: {last_words(complaint)}")


def _circumstances(launcher: str, folder: Path) -> dict[str, object]:
    usage = shutil.disk_usage(folder)
    jobs = [scheduler.job_variable for scheduler in SCHEDULERS.values()]
    return {
        "launcher": launcher,
        "host": socket.gethostname(),
        "fill": round(1 - usage.free / usage.total, 4),
        "load": os.getloadavg()[0],
        "job": next((os.environ[name] for name in jobs if name in os.environ), None),
    }


WORD = 8  # bytes; IOR's smallest unit
# IOR splits its directives at these, and its file names at @.
FORBIDDEN = frozenset(" \t\r\n#,=@")
SUMMARY = "summary.json"

# The words that start a pattern, and those that choose its hosts: jsrun takes them in its order.
STARTS: Mapping[str, tuple[str, str]] = {
    "srun": ("srun -N {nodes} -n {processes} --ntasks-per-node {cores}", "--nodelist {hosts}"),
    "mpirun": ("mpirun -n {processes} --map-by ppr:{cores}:node", "--host {slots}"),
    "mpirun (MPICH)": ("mpirun -n {processes} -ppn {cores}", "-hosts {hosts}"),
    "jsrun": ("jsrun -n {nodes} -r 1 -a {cores} -c {cores}", ""),
    "flux": ("flux run -N {nodes} --tasks-per-node={cores}", "--requires=host:{hosts}"),
}


def block_bytes(burst: int) -> int:
    """Return the burst as IOR writes it: the next multiple of a transfer."""
    transfer = transfer_bytes(burst)
    return -(-burst // transfer) * transfer


def transfer_bytes(burst: int) -> int:
    """Return the size of a single write: 1 MiB, or the whole of a smaller burst."""
    return min(TRANSFER_BYTES, -(-burst // WORD) * WORD)


def ior_arguments(pattern: WritePattern, folder: Path) -> list[str]:
    """Return IOR with files in a folder, written once and synchronised; reads come after.

    Processes read what another one wrote (-C), so that the cache of their node does not answer.
    """
    return [
        "ior", "-a", "POSIX", *([] if pattern.shared else ["-F"]), "-w",
        *(["-r", "-C"] if pattern.access.endswith("read") else []), "-e",
        "-b", str(block_bytes(pattern.burst_bytes)),
        "-t", str(transfer_bytes(pattern.burst_bytes)),
        "-o", str(folder / "burst"),
        "-O", "summaryFormat=JSON",
        "-O", f"summaryFile={folder / SUMMARY}",
    ]  # fmt: skip


def ior_command(
    pattern: WritePattern, launcher: str, folder: Path, hosts: Sequence[str] = ()
) -> list[str]:
    """Return the command that writes the pattern's files; on these hosts, where any are given."""
    start, on_hosts = STARTS[launcher]
    cores = pattern.cores_per_node
    values = {"nodes": pattern.nodes, "processes": pattern.processes, "cores": cores}
    chosen = {"hosts": ",".join(hosts), "slots": ",".join(f"{host}:{cores}" for host in hosts)}
    words = [*start.split(), *(on_hosts.split() if hosts else ())]
    return [*(word.format(**values, **chosen) for word in words), *ior_arguments(pattern, folder)]


def stripe_command(pattern: WritePattern, folder: Path) -> list[str]:
    """Return the command that sets the stripes of new files in a folder."""
    size = ["-S", str(pattern.stripe_bytes)] if pattern.stripe_bytes else []
    return ["lfs", "setstripe", "-c", str(pattern.stripe_count), *size, str(folder)]
