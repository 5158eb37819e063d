"""Job scripts that record: the scheduler's lines, and the command under `ioprism record`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ioprism.recording.choice import Choice


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
