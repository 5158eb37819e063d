"""Write a simulated load as the raw files that real servers and schedulers leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import DIRECTIONS, SECOND, VALUES
from ioprism.servers.simulated_load import EPOCH, REQUEST, Simulation, moved_until
from ioprism.storage.atomic import atomic_folder

TRUTH = "truth.json"  # also what marks the folder as ours
Writer = Callable[[Simulation, Path], None]
Floats = NDArray[np.float64]
FORGOTTEN = 600.0  # seconds without I/O after which a Lustre server drops a job's counters


def write_simulation(
    simulation: Simulation, folder: Path, *, format_name: str = "mmpmon", replace: bool = False
) -> list[Path]:
    """Write counters, jobs and the truth; the folder appears only when it is complete.

    Raises:
        OutputError: the folder exists and is not to be replaced.
    """
    with atomic_folder(folder, marker=TRUTH, replace=replace) as temporary:
        (temporary / "counters").mkdir(parents=True)
        WRITERS[format_name](simulation, temporary / "counters")
        _write_jobs(simulation, temporary / "jobs.sacct")
        _write_truth(simulation, temporary / TRUTH)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write_mmpmon(simulation: Simulation, folder: Path) -> None:
    for table in simulation.counters():
        server = str(table["server"][0])
        seconds = pl.col("time_us") // SECOND
        words = [
            pl.lit(f"_fs_io_s_ _n_ 10.0.0.1 _nn_ {server} _rc_ 0 _t_"), seconds,
            pl.lit("_tu_"), pl.col("time_us") % SECOND,
            pl.lit("_cl_ gpfs.example _fs_ scratch _d_ 8"),
        ]  # fmt: skip
        for key in ("br", "bw", "oc", "cc", "rdc", "wc"):
            words += [pl.lit(f"_{key}_"), pl.col(key)]
        words.append(pl.lit("_dir_ 0 _iu_ 0"))
        lines = table.select(pl.concat_str(words, separator=" "))
        _write_lines(lines.to_series(), folder / f"{server}.mmpmon")


def _write_table(simulation: Simulation, folder: Path) -> None:
    for table in simulation.counters():
        named = table.select("server", (pl.col("time_us") / SECOND).alias("t"), *VALUES)
        named.write_csv(folder / f"{table['server'][0]}.csv", float_precision=6)


def _write_job_stats(simulation: Simulation, folder: Path) -> None:
    """Each target answers at every sample what the jobs moved that did I/O lately."""
    for table in simulation.counters():
        server = str(table["server"][0])
        times = table["time_us"].to_numpy() / SECOND - EPOCH
        bursts = simulation.bursts.filter(server=server).sort("start")
        jobs = [(str(job), rows) for (job,), rows in bursts.group_by("job", maintain_order=True)]
        answers: list[list[str]] = [[] for _ in times]
        for job, rows in jobs:
            _add_job(answers, job, rows, times)
        heading = [f"obdfilter.{server}-OST0000.job_stats=", "job_stats:"]
        lines = [line for answer in answers for line in [*heading, *answer]]
        _write_lines(pl.Series(lines, dtype=pl.String), folder / f"{server}-OST0000.job_stats")


def _add_job(answers: list[list[str]], job: str, bursts: pl.DataFrame, times: Floats) -> None:
    """Add a job's entry to every answer from its first I/O until the server forgets it."""
    starts, ends = bursts["start"].to_numpy(), np.maximum.accumulate(bursts["end"].to_numpy())
    moved = {d: moved_until(bursts.filter(direction=d), times) for d in DIRECTIONS}
    began = f"  start_time:      {EPOCH + starts[0]:.6f} secs.nsecs"
    shown = np.flatnonzero((times > starts[0]) & (times < ends[-1] + FORGOTTEN))
    latest = np.minimum(times, ends[np.maximum(np.searchsorted(starts, times) - 1, 0)])
    for place in shown.tolist():
        answers[place] += [
            f"- job_id:          {job}",
            f"  snapshot_time:   {EPOCH + latest[place]:.6f} secs.nsecs",
            began,
            *(_operation(d, int(moved[d][place])) for d in DIRECTIONS),
        ]


def _operation(direction: str, total: int) -> str:
    calls = -(-total // REQUEST)
    return (
        f"  {direction}_bytes:  {{ samples: {calls}, unit: bytes, min: 1, max: {REQUEST}, "
        f"sum: {total}, sumsq: 0 }}"
    )


def _write_lines(lines: pl.Series, path: Path) -> None:
    path.write_text("\n".join([*lines.to_list(), ""]), encoding="utf-8")


def _write_jobs(simulation: Simulation, path: Path) -> None:
    heading = "JobIDRaw|User|Account|Partition|NodeList|Start|End|State|JobName"
    lines = [
        "|".join(
            [
                job["job"],
                job["user"],
                job["account"],
                job["partition"],
                ",".join(job["servers"]),
                _local(job["start_us"]),
                _local(job["end_us"]),
                job["state"],
                job["name"],
            ]
        )
        for job in simulation.jobs.iter_rows(named=True)
    ]
    path.write_text("\n".join([heading, *lines, ""]), encoding="utf-8")


def _local(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _write_truth(simulation: Simulation, path: Path) -> None:
    sums = simulation.bursts.group_by("job", "direction").agg(pl.col("bytes").sum())
    moved = {(job, direction): size for job, direction, size in sums.iter_rows()}
    truth = {
        job: {f"{direction}_bytes": moved.get((job, direction), 0) for direction in DIRECTIONS}
        for job in simulation.jobs["job"]
    }
    path.write_text(json.dumps({"jobs": truth}, indent=1), encoding="utf-8")


WRITERS: dict[str, Writer] = {
    "mmpmon": _write_mmpmon,
    "table": _write_table,
    "job_stats": _write_job_stats,
}
