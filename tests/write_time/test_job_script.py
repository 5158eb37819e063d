"""Job scripts are shell, ask for what was asked, and go on until everything is measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ioprism.write_time.campaign.job_script import SCHEDULERS, Job, job_script

HEADERS = {
    "slurm": ("#SBATCH --nodes=16", "#SBATCH --time=01:30:00", "#SBATCH --account=abc"),
    "lsf": ("#BSUB -nnodes 16", "#BSUB -W 01:30", "#BSUB -P abc"),
    "pbs": ("#PBS -l select=16", "#PBS -l walltime=01:30:00", "#PBS -A abc"),
    "flux": ("# flux: --nodes=16", "# flux: --time-limit=90m", "# flux: --bank=abc"),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_script_asks_for_nodes_and_time_and_is_valid_shell(
    scheduler: str, tmp_path: Path
) -> None:
    job = Job(tmp_path / "my runs.db", tmp_path, tmp_path / "job.sh", 16, 90, "abc", "debug")

    text = job_script(scheduler, job)

    assert set(HEADERS[scheduler]) <= set(text.splitlines())
    assert f"--store '{tmp_path}/my runs.db'" in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize(("code", "submitted"), [(0, False), (3, True), (1, False)])
def test_a_script_submits_itself_again_only_while_something_is_left(
    code: int, submitted: bool, tmp_path: Path
) -> None:
    job = Job(tmp_path / "s.db", tmp_path, tmp_path / "job.sh", 1, 60)
    for name, body in (("ioprism", f"exit {code}"), ("sbatch", f"echo $1 > {tmp_path}/sent")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)

    subprocess.run(
        ["/bin/bash"], input=job_script("slurm", job), text=True, env={"PATH": str(tmp_path)}
    )

    assert (tmp_path / "sent").exists() == submitted
