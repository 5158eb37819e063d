"""Write a simulated load as the raw files that real servers and schedulers leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from ioprism.model.counters import DIRECTIONS, SECOND, VALUES
from ioprism.storage.atomic import atomic_folder
from ioprism.synthetic.server_load import Simulation

TRUTH = "truth.json"  # also what marks the folder as ours
Writer = Callable[[Simulation, Path], None]


def write_simulation(
    simulation: Simulation, folder: Path, *, format_name: str = "mmpmon", replace: bool = False
) -> list[Path]:
    """Write counters, jobs and the truth; the folder appears only when it is complete.

    Raises:
        OutputError: the folder exists and is not to be replaced.
    """
    with atomic_folder(folder, marker=TRUTH, replace=replace) as aside:
        (aside / "counters").mkdir(parents=True)
        WRITERS[format_name](simulation, aside / "counters")
        _write_jobs(simulation, aside / "jobs.sacct")
        _write_truth(simulation, aside / TRUTH)
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
    """Each target lists the jobs it has served so far, and what each of them moved."""
    bursts = simulation.bursts
    for table in simulation.counters():
        server = str(table["server"][0])
        lines: list[str] = []
        for job in simulation.jobs.filter(pl.col("servers").list.contains(server)).iter_rows(
            named=True
        ):
            if bursts.filter(server=server, job=job["job"]).height:
                lines += _entries(table, job["job"], job["start_us"], job["end_us"])
        _write_lines(pl.Series(lines, dtype=pl.String), folder / f"{server}-OST0000.job_stats")


def _entries(table: pl.DataFrame, job: str, start_us: int, end_us: int) -> Iterator[str]:
    during = table.filter(pl.col("time_us").is_between(start_us, end_us))
    server = str(table["server"][0])
    first = during.row(0, named=True) if during.height else {}
    for row in during.iter_rows(named=True):
        yield f"obdfilter.{server}-OST0000.job_stats="
        yield "job_stats:"
        yield f"- job_id:          {job}"
        yield f"  snapshot_time:   {row['time_us'] / SECOND:.6f} secs.nsecs"
        yield f"  start_time:      {first['time_us'] / SECOND:.6f} secs.nsecs"
        for direction, size, calls in (("read", "br", "rdc"), ("write", "bw", "wc")):
            yield (
                f"  {direction}_bytes:  {{ samples: {row[calls] - first[calls]}, unit: bytes, "
                f"min: 1, max: 1048576, sum: {row[size] - first[size]}, sumsq: 0 }}"
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
