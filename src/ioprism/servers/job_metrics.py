"""All metrics of all jobs, in batches that keep memory bounded however long the record is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from ioprism.model.trace import Progress
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
from ioprism.servers.limits import NEGLIGIBLE, ROWS_IN_MEMORY
from ioprism.servers.series import LONGEST_STEP, Floats, MetricSettings, Series, server_series
from ioprism.units import format_counted

MIN_WINDOWS = 2  # fewer have no runs to compare
FACTS = ("job", "start_us", "end_us", "user", "account", "partition", "name", "state")
FLAGS = ("shared", "gap", "reset", "missing")
# How a job's bytes are known: its servers served no other job, or counted them per job, or what
# they moved for several jobs was split by nodes, or not attributed; or counters are missing.
ATTRIBUTIONS = ("exclusive", "measured", "split", "marked", "unknown")
MEASURES = ("intensity", "burstiness", "parallel_intensity")


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


def _metric_table(
    jobs: pl.DataFrame,
    activity: Activity,
    totals: JobTotals,
    servers: NDArray[np.int64],
    own: NDArray[np.bool_],
    settings: MetricSettings,
) -> pl.DataFrame:
    """Return one row per job: facts, flags, totals, then each direction's metrics.

    `servers` are how many each job could use, |S|; `own` says whether they count the job
    separately, so that no other job disturbs it.
    """
    coverage = np.where(own, np.nan, totals.coverage(servers))
    split = "split" if settings.shared == "split" else "marked"
    by_servers = np.where(totals.shared, split, "exclusive")
    seen = np.where(totals.servers_seen > 0, by_servers, "unknown")
    attribution = np.where(own, "measured", seen)
    known = activity.known > 0
    job, weights = activity.job[known], activity.weights[known]
    known_time = _sums(job, weights, jobs.height)
    every = _sums(activity.job, activity.weights, jobs.height)
    columns: dict[str, NDArray[Any]] = {
        "servers": servers,
        "coverage": coverage,
        "attribution": attribution,
        "shared": totals.shared & ~own,
        "gap": (coverage < 1 - NEGLIGIBLE) & ~np.isin(attribution, ("measured", "marked")),
        "reset": totals.resets,
        "missing": (totals.servers_seen < servers) & ~own,
        "opens": _growth(totals, "oc"),
        "closes": _growth(totals, "cc"),
        "unknown": (every - known_time) * settings.interval_us / SECOND,
    }
    windows = (jobs["end_us"] - jobs["start_us"]).to_numpy() / settings.interval_us
    total = known_time
    if settings.grid == "job" and settings.window == "literal":
        total = np.where(total > 0, windows, 0.0)
    few = np.ceil(windows) < MIN_WINDOWS
    joins = _joins(activity.job, known)
    rates = {
        "max_bandwidth": activity.bandwidth,
        "max_server_bandwidth": activity.server_bandwidth,
        "max_operation_rate": activity.operation_rate,
    }
    highest = {name: _highest(rate, activity.job, jobs.height) for name, rate in rates.items()}
    for number, direction in enumerate(DIRECTIONS):
        amounts = {
            "bytes": _growth(totals, BYTES[direction]),
            "shared_bytes": totals.shared_bytes[number],
            "operations": _growth(totals, OPERATIONS[direction]),
            **{name: values[number] for name, values in highest.items()},
            "boundary_bytes": totals.boundary_bytes[number],
        }
        columns |= {f"{direction}_{name}": values for name, values in amounts.items()}
        for place, threshold in enumerate(settings.thresholds):
            active = activity.active[number, place][known]
            intensity, burstiness, parallel, busy = _measures_of_threshold(
                active, job, weights, joins, total, servers
            )
            burstiness[few] = np.nan
            measures = (intensity, burstiness, parallel, busy > 0)
            for name, values in zip((*MEASURES, "has_io"), measures, strict=True):
                columns[metric_column(direction, name, threshold)] = values
    metrics = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    return pl.concat([jobs.select(FACTS), metrics], how="horizontal")


def _growth(totals: JobTotals, counter: str) -> NDArray[np.float64]:
    """Return a counter's growth, NaN for jobs none of whose servers counts it."""
    row = VALUES.index(counter)
    return np.where(totals.counted[row], totals.counters[row], np.nan)


MAX_WINDOWS = 5_000_000  # of one job; a job with more has a damaged end


def job_metrics(
    source: CounterSource,
    jobs: pl.DataFrame,
    *,
    settings: MetricSettings,
    progress: Progress = lambda _: None,
) -> JobMetrics:
    """Return the metrics of every job that ran long enough.

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
    width = pl.col("servers").list.len().clip(1) if settings.grid == "native" else pl.lit(1)
    numbers = jobs.select((pl.col("windows") * width).cum_sum() // ROWS_IN_MEMORY).to_series()
    for _, batch in jobs.group_by(numbers.alias("batch"), maintain_order=True):
        yield batch.with_row_index("row")


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
    totals = JobTotals(starts, ends)

    def add(series: Series, placed: Placed, *, always_known: bool = False) -> None:
        """Add a server's counters for some jobs; counters by job have no gaps."""
        activity.add(series, placed, always_known=always_known)
        totals.add(series, placed)

    own, data_servers = np.zeros(batch.height, dtype=bool), 0
    for server in own_servers:
        samples = _counters(source, server, batch, per_job=True)
        data_servers += samples["br"].null_count() < samples.height
        series, placed = own_counters(samples, batch, settings)
        add(series, placed, always_known=True)
        own[placed.jobs] = True
    for server, jobs in _uses(batch.filter(pl.Series(~own))):
        occupancy = occupied.get(server)
        if occupancy is None:
            continue
        numbers = jobs["number"].to_numpy().astype(np.intp)
        there = np.isin(numbers, occupancy.jobs)
        series = server_series(_counters(source, server, batch), settings)
        if server in own_servers:
            series = without_counted(series, _counters(source, server, batch, per_job=True))
        uses = np.searchsorted(occupancy.jobs, numbers[there])
        places = jobs["row"].to_numpy().astype(np.intp)[there]
        mixed = occupancy.is_shared(uses)
        add(series, Placed(places[~mixed], np.zeros((~mixed).sum(), dtype=np.int64)))
        if mixed.any() and not series.empty:
            part, shifts = split_series(series, occupancy, uses[mixed], settings)
            add(part, Placed(places[mixed], shifts))
            if settings.shared == "split":
                _, together = job_bytes(series, occupancy, uses[mixed])
                totals.shared_bytes[:, places[mixed]] += together
        totals.shared[places[mixed]] = True
    named = batch["servers"].list.n_unique().to_numpy().astype(np.int64)
    servers = np.where(own & (named == 0), max(data_servers, 1), named)
    return _metric_table(batch, activity.result(), totals, servers, own, settings)


def _uses(jobs: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield every server that jobs name, with its jobs."""
    rows = jobs.select("number", "row", server="servers").explode("server")
    by_server = rows.drop_nulls().unique().sort("server", "number")
    for (server,), table in by_server.partition_by("server", as_dict=True).items():
        yield str(server), table


def _counters(
    source: CounterSource, server: str, batch: pl.DataFrame, *, per_job: bool = False
) -> pl.DataFrame:
    """Return a server's samples during a batch, and those around it."""
    first, last = batch["start_us"].to_numpy().min(), batch["end_us"].to_numpy().max()
    return source.counters(
        server, start_us=int(first) - LONGEST_STEP, end_us=int(last) + LONGEST_STEP, per_job=per_job
    )


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
