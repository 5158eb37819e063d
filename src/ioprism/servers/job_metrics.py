"""All metrics of all jobs, in batches that keep memory bounded however long the record is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ioprism.errors import NotEnoughDetailError
from ioprism.model.counters import EARLIEST, LATEST, SECOND, CounterSource
from ioprism.servers.activity import NativeActivity, Placed, WindowActivity, lay_out
from ioprism.servers.attribution import (
    Occupancy,
    job_bytes,
    occupancies,
    own_counters,
    samples_of_runs,
    split_series,
    without_counted,
)
from ioprism.servers.measures import JobMetrics, JobTotals, measure, metric_columns
from ioprism.servers.series import LONGEST_STEP, MetricSettings, Series, server_series
from ioprism.units import format_counted

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
