"""Jobs of known behaviour, the raw files that servers would write, and the truth about both.

`python -m benchmarks.simulated_servers OUT` writes such a machine to try `ioprism servers` on;
`compare_with_truth` shows how far the metrics are from what was simulated. Counters are samples,
so metrics cannot be exact: interpolation spreads a burst over the windows around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.model.counters import (
    BYTES,
    COUNTERS,
    DIRECTIONS,
    JOBS,
    OPERATIONS,
    SECOND,
    TABLE,
    VALUES,
)
from ioprism.model.trace import MIB
from ioprism.servers.formats.lustre import JOB_CLEANUP_SECONDS
from ioprism.servers.job_metrics import JobMetrics, job_metrics, metric_column
from ioprism.storage.atomic import atomic_folder
from ioprism.units import DAY, HOUR

Floats = NDArray[np.float64]
LANES = (8, 4, 2, 1, 1, 12, 16, 4, 2)  # servers that one job at a time has for itself
EPOCH = 1_767_225_600  # 2026-01-01 00:00 UTC
RUNTIME = (0.7 * HOUR, 14 * HOUR)
# Where the median of measured / true may lie: 1 for what is exact, else around the bias that
# the specification measured on 120 s samples (I × 1.44, 1.00 to 2.24; bandwidth × 0.93).
VOLUME = (0.97, 1.03)
BANDWIDTH = (0.6, 1.001)
INTENSITY = (0.95, 2.24)
NATIVE_INTENSITY = (0.9, 1.6)
PARALLEL = (-0.3, 0.02)
TRUTH = "truth.json"  # also what marks the folder as ours


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a kind of job reads and writes; ranges are drawn from evenly, in log scale."""

    name: str
    likelihood: float
    direction: str
    pause: tuple[float, float]  # seconds from one burst to the next
    duration: tuple[float, float]  # seconds a burst takes
    rate: tuple[float, float]  # bytes per second and server
    servers: float  # share of the job's servers that take part


BEHAVIOURS = (
    Behaviour("checkpoint", 0.35, "write", (900, 3600), (30, 240), (1e6, 4e8), 1.0),
    Behaviour("analysis", 0.25, "read", (600, 5400), (60, 900), (1e5, 2e8), 0.5),
    Behaviour("logger", 0.15, "write", (60, 60), (60, 60), (1e2, 3e4), 0.0),
    Behaviour("stream", 0.10, "read", (300, 300), (300, 300), (1e5, 5e7), 1.0),
    Behaviour("serial", 0.10, "write", (1200, 7200), (20, 600), (1e6, 1e8), 0.0),
    Behaviour("idle", 0.05, "write", (HOUR, HOUR), (1, 1), (0, 0), 0.0),
)


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How large the machine is and how long it is watched."""

    servers: int = 16
    days: float = 2.0
    interval: float = 120.0  # seconds
    seed: int = 1
    faults: bool = False  # lose some samples, reset some counters
    jobs_at_once: int = 1  # on each group of servers


@dataclass(frozen=True)
class Simulation:
    """Jobs, every burst of theirs, and the counters that follow from them."""

    settings: SimulationSettings
    jobs: pl.DataFrame  # the columns of JOBS
    bursts: pl.DataFrame  # job, server, direction, start, end (seconds since EPOCH), bytes

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers' names."""
        return tuple(f"ion{number:03d}" for number in range(self.settings.servers))

    @cached_property
    def _by_server(self) -> dict[str, pl.DataFrame]:
        groups = self.bursts.partition_by("server", as_dict=True)
        return {str(server): table for (server,), table in groups.items()}

    def counters(self) -> Iterator[pl.DataFrame]:
        """Yield each server's samples, with the columns of COUNTERS."""
        for number, server in enumerate(self.servers):
            times = self._sample_times(number)
            table = self.counters_at(server, times)
            yield self._with_faults(table, number) if self.settings.faults else table

    def _sample_times(self, number: int) -> Floats:
        """Servers are sampled regularly, but not at the same moments."""
        rng = np.random.default_rng([self.settings.seed, 1, number])
        step = self.settings.interval
        count = int(self.settings.days * 24 * HOUR / step) + 2
        first = rng.uniform(-step, 0.0)
        return np.round(first + step * np.arange(count) + rng.uniform(0, 0.01, count), 6)

    def counters_at(self, server: str, times: Floats) -> pl.DataFrame:
        """Return what a perfect observer would read off a server at these moments."""
        number = self.servers.index(server)
        bursts = self._by_server.get(server, self.bursts.clear())
        columns: dict[str, NDArray[np.int64]] = {}
        for direction in DIRECTIONS:
            moved = moved_until(bursts.filter(direction=direction), times)
            columns[BYTES[direction]] = 10**12 + number * 10**9 + moved
            columns[OPERATIONS[direction]] = -(-moved // MIB)
        opened = np.searchsorted(bursts["start"].sort().to_numpy(), times, side="right")
        columns["oc"] = opened.astype(np.int64)
        columns["cc"] = opened.astype(np.int64)
        micro = np.rint(times * SECOND).astype(np.int64) + EPOCH * SECOND
        table = pl.DataFrame({"time_us": micro, **columns}).with_columns(
            server=pl.lit(server), part=pl.lit(""), source=pl.lit(TABLE)
        )
        return COUNTERS.conform(table)

    def _with_faults(self, table: pl.DataFrame, number: int) -> pl.DataFrame:
        rng = np.random.default_rng([self.settings.seed, 2, number])
        kept = table.filter(pl.Series(rng.random(table.height) > 0.005))
        if number % 4:
            return kept
        place = int(rng.integers(1, max(kept.height, 2)))
        names = [*BYTES.values(), *OPERATIONS.values(), "oc", "cc"]
        after = pl.int_range(pl.len()) >= place
        return kept.with_columns(
            pl.when(after)
            .then(pl.col(name) - pl.col(name).get(place - 1))
            .otherwise(name)
            .alias(name)
            for name in names
        )


def moved_until(bursts: pl.DataFrame, times: Floats) -> NDArray[np.int64]:
    """Return the bytes that had moved at each moment; a burst moves evenly."""
    if not bursts.height:
        return np.zeros(len(times), dtype=np.int64)
    start, end = bursts["start"].to_numpy(), bursts["end"].to_numpy()
    rate = bursts["bytes"].to_numpy() / (end - start)
    knots, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    slope = np.cumsum(np.bincount(place, np.concatenate([rate, -rate]), len(knots)))
    total = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(knots))])
    moved = np.rint(np.interp(times, knots, total)).astype(np.int64)
    return np.asarray(np.maximum.accumulate(moved))


def simulate(settings: SimulationSettings) -> Simulation:
    """Fill a machine with jobs, one or some at a time on each group of servers."""
    rng = np.random.default_rng(settings.seed)
    jobs: dict[str, list[object]] = {name: [] for name in JOBS.names}
    bursts: list[pl.DataFrame] = []
    names = [f"ion{number:03d}" for number in range(settings.servers)]
    for lane in [lane for lane in _lanes(names) for _ in range(settings.jobs_at_once)]:
        clock = round(rng.uniform(0.0, HOUR))  # schedulers keep whole seconds
        while (end := clock + round(_draw(rng, RUNTIME))) < settings.days * 24 * HOUR:
            job = str(len(jobs["job"]) + 1000)
            kind = BEHAVIOURS[rng.choice(len(BEHAVIOURS), p=[b.likelihood for b in BEHAVIOURS])]
            bursts.append(_bursts_of(rng, kind, job, lane, clock, end))
            _add_job_row(jobs, rng, job, kind, lane, clock, end)
            clock = end + round(rng.uniform(5.0, 600.0))
    tables = [table for table in bursts if table.height]
    empty = _bursts_of(rng, BEHAVIOURS[-1], "", ["ion000"], 0.0, 1.0)
    return Simulation(settings, pl.DataFrame(jobs, schema=JOBS.schema), pl.concat([empty, *tables]))


def _lanes(names: list[str]) -> Iterator[list[str]]:
    turn = 0
    while names:
        size = LANES[turn % len(LANES)]
        yield names[:size]
        names = names[size:]
        turn += 1


def _draw(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    low, high = limits
    return low if low == high else float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _bursts_of(
    rng: np.random.Generator, kind: Behaviour, job: str, lane: list[str], start: float, end: float
) -> pl.DataFrame:
    pause, duration = _draw(rng, kind.pause), _draw(rng, kind.duration)
    rate = _draw(rng, kind.rate) if kind.rate[0] else 0.0
    servers = lane[: max(1, round(kind.servers * len(lane)))]
    begins = np.arange(float(start), end - duration, pause) if rate else np.zeros(0)
    # Whole milliseconds: counters can be read exactly when a burst begins and ends.
    begins, ends = np.round(begins, 3), np.round(np.minimum(begins + duration, end), 3)
    sizes = np.rint(rate * (ends - begins)).astype(np.int64)
    each = pl.DataFrame({"start": begins, "end": ends, "bytes": sizes}).with_columns(
        job=pl.lit(job), direction=pl.lit(kind.direction)
    )
    return each.join(pl.DataFrame({"server": servers}), how="cross")


def _add_job_row(
    jobs: dict[str, list[object]],
    rng: np.random.Generator,
    job: str,
    kind: Behaviour,
    lane: list[str],
    start: float,
    end: float,
) -> None:
    user = f"user{int(rng.integers(1, 13)):02d}"
    facts = {
        "job": job,
        "start_us": round(start + EPOCH) * SECOND,
        "end_us": round(end + EPOCH) * SECOND,
        "servers": lane,
        "nodes": len(lane),
        "user": user,
        "account": f"project-{'abcd'[int(user[-2:]) % 4]}",
        "partition": "large" if len(lane) > 4 else "small",
        "name": kind.name,
        "state": "COMPLETED",
    }
    for name, column in jobs.items():
        column.append(facts[name])


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
            _add_job_stats(answers, job, rows, times)
        heading = [f"obdfilter.{server}-OST0000.job_stats=", "job_stats:"]
        lines = [line for answer in answers for line in [*heading, *answer]]
        _write_lines(pl.Series(lines, dtype=pl.String), folder / f"{server}-OST0000.job_stats")


def _add_job_stats(answers: list[list[str]], job: str, bursts: pl.DataFrame, times: Floats) -> None:
    """Add a job's entry to every answer from its first I/O until the server forgets it."""
    starts, ends = bursts["start"].to_numpy(), np.maximum.accumulate(bursts["end"].to_numpy())
    moved = {d: moved_until(bursts.filter(direction=d), times) for d in DIRECTIONS}
    began = f"  start_time:      {EPOCH + starts[0]:.6f} secs.nsecs"
    shown = np.flatnonzero((times > starts[0]) & (times < ends[-1] + JOB_CLEANUP_SECONDS))
    latest = np.minimum(times, ends[np.maximum(np.searchsorted(starts, times) - 1, 0)])
    for place in shown.tolist():
        answers[place] += [
            f"- job_id:          {job}",
            f"  snapshot_time:   {EPOCH + latest[place]:.6f} secs.nsecs",
            began,
            *(_operation(d, int(moved[d][place])) for d in DIRECTIONS),
        ]


def _operation(direction: str, total: int) -> str:
    calls = -(-total // MIB)
    return (
        f"  {direction}_bytes:  {{ samples: {calls}, unit: bytes, min: 1, max: {MIB}, "
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
                _sacct_time(job["start_us"]),
                _sacct_time(job["end_us"]),
                job["state"],
                job["name"],
            ]
        )
        for job in simulation.jobs.iter_rows(named=True)
    ]
    path.write_text("\n".join([heading, *lines, ""]), encoding="utf-8")


def _sacct_time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _write_truth(simulation: Simulation, path: Path) -> None:
    sums = simulation.bursts.group_by("job", "direction").agg(pl.col("bytes").sum())
    moved = {(job, direction): size for job, direction, size in sums.iter_rows()}
    truth = {
        job: {f"{direction}_bytes": moved.get((job, direction), 0) for direction in DIRECTIONS}
        for job in simulation.jobs["job"]
    }
    path.write_text(json.dumps({"jobs": truth}, indent=1), encoding="utf-8")


WRITERS: dict[str, Callable[[Simulation, Path], None]] = {
    "mmpmon": _write_mmpmon,
    "table": _write_table,
    "job_stats": _write_job_stats,
}


@dataclass(frozen=True, slots=True)
class BiasCheck:
    """Measured against true over all jobs: a ratio, or a difference."""

    name: str
    low: float
    high: float
    p1: float
    median: float
    p99: float

    @property
    def passed(self) -> bool:
        """Whether the median is where the known bias puts it."""
        return self.low <= self.median <= self.high


@dataclass(frozen=True, slots=True)
class Validation:
    """All checks over one simulated load."""

    jobs: int
    checks: tuple[BiasCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


class PerfectCounters:
    """Counters read at every moment at which any rate changes: nothing is interpolated."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._table = lru_cache(maxsize=1024)(self._of_server)

    def servers(self) -> Sequence[str]:
        """Name every server."""
        return self._simulation.servers

    def per_job_servers(self) -> Sequence[str]:
        """Name no server: counters by job are not needed."""
        return ()

    def span(self) -> tuple[int, int]:
        """The simulated time, and a day on both sides."""
        times = [self._table(server)["time_us"] for server in self.servers()]
        return min(int(time[0]) for time in times), max(int(time[-1]) for time in times)

    def _of_server(self, server: str) -> pl.DataFrame:
        simulation = self._simulation
        bursts = simulation.bursts.filter(server=server)
        ends = DAY * np.array([-1.0, simulation.settings.days + 1])
        changes = [bursts["start"].to_numpy(), bursts["end"].to_numpy(), ends]
        times = np.unique(np.round(np.concatenate(changes), 6))
        return simulation.counters_at(server, times)

    def counters(
        self, server: str, *, start_us: int, end_us: int, per_job: bool = False
    ) -> pl.DataFrame:
        """Return all samples: the span is only a hint."""
        del start_us, end_us
        return self._table(server).head(0) if per_job else self._table(server)


def compare_with_truth(
    measured: JobMetrics, simulation: Simulation, native: JobMetrics
) -> Validation:
    """Compare what was measured from files with what was simulated.

    Args:
        measured: the job grid's metrics, from ingested files.
        simulation: what the files were made from.
        native: the same on the native grid.
    """
    patient = replace(measured.settings, gap_factor=float("inf"))
    jobs = simulation.jobs.join(measured.table.select("job"), on="job", how="semi")
    perfect = job_metrics(PerfectCounters(simulation), jobs, settings=patient).table
    table = measured.table.join(perfect, on="job", suffix="_true").join(
        native.table, on="job", suffix="_native"
    )
    table = table.join(true_bytes(simulation), on="job", how="left")
    checks = [check for direction in DIRECTIONS for check in _checks(table, direction)]
    return Validation(table.height, tuple(check for check in checks if check is not None))


def _checks(table: pl.DataFrame, direction: str) -> list[BiasCheck | None]:
    intensity = metric_column(direction, "intensity", 0)
    parallel = metric_column(direction, "parallel_intensity", 0)
    volume, peak = f"{direction}_bytes", f"{direction}_max_bandwidth"
    difference = (table[parallel] - table[f"{parallel}_true"]).drop_nulls().to_numpy()
    return [
        _ratio(f"{direction} volume", table[volume], table[f"{direction}_moved"], VOLUME),
        _ratio(f"{direction} maximum bandwidth", table[peak], table[f"{peak}_true"], BANDWIDTH),
        _ratio(f"{direction} intensity", table[intensity], table[f"{intensity}_true"], INTENSITY),
        _ratio(
            f"{direction} intensity, native grid",
            table[f"{intensity}_native"],
            table[f"{intensity}_true"],
            NATIVE_INTENSITY,
        ),
        _check(f"{direction} parallel intensity, difference", difference, PARALLEL),
    ]


def _ratio(
    name: str, measured: pl.Series, true: pl.Series, limits: tuple[float, float]
) -> BiasCheck | None:
    usable = (true > 0).fill_null(value=False)
    return _check(name, (measured.filter(usable) / true.filter(usable)).to_numpy(), limits)


def _check(name: str, values: Floats, limits: tuple[float, float]) -> BiasCheck | None:
    if not len(values):
        return None
    p1, median, p99 = (float(value) for value in np.quantile(values, (0.01, 0.5, 0.99)))
    return BiasCheck(name, *limits, p1, median, p99)


def true_bytes(simulation: Simulation) -> pl.DataFrame:
    """Return what each job truly moved."""
    truth = simulation.jobs.select("job")
    for direction in DIRECTIONS:
        bursts = simulation.bursts.filter(direction=direction)
        moved = bursts.group_by("job").agg(pl.col("bytes").sum().alias(f"{direction}_moved"))
        truth = truth.join(moved, on="job", how="left")
    return truth


DEFAULTS = SimulationSettings()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--servers", default=DEFAULTS.servers, help="Number of servers.")
@click.option("--days", default=DEFAULTS.days, help="Days to simulate.")
@click.option("--interval", default=DEFAULTS.interval, help="Sampling interval, in seconds.")
@click.option("--seed", default=DEFAULTS.seed, help="Seed of the random numbers.")
@click.option("--format", "format_name", default="mmpmon", type=click.Choice(sorted(WRITERS)))
@click.option("--faults", is_flag=True, help="Drop some samples and reset some counters.")
@click.option("--jobs-at-once", default=DEFAULTS.jobs_at_once, help="Jobs that share a server.")
def main(folder: Path, format_name: str, **settings: Any) -> None:  # noqa: ANN401
    """Write raw counters, the job list and the truth of a simulated machine to FOLDER."""
    simulation = simulate(SimulationSettings(**settings))
    write_simulation(simulation, folder, format_name=format_name)
    click.echo(f"{simulation.jobs.height} jobs in {folder}")


if __name__ == "__main__":
    main()
