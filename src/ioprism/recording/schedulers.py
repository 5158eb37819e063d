"""How schedulers are asked for a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One batch system."""

    launcher: str
    mark: str  # of the lines that it reads
    asks: tuple[str, ...]  # with the names of a job's facts
    exclusive: tuple[str, ...]  # what keeps other jobs off the nodes
    job_variable: str  # holds the job's number
    submit: str
    resubmit: str = ""  # from inside a job, where that differs

    def header(
        self,
        name: str,
        *,
        nodes: int,
        minutes: int,
        account: str | None = None,
        queue: str | None = None,
        exclusive: bool = False,
    ) -> list[str]:
        """Return the lines that say what a job asks for; what is None is left to the scheduler."""
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}"
        facts = {"name": name, "nodes": nodes, "minutes": minutes, "clock": clock,
                 "account": account, "queue": queue}  # fmt: skip
        asks = (*self.asks, *(self.exclusive if exclusive else ()))
        known = [ask for ask in asks if all(facts[fact] for fact in re.findall(r"{(\w+)}", ask))]
        return [f"{self.mark} {ask.format(**facts)}" for ask in known]


SCHEDULERS: Mapping[str, Scheduler] = {
    "slurm": Scheduler("srun", "#SBATCH", (
        "--job-name={name}", "--nodes={nodes}", "--time={clock}:00", "--account={account}",
        "--partition={queue}"), ("--exclusive",), "SLURM_JOB_ID", "sbatch"),
    "pbs": Scheduler("mpirun", "#PBS", (
        "-N {name}", "-l select={nodes}", "-l walltime={clock}:00", "-A {account}",
        "-q {queue}"), ("-l place=scatter:excl",), "PBS_JOBID", "qsub"),
    "lsf": Scheduler("jsrun", "#BSUB", (
        "-J {name}", "-nnodes {nodes}", "-W {clock}", "-P {account}", "-q {queue}"), (),
        "LSB_JOBID", "bsub <"),
    "flux": Scheduler("flux", "# flux:", (
        "--job-name={name}", "--nodes={nodes}", "--time-limit={minutes}m", "--bank={account}",
        "--queue={queue}"), ("--exclusive",), "FLUX_JOB_ID", "flux batch",
        resubmit="flux --parent batch"),
}  # fmt: skip
