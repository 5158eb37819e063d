"""All metrics of all jobs, in batches that keep memory bounded however long the record is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import (
    BYTES,
    DIRECTIONS,
    EARLIEST,
    LATEST,
    OPERATIONS,
    SECOND,
    VALUES,
    CounterSource,
)
from ioprism.servers.activity import (
    Activity,
    JobTotals,
    NativeActivity,
    Placed,
    WindowActivity,
    lay_out,
)
from ioprism.servers.attribution import (
    Occupancy,
    job_bytes,
    occupancies,
    own_counters,
    samples_of_runs,
    split_series,
    without_counted,
)
from ioprism.servers.series import (
    LONGEST_STEP,
    Floats,
    MetricSettings,
    Series,
    server_series,
)
from ioprism.units import format_counted

MIN_WINDOWS = 2  # fewer have no runs to compare
FACTS = ("job", "start_us", "end_us", "user", "account", "partition", "name", "state")
FLAGS = ("shared", "gap", "reset", "missing")
# How a job's bytes are known: its servers served no other job, or counted them per job, or what
# they moved for several jobs was split by nodes, or not attributed; or counters are missing.
ATTRIBUTIONS = ("exclusive", "measured", "split", "marked", "unknown")
MIN_COVERAGE = 0.95  # metrics of jobs with less coverage are flagged
MEASURES = ("intensity", "burstiness", "parallel_intensity")


@dataclass(frozen=True, slots=True)
class Measures:
    """The paper's metrics of several jobs; NaN where they have no meaning."""

    intensity: Floats  # (direction, threshold, job)
    burstiness: Floats
    parallel_intensity: Floats
    has_io: NDArray[np.bool_]
    max_bandwidth: Floats  # (direction, job) bytes per second
    max_server_bandwidth: Floats
    max_operation_rate: Floats
    unknown: Floats  # (job) Δt in which no server's counters are known: left out above


def measure(
    activity: Activity, *, servers: NDArray[np.int64], runtimes: Floats, settings: MetricSettings
) -> Measures:
    """Return the metrics of Eqs. 5 to 9 of the paper.

    Args:
        activity: what the servers did, in stretches ordered by job and time.
        servers: how many servers each job could use, |S|.
        runtimes: the jobs' run times in seconds.
        settings: the mode.
    """
    jobs = len(servers)
    known = activity.known > 0
    job, weights = activity.job[known], activity.weights[known]
    total = _sums(job, weights, jobs)
    every = _sums(activity.job, activity.weights, jobs)
    if settings.grid == "job" and settings.window == "literal":
        total = np.where(total > 0, runtimes * SECOND / settings.interval_us, 0.0)
    joins = _joins(activity.job, known)
    shape = (2, len(settings.thresholds), jobs)
    values = np.full((4, *shape), np.nan)
    for direction, threshold in np.ndindex(shape[:2]):
        active = activity.active[direction, threshold][known]
        values[:, direction, threshold] = _measures_of_threshold(
            active, job, weights, joins, total, servers
        )
    few = np.ceil(runtimes * SECOND / settings.interval_us) < MIN_WINDOWS
    return Measures(
        intensity=values[0],
        burstiness=np.where(few, np.nan, values[1]),
        parallel_intensity=values[2],
        has_io=values[3] > 0,
        max_bandwidth=_highest(activity.bandwidth, activity.job, jobs),
        max_server_bandwidth=_highest(activity.server_bandwidth, activity.job, jobs),
        max_operation_rate=_highest(activity.operation_rate, activity.job, jobs),
        unknown=every - _sums(job, weights, jobs),
    )


def _joins(job: NDArray[np.intp], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a known stretch directly follows another of the same job."""
    follows = np.zeros(len(job), dtype=bool)
    follows[1:] = (job[1:] == job[:-1]) & known[:-1]
    return follows[known]


def _measures_of_threshold(
    active: NDArray[np.int32],
    job: NDArray[np.intp],
    weights: Floats,
    joins: NDArray[np.bool_],
    total: Floats,
    servers: NDArray[np.int64],
) -> Floats:
    """Return intensity, burstiness, parallel intensity and time with I/O for one threshold."""
    jobs = len(servers)
    busy = active > 0
    busy_time = _sums(job, weights * busy, jobs)
    begins = np.ones(len(busy), dtype=bool)
    begins[1:] = ~joins[1:] | (busy[1:] != busy[:-1])
    run_length = _mean_run(busy_time, _sums(job, begins & busy, jobs))
    idle_time = _sums(job, weights * ~busy, jobs)
    idle_length = _mean_run(idle_time, _sums(job, begins & ~busy, jobs))
    served = _sums(job, weights * active, jobs)
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = np.where(total > 0, busy_time / total, np.nan)
        ratio = np.where(idle_length > 0, run_length / idle_length, np.inf)
        burstiness = np.where(total > 0, 1.0 - np.tanh(ratio), np.nan)
        # (|S|·Π − 1) / (|S| − 1), where |S|·Π is the mean number of active servers.
        parallel = np.clip((served / busy_time - 1.0) / (servers - 1), 0.0, 1.0)
    sensible = (busy_time > 0) & (servers > 1)
    return np.stack([intensity, burstiness, np.where(sensible, parallel, np.nan), busy_time])


def _sums(job: NDArray[np.intp], values: NDArray[Any], jobs: int) -> Floats:
    return np.bincount(job, values, jobs).astype(np.float64)


def _mean_run(time: Floats, runs: Floats) -> Floats:
    return np.where(runs > 0, time / np.maximum(runs, 1), 0.0)


def _highest(rates: Floats, job: NDArray[np.intp], jobs: int) -> Floats:
    """Return each job's highest value; its stretches stand together."""
    highest = np.zeros((2, jobs))
    if len(job):
        first = np.concatenate([[0], np.flatnonzero(np.diff(job)) + 1])
        highest[:, job[first]] = np.maximum.reduceat(rates, first, axis=1)
    return highest


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """All metrics of all jobs, and what was left out of them."""

    table: pl.DataFrame
    settings: MetricSettings
    warnings: tuple[str, ...] = field(default=())
    split: str = "evenly"  # how bytes that jobs share were split: by nodes, evenly, or not

    @property
    def attributions(self) -> dict[str, int]:
        """How many jobs' bytes are known in which way."""
        counts = dict(self.table["attribution"].value_counts().iter_rows())
        return {name: int(counts.get(name, 0)) for name in ATTRIBUTIONS}


def metric_column(direction: str, measure: str, threshold: int) -> str:
    """Name the column of a measure that depends on a threshold: `read_intensity_131072`."""
    return f"{direction}_{measure}_{threshold}"


def metric_columns(
    jobs: pl.DataFrame,
    *,
    measures: Measures,
    totals: JobTotals,
    servers: NDArray[np.int64],
    own: NDArray[np.bool_],
    settings: MetricSettings,
) -> pl.DataFrame:
    """Return one row per job: facts, flags, totals, then each direction's metrics.

    Args:
        jobs: the jobs' facts.
        measures: what depends on windows.
        totals: what does not.
        servers: how many servers each job could use.
        own: whether servers count the job separately, so that no other job disturbs it.
        settings: the thresholds.
    """
    coverage = np.where(own, np.nan, totals.coverage(servers))
    split = "split" if settings.shared == "split" else "marked"
    by_servers = np.where(totals.shared, split, "exclusive")
    seen = np.where(totals.servers_seen > 0, by_servers, "unknown")
    attribution = np.where(own, "measured", seen)
    columns: dict[str, NDArray[np.generic] | pl.Series] = {
        "servers": servers,
        "coverage": coverage,
        "attribution": attribution,
        "shared": totals.shared & ~own,
        "gap": (coverage < MIN_COVERAGE) & ~np.isin(attribution, ("measured", "marked")),
        "reset": totals.resets,
        "missing": (totals.servers_seen < servers) & ~own,
        "opens": _growth(totals, "oc"),
        "closes": _growth(totals, "cc"),
        "unknown": measures.unknown * settings.interval_us / SECOND,
    }
    for number, direction in enumerate(DIRECTIONS):
        columns |= _of_direction(direction, number, measures, totals, settings)
    values = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    return pl.concat([jobs.select(FACTS), values], how="horizontal")


def _of_direction(
    direction: str, number: int, measures: Measures, totals: JobTotals, settings: MetricSettings
) -> dict[str, NDArray[np.generic] | pl.Series]:
    columns: dict[str, NDArray[np.generic] | pl.Series] = {
        f"{direction}_bytes": _growth(totals, BYTES[direction]),
        f"{direction}_shared_bytes": totals.shared_bytes[number],
        f"{direction}_operations": _growth(totals, OPERATIONS[direction]),
        f"{direction}_max_bandwidth": measures.max_bandwidth[number],
        f"{direction}_max_server_bandwidth": measures.max_server_bandwidth[number],
        f"{direction}_max_operation_rate": measures.max_operation_rate[number],
        f"{direction}_boundary_bytes": totals.boundary_bytes[number],
    }
    for place, threshold in enumerate(settings.thresholds):
        for name in MEASURES:
            values = getattr(measures, name)[number, place]
            columns[metric_column(direction, name, threshold)] = values
        columns[metric_column(direction, "has_io", threshold)] = measures.has_io[number, place]
    return columns


def _growth(totals: JobTotals, counter: str) -> NDArray[np.float64]:
    """Return a counter's growth, NaN for jobs none of whose servers counts it."""
    row = VALUES.index(counter)
    return np.where(totals.counted[row], totals.counters[row], np.nan)


# About 250 MB of windows.
WINDOWS_AT_ONCE = 1_500_000
STEPS_AT_ONCE = 2_500_000  # of the native grid: one for each sample of each of a job's servers
MAX_WINDOWS = 5_000_000  # of one job; a job with more has a damaged end

Progress = Callable[[int], None]


def job_metrics(
    source: CounterSource,
    jobs: pl.DataFrame,
    *,
    settings: MetricSettings,
    progress: Progress = lambda _: None,
) -> JobMetrics:
    """Return the metrics of every job that ran long enough.

    Args:
        source: the servers' counters.
        jobs: a table with the columns of JOBS.
        settings: the choices of the method.
        progress: is called with the number of jobs done.

    Raises:
        NotEnoughDetailError: no job is long enough, or none has a server.
    """
    own_servers = source.per_job_servers()
    numbered = jobs.sort("start_us", "job").with_row_index("number")
    chosen, warnings = _choose_jobs(numbered, settings, has_own=bool(own_servers))
    occupied = dict(occupancies(without_own(source, numbered, settings)))
    tables = []
    done = 0
    for batch in _batches(chosen, settings):
        tables.append(_batch_metrics(source, batch, settings, own_servers, occupied))
        done += batch.height
        progress(done)
    table = pl.concat(tables)
    missing = int(table["missing"].sum())
    if missing:
        warnings.append(
            f"{format_counted(missing, 'job')} on servers without counters; "
            "give --server-map if the names differ"
        )
    return JobMetrics(table, settings, tuple(warnings), split_of(jobs, settings))


def split_of(jobs: pl.DataFrame, settings: MetricSettings) -> str:
    """Say how bytes that jobs share are split."""
    if settings.shared == "mark":
        return "not at all"
    return "by nodes" if jobs["nodes"].null_count() == 0 else "evenly"


def _choose_jobs(
    jobs: pl.DataFrame, settings: MetricSettings, *, has_own: bool
) -> tuple[pl.DataFrame, list[str]]:
    """Return the jobs to look at, ordered by start, and why others are not."""
    runtime = pl.col("end_us") - pl.col("start_us")
    windows = (runtime // settings.interval_us + 2).alias("windows")
    ordered = jobs.with_columns(windows)
    reasons = {
        "shorter than --min-runtime": runtime >= settings.min_runtime * SECOND,
        "implausibly long run time": pl.col("windows") <= MAX_WINDOWS,
        "no server named": (pl.col("servers").list.len() > 0) | has_own,
    }
    chosen, warnings = ordered, []
    for reason, fits in reasons.items():
        kept = chosen.filter(fits)
        if kept.height < chosen.height:
            left_out = format_counted(chosen.height - kept.height, "job")
            warnings.append(f"{left_out} left out: {reason}")
        chosen = kept
    if not chosen.height:
        raise NotEnoughDetailError(
            needed="jobs with servers that ran long enough",
            has=f"none ({'; '.join(warnings)})" if warnings else "none",
            source="the store",
            hint="lower --min-runtime, or ingest a job list that names nodes.",
        )
    return chosen, warnings


def _batches(jobs: pl.DataFrame, settings: MetricSettings) -> Iterator[pl.DataFrame]:
    """Cut the jobs so that the windows of a piece fit into memory."""
    native = settings.grid == "native"
    width = pl.col("servers").list.len().clip(1) if native else pl.lit(1)
    most = STEPS_AT_ONCE if native else WINDOWS_AT_ONCE
    numbers = jobs.select((pl.col("windows") * width).cum_sum() // most).to_series()
    for _, batch in jobs.group_by(numbers.alias("batch"), maintain_order=True):
        yield batch.with_row_index("row")


@dataclass(frozen=True, slots=True)
class _Collector:
    """The two ways of adding a server to a batch, always done together."""

    activity: WindowActivity | NativeActivity
    totals: JobTotals

    def add(self, series: Series, placed: Placed) -> None:
        """Add a server's counters, whose gaps are known, for some jobs."""
        self.activity.add(series, placed, always_known=False)
        self.totals.add(series, placed)


def _batch_metrics(
    source: CounterSource,
    batch: pl.DataFrame,
    settings: MetricSettings,
    own_servers: Sequence[str],
    occupied: Mapping[str, Occupancy],
) -> pl.DataFrame:
    starts, ends = batch["start_us"].to_numpy(), batch["end_us"].to_numpy()
    activity = (
        NativeActivity(starts, ends, settings)
        if settings.grid == "native"
        else WindowActivity(lay_out(starts, ends, settings), settings)
    )
    collector = _Collector(activity, JobTotals(starts, ends))
    own, data_servers = _add_own(source, batch, settings, own_servers, collector)
    _add_servers(source, batch, settings, own, own_servers, collector, occupied)
    named = batch["servers"].list.n_unique().to_numpy().astype(np.int64)
    servers = np.where(own, np.where(named > 0, named, data_servers), named)
    measures = measure(
        activity.result(), servers=servers, runtimes=(ends - starts) / SECOND, settings=settings
    )
    return metric_columns(
        batch, measures=measures, totals=collector.totals, servers=servers, own=own,
        settings=settings,
    )  # fmt: skip


def _counters(
    source: CounterSource, server: str, batch: pl.DataFrame, *, per_job: bool = False
) -> pl.DataFrame:
    """Return a server's samples during a batch, and those around it."""
    first, last = batch["start_us"].to_numpy().min(), batch["end_us"].to_numpy().max()
    return source.counters(
        server, start_us=int(first) - LONGEST_STEP, end_us=int(last) + LONGEST_STEP, per_job=per_job
    )


def _add_own(
    source: CounterSource,
    batch: pl.DataFrame,
    settings: MetricSettings,
    servers: Sequence[str],
    collector: _Collector,
) -> tuple[NDArray[np.bool_], int]:
    """Add the counters that servers keep for each job; return who has some, and how many do."""
    own = np.zeros(batch.height, dtype=bool)
    data_servers = 0
    for server in servers:
        samples = _counters(source, server, batch, per_job=True)
        data_servers += samples["br"].null_count() < samples.height
        counted = own_counters(samples, batch, settings)
        if counted is not None:
            collector.activity.add(counted.series, counted.placed, always_known=True)
            collector.totals.add(counted.series, counted.placed)
            own[counted.placed.jobs] = True
    return own, max(data_servers, 1)


def _add_servers(
    source: CounterSource,
    batch: pl.DataFrame,
    settings: MetricSettings,
    own: NDArray[np.bool_],
    own_servers: Sequence[str],
    collector: _Collector,
    occupied: Mapping[str, Occupancy],
) -> None:
    """Add the servers' own counters for the jobs that have none: whole, or a job's part."""
    rows = batch.filter(pl.Series(~own)).select("number", "row", server="servers").explode("server")
    by_server = rows.drop_nulls().unique().sort("server", "number")
    for (server,), jobs in by_server.partition_by("server", as_dict=True).items():
        occupancy = occupied.get(str(server))
        if occupancy is None:
            continue
        numbers = jobs["number"].to_numpy().astype(np.intp)
        there = np.isin(numbers, occupancy.jobs)
        series = _server_counters(source, str(server), batch, settings, own_servers)
        uses = np.searchsorted(occupancy.jobs, numbers[there])
        places = jobs["row"].to_numpy().astype(np.intp)[there]
        mixed = occupancy.is_shared(uses)
        collector.add(series, Placed(places[~mixed], np.zeros((~mixed).sum(), dtype=np.int64)))
        if not mixed.any():
            continue
        if not series.empty:
            part, shifts = split_series(series, occupancy, uses[mixed], settings)
            collector.add(part, Placed(places[mixed], shifts))
            if settings.shared == "split":
                together = job_bytes(series, occupancy, uses[mixed]).shared
                collector.totals.shared_bytes[:, places[mixed]] += together
        collector.totals.shared[places[mixed]] = True


def _server_counters(
    source: CounterSource,
    server: str,
    batch: pl.DataFrame,
    settings: MetricSettings,
    own_servers: Sequence[str],
) -> Series:
    """Return a server's counters, without what it counts per job."""
    series = server_series(_counters(source, server, batch), settings)
    if server not in own_servers:
        return series
    return without_counted(series, _counters(source, server, batch, per_job=True))


def without_own(
    source: CounterSource, jobs: pl.DataFrame, settings: MetricSettings
) -> pl.DataFrame:
    """Leave out runs that servers count per job: they have no part of the servers' own counters."""
    named = jobs.select(pl.col("servers").explode().unique()).to_series()
    own_servers = source.per_job_servers()
    if not own_servers or set(named).isdisjoint(source.servers()):
        return jobs
    numbered = jobs.with_columns(row=pl.col("number"))
    apart = [
        samples_of_runs(
            source.counters(server, start_us=EARLIEST, end_us=LATEST, per_job=True),
            numbered,
            settings,
        )["stretch"].unique()
        for server in own_servers
    ]
    return jobs.filter(~pl.col("number").is_in(pl.concat(apart).cast(pl.UInt32).implode()))
