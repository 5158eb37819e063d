"""The machine we are on: a draft of its description, the hosts of this job, and job scripts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import environ
from pathlib import Path

from ioprism.errors import UsageError
from ioprism.recording.command import ask
from ioprism.recording.schedulers import SCHEDULERS

RESERVE = 300  # seconds before the job's end in which no run is started
WORD = re.compile(r"[\w.:@+-]+", re.ASCII)
MORE_TO_DO = 3  # exit code of `sample run --fail-on waiting`


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What could be found out; None where no tool says."""

    name: str
    filesystem: str  # gpfs, lustre or plain
    cores_per_node: int
    nodes: int | None = None
    targets: int | None = None
    servers: int | None = None
    block_bytes: int | None = None
    stripe_count: int | None = None


def look_around(folder: Path) -> MachineFacts:
    """Ask Slurm, Lustre and GPFS tools, where present, about the machine and a folder."""
    kind = _filesystem(folder)
    nodes, cores = _slurm_nodes()
    name = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-") or "machine"
    cores = cores or len(os.sched_getaffinity(0))
    if kind == "lustre":
        return _lustre_facts(folder, MachineFacts(name, kind, cores, nodes))
    if kind == "gpfs":
        block = _number(_ask("mmlsfs", "all", "-B"), r"-B\s+(\d+)")
        targets = len(re.findall(r"^\s*\S+\s+\S+\s+\S+", _ask("mmlsnsd"), re.MULTILINE))
        return MachineFacts(name, kind, cores, nodes, max(targets - 1, 0) or None, None, block)
    return MachineFacts(name, "plain", cores, nodes or 1)


def draft(facts: MachineFacts) -> str:
    """Write the description; what is a guess is marked ``check``."""
    lines = [
        f"# Draft for {facts.name}. Lines marked `check` are guesses that no tool could confirm.",
        f'name = "{facts.name}"',
        f'title = "{facts.name} ({facts.filesystem})"',
        f'filesystem = "{facts.filesystem}"',
        _line("nodes", facts.nodes, 128),
        f"cores_per_node = {facts.cores_per_node}",
        "# hostname = 'nid0*(\\d+)'  # finds a node's number in its host name",
    ]
    nodes = facts.nodes or 128
    stages = {"gpfs": ("bridge", "link", "io_node"), "lustre": ("router",)}
    for stage in stages.get(facts.filesystem, ()):
        lines += [
            "",
            f"[stages.{stage}] # check: which nodes share one?",
            "count = 1",
            'map = "block"',
            f"nodes_per_component = {nodes}",
        ]
    lines += ["", "[storage]", *_storage(facts)]
    lines += ["", "[sampling]", "confidence = 0.9", "relative_error = 0.1", "minimum_runs = 3"]
    lines += ["maximum_runs = 9", "minimum_seconds = 0.0 # the paper keeps means above 5 s"]
    return "\n".join(lines) + "\n"


def _storage(facts: MachineFacts) -> list[str]:
    if facts.filesystem == "plain":
        return ["targets = 1", "servers = 1"]
    lustre = facts.filesystem == "lustre"
    lines = [
        _line("targets", facts.targets, 16),
        _line("servers", facts.servers, 4),
        _line("block_bytes", facts.block_bytes, 1_048_576 if lustre else 8_388_608),
    ]
    return [*lines, _line("stripe_count", facts.stripe_count, 1) if lustre else "subblocks = 32"]


def _line(key: str, value: int | None, guess: int) -> str:
    return f"{key} = {value}" if value is not None else f"{key} = {guess} # check"


def _filesystem(folder: Path) -> str:
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return "plain"
    place = str(folder.resolve())
    under = [
        m.split()[1:3] for m in mounts if (place + "/").startswith(m.split()[1].rstrip("/") + "/")
    ]
    kind = max(under, key=lambda mount: len(mount[0]), default=["", ""])[1]
    return kind if kind in ("lustre", "gpfs") else "plain"


def _slurm_nodes() -> tuple[int | None, int | None]:
    answer = _ask("sinfo", "-h", "-o", "%D %c")
    rows = [(int(n), int(c)) for n, c in re.findall(r"^(\d+) (\d+)\+?$", answer, re.MULTILINE)]
    return (sum(n for n, _ in rows), max(c for _, c in rows)) if rows else (None, None)


def _lustre_facts(folder: Path, facts: MachineFacts) -> MachineFacts:
    targets = len(set(re.findall(r"OST[0-9a-f]{4}", _ask("lfs", "df", str(folder)))))
    servers = set(_ask("lctl", "get_param", "-n", "osc.*.ost_conn_uuid").split())
    layout = _ask("lfs", "getstripe", "-d", str(folder))
    return replace(
        facts,
        targets=targets or None,
        servers=len(servers) or None,
        block_bytes=_number(layout, r"stripe_size:\s+(\d+)"),
        stripe_count=_number(layout, r"stripe_count:\s+(\d+)"),
    )


def _number(text: str, pattern: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) or None if match else None


def _ask(program: str, *arguments: str) -> str:
    return ask([program, *arguments]) if shutil.which(program) else ""


# One line for each slot or host. LSF's first line is the host that starts the job, which is not a
# compute node on machines with jsrun.
HOST_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")


def allocated_hosts(hostname: str | None) -> dict[int, str]:
    """Return the hosts of this job (Slurm, PBS, LSF, Flux) by number: group 1 of `hostname`."""
    if hostname is None:
        return {}
    numbered = ((re.search(hostname, name), name) for name in dict.fromkeys(_hosts()))
    return {int(match[1]): name for match, name in numbered if match}


def _hosts() -> Iterator[str]:
    listed = environ.get("SLURM_JOB_NODELIST")
    if listed and shutil.which("scontrol"):
        yield from ask(["scontrol", "show", "hostnames", listed]).split()
        return
    for variable in HOST_FILES:
        file = Path(environ.get(variable, ""))
        if file.is_file():
            yield from file.read_text("utf-8", errors="replace").split()
            return
    if "FLUX_URI" in environ and shutil.which("flux"):
        yield from ask(["flux", "hostlist", "--expand", "local"]).split()


@dataclass(frozen=True, slots=True)
class SamplingJob:
    """What a job asks for."""

    store: Path
    directory: Path
    script: Path  # where the script is kept, to submit it again
    nodes: int
    minutes: int
    account: str | None = None
    queue: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would become other lines or options of the script.

        Raises:
            UsageError: the account or queue is not one plain word.
        """
        for word in (self.account, self.queue):
            if word is not None and not WORD.fullmatch(word):
                raise UsageError(
                    f"{word!r} is not the name of an account or queue.\n"
                    "Hint: letters, digits and _ . : @ + - are fine."
                )


def job_script(scheduler: str, job: SamplingJob) -> str:
    """Write the script; it submits itself again while patterns are left."""
    asked = SCHEDULERS[scheduler]
    seconds = max(60 * job.minutes - RESERVE, 60)
    sample = (
        f"ioprism write-time sample run --store {_quote(job.store)} "
        f"--directory {_quote(job.directory)} \\\n    --launcher {asked.launcher} "
        f"--time-limit {seconds} --fail-on waiting"
    )
    lines = [
        "#!/bin/bash",
        *asked.header(
            "ioprism-sampling",
            nodes=job.nodes,
            minutes=job.minutes,
            account=job.account,
            queue=job.queue,
            exclusive=True,
        ),
        "",
        "# Resumes where the last job ended; interrupted runs are repeated.",
        sample,
        f"if [ $? -eq {MORE_TO_DO} ]; then",
        f"    {asked.resubmit or asked.submit} {_quote(job.script)}",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _quote(path: Path) -> str:
    return shlex.quote(str(path.resolve()))
