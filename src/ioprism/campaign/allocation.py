"""Which hosts this job may use, and which node numbers they have."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from os import environ
from pathlib import Path

from ioprism.campaign.process import ask

# One line for each slot or host. LSF's first line is the host that starts the job, which on
# machines with jsrun is no compute node.
HOST_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")


def allocated_hosts(hostname: str | None) -> dict[int, str]:
    """Return the hosts of this job by node number: of Slurm, PBS, LSF or Flux.

    Args:
        hostname: regular expression whose group 1 is the node number; None: not known.
    """
    if hostname is None:
        return {}
    numbered = ((re.search(hostname, name), name) for name in dict.fromkeys(_hosts()))
    return {int(found[1]): name for found, name in numbered if found}


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
