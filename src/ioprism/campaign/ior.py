"""The command lines that write a pattern with IOR, for every launcher.

IOR's own checks decide the sizes: a block must be a multiple of a transfer, and both of 8 bytes.
Transfers are 1 MiB: IOR keeps one transfer in memory, not the whole burst.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ioprism.model.samples import WritePattern

TRANSFER = 2**20  # bytes of a single write
WORD = 8  # bytes; IOR's smallest unit
# IOR splits its directives at these, and its file names at @.
FORBIDDEN = frozenset(" \t\r\n#,=@")
SUMMARY = "summary.json"

Start = Callable[[WritePattern, Sequence[str]], list[str]]


def block_bytes(burst: int) -> int:
    """Return the burst as IOR writes it: the next multiple of a transfer."""
    transfer = transfer_bytes(burst)
    return -(-burst // transfer) * transfer


def transfer_bytes(burst: int) -> int:
    """Return the size of a single write: 1 MiB, or the whole of a smaller burst."""
    return min(TRANSFER, -(-burst // WORD) * WORD)


def ior_arguments(pattern: WritePattern, folder: Path) -> list[str]:
    """Return IOR with one file per process in a folder, written once and synchronised."""
    return [
        "ior", "-a", "POSIX", "-F", "-w", "-e",
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
    return [*STARTS[launcher](pattern, hosts), *ior_arguments(pattern, folder)]


def stripe_command(pattern: WritePattern, folder: Path) -> list[str]:
    """Return the command that sets the stripes of new files in a folder."""
    size = ["-S", str(pattern.stripe_bytes)] if pattern.stripe_bytes else []
    return ["lfs", "setstripe", "-c", str(pattern.stripe_count), *size, str(folder)]


def _srun(pattern: WritePattern, hosts: Sequence[str]) -> list[str]:
    start = ["srun", "-N", str(pattern.nodes), "-n", str(pattern.files)]
    start += ["--ntasks-per-node", str(pattern.cores_per_node)]
    return [*start, "--nodelist", ",".join(hosts)] if hosts else start


def _open_mpi(pattern: WritePattern, hosts: Sequence[str]) -> list[str]:
    per_node = pattern.cores_per_node
    start = ["mpirun", "-n", str(pattern.files), "--map-by", f"ppr:{per_node}:node"]
    return [*start, "--host", ",".join(f"{h}:{per_node}" for h in hosts)] if hosts else start


def _mpich(pattern: WritePattern, hosts: Sequence[str]) -> list[str]:
    start = ["mpirun", "-n", str(pattern.files), "-ppn", str(pattern.cores_per_node)]
    return [*start, "-hosts", ",".join(hosts)] if hosts else start


def _jsrun(pattern: WritePattern, hosts: Sequence[str]) -> list[str]:
    del hosts  # jsrun takes the allocation's hosts in its own order
    per_node = str(pattern.cores_per_node)
    return ["jsrun", "-n", str(pattern.nodes), "-r", "1", "-a", per_node, "-c", per_node]


def _flux(pattern: WritePattern, hosts: Sequence[str]) -> list[str]:
    start = ["flux", "run", "-N", str(pattern.nodes)]
    start += [f"--tasks-per-node={pattern.cores_per_node}"]
    return [*start, f"--requires=host:{','.join(hosts)}"] if hosts else start


STARTS: Mapping[str, Start] = {
    "srun": _srun,
    "mpirun": _open_mpi,
    "mpirun (MPICH)": _mpich,
    "jsrun": _jsrun,
    "flux": _flux,
}
