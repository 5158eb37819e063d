"""Workers come from a batch queue: jobs are submitted, run, and are gone afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import AnalysisError, DaskEngine, LocalEngine, Trace
from ioprism.engine.cluster import Cluster, ClusterSettings, job_script
from ioprism.views.main_view import MainView
from tests.call_tables import trace_of

pytest.importorskip("dask_jobqueue")

# A queue that starts every job at once, here; the job's number is its process group.
SUBMIT = """#!/bin/sh
job=$(mktemp {folder}/job.XXXXXX)
cat "${{1:-/dev/stdin}}" > "$job"
setsid sh "$job" > "$job.log" 2>&1 < /dev/null &
echo $! >> {folder}/submitted
echo "{answer}"
"""
CANCEL = "#!/bin/sh\nkill -- -${1%%.*}\n"
QUEUES: dict[Cluster, tuple[str, str, str]] = {
    "slurm": ("sbatch", "scancel", "Submitted batch job $!"),
    "lsf": ("bsub", "bkill", "Job <$!> is submitted to default queue <normal>."),
    "pbs": ("qsub", "qdel", "$!.server"),
}


@pytest.fixture(scope="module")
def job() -> Trace:
    events = synthesise(checkpointing_job()).trace.events().sort("start", maintain_order=True)
    return trace_of(*events.iter_slices(20_000))


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs are found first."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def runs(number: str) -> bool:
    try:
        os.killpg(int(number), 0)
    except ProcessLookupError:
        return False
    return True


def gone(numbers: list[str], *, within: float = 20.0) -> bool:
    until = time.monotonic() + within
    while any(map(runs, numbers)):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(("queue", "workers"), [("slurm", 2), ("lsf", 1), ("pbs", 1)])
def test_a_queue_gives_workers_and_gets_them_back(
    commands: Path, job: Trace, queue: Cluster, workers: int
) -> None:
    submit, cancel, answer = QUEUES[queue]
    program(commands / submit, SUBMIT.format(folder=commands, answer=answer))
    program(commands / cancel, CANCEL)
    engine = DaskEngine(cluster=queue, workers=workers, memory_limit=10**9)

    (found,) = engine.run(job, MainView())

    (here,) = LocalEngine().run(job, MainView())
    assert_frame_equal(found, here, check_row_order=False, rel_tol=1e-9)
    submitted = (commands / "submitted").read_text().split()
    assert len(submitted) == workers
    assert gone(submitted)
    scripts = [path.read_text() for path in commands.glob("job.??????")]
    assert all("POLARS_MAX_THREADS=1" in script for script in scripts)


@pytest.mark.parametrize("queue", QUEUES)
def test_a_machine_without_the_queue_is_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: Trace, queue: Cluster
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(AnalysisError, match=f"no job can be submitted to {queue}"):
        DaskEngine(cluster=queue).run(job, MainView())


def test_a_refused_job_is_one_message_with_what_the_queue_said(commands: Path, job: Trace) -> None:
    program(commands / "sbatch", "#!/bin/sh\necho 'invalid partition: moon' >&2\nexit 1\n")

    with pytest.raises(AnalysisError, match="invalid partition: moon"):
        DaskEngine(cluster="slurm").run(job, MainView())


@pytest.mark.parametrize(
    ("queue", "wanted"),
    [("slurm", "--mem=8G"), ("lsf", "#BSUB -M"), ("pbs", "mem=7630MB")],
)
def test_job_scripts_ask_for_the_memory_that_was_said(queue: Cluster, wanted: str) -> None:
    settings = ClusterSettings(cluster=queue, workers=2, memory_limit=8 * 10**9)

    script = job_script(settings)

    assert script.startswith("#!/usr/bin/env bash")
    assert wanted in script
    assert "--nthreads 1" in script
    assert "--memory-limit 7.45GiB" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
