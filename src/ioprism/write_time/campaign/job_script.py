"""Job scripts that sample in one allocation after the other until everything is measured."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ioprism.errors import UsageError

RESERVE = 300  # seconds before the job's end in which no run is started
WORD = re.compile(r"[\w.:@+-]+", re.ASCII)
MORE_TO_DO = 3  # exit code of `sample run --fail-on waiting`


@dataclass(frozen=True, slots=True)
class Job:
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
                    f"{word!r} is no name of an account or queue.\n"
                    "Hint: letters, digits and _ . : @ + - are fine."
                )


@dataclass(frozen=True, slots=True)
class Scheduler:
    """How a scheduler is asked."""

    launcher: str
    header: Callable[[Job], list[str]]
    submit: str


def job_script(scheduler: str, job: Job) -> str:
    """Write the script; it submits itself again while patterns are left."""
    asked = SCHEDULERS[scheduler]
    seconds = max(60 * job.minutes - RESERVE, 60)
    sample = (
        f"ioprism write-time sample run --store {_quoted(job.store)} "
        f"--directory {_quoted(job.directory)} \\\n    --launcher {asked.launcher} "
        f"--time-limit {seconds} --fail-on waiting"
    )
    lines = [
        "#!/bin/bash",
        *asked.header(job),
        "",
        "# Resumes where the last job ended; interrupted runs are repeated.",
        sample,
        f"if [ $? -eq {MORE_TO_DO} ]; then",
        f"    {asked.submit} {_quoted(job.script)}",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path.resolve()))


def _clock(minutes: int, *, seconds: bool = True) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}" + (":00" if seconds else "")


def _lines(mark: str, *wanted: tuple[str, object | None]) -> list[str]:
    return [f"{mark} {option}{value}" for option, value in wanted if value is not None]


def _slurm(job: Job) -> list[str]:
    return _lines(
        "#SBATCH",
        ("--job-name=", "ioprism-sampling"),
        ("--nodes=", job.nodes),
        ("--exclusive", ""),
        ("--time=", _clock(job.minutes)),
        ("--account=", job.account),
        ("--partition=", job.queue),
    )


def _lsf(job: Job) -> list[str]:
    return _lines(
        "#BSUB",
        ("-J ", "ioprism-sampling"),
        ("-nnodes ", job.nodes),
        ("-W ", _clock(job.minutes, seconds=False)),
        ("-P ", job.account),
        ("-q ", job.queue),
    )


def _pbs(job: Job) -> list[str]:
    return _lines(
        "#PBS",
        ("-N ", "ioprism-sampling"),
        ("-l ", f"select={job.nodes}"),
        ("-l ", "place=scatter:excl"),
        ("-l ", f"walltime={_clock(job.minutes)}"),
        ("-A ", job.account),
        ("-q ", job.queue),
    )


def _flux(job: Job) -> list[str]:
    return _lines(
        "# flux:",
        ("--job-name=", "ioprism-sampling"),
        ("--nodes=", job.nodes),
        ("--exclusive", ""),
        ("--time-limit=", f"{job.minutes}m"),
        ("--bank=", job.account),
        ("--queue=", job.queue),
    )


SCHEDULERS: Mapping[str, Scheduler] = {
    "slurm": Scheduler("srun", _slurm, "sbatch"),
    "lsf": Scheduler("jsrun", _lsf, "bsub <"),
    "pbs": Scheduler("mpirun", _pbs, "qsub"),
    # Inside a Flux job the parent instance takes the next one.
    "flux": Scheduler("flux", _flux, "flux --parent batch"),
}
