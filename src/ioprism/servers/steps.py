"""The order of the steps of `ioprism servers`: from a store to jobs, and to the whole machine.

`raw_files.ingest` fills the store. Everything after it is stated here: which jobs to look at, the
metrics of each job, and for a report the load of the servers and what follows from both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.formats.text import zone_of
from ioprism.model.counters import EARLIEST, JOBS, LATEST, SECOND, ReadingOptions, Tally
from ioprism.model.trace import Progress
from ioprism.reports.figures import COLUMN_WIDTH, StaticFigure, draw_figure, require_matplotlib
from ioprism.servers.attribution import derive_jobs
from ioprism.servers.fleet import (
    Contact,
    Fleet,
    Profile,
    Trend,
    contacts,
    monthly_trend,
    summarise_fleet,
    weekly_profile,
)
from ioprism.servers.formats.records import map_servers, read_server_map
from ioprism.servers.interference import Disturbance, interference
from ioprism.servers.job_metrics import JobMetrics, job_metrics
from ioprism.servers.load import MachineLoad, machine_load
from ioprism.servers.raw_files import read_jobs
from ioprism.servers.series import THRESHOLDS, Grid, MetricSettings, Reset, Sharing, Window
from ioprism.servers.store import CounterStore, open_store, sampling_interval
from ioprism.units import HOUR

MAX_THRESHOLDS = 16  # memory grows with them: 8 bytes for each window of each job


@dataclass(frozen=True, slots=True)
class Question:
    """Which jobs to look at, and how to measure them."""

    jobs: Path | str | None = None  # a list of jobs; None: the store's, else those of the counters
    server_map: Path | str | None = None  # CSV `node,server`
    timezone: str = "UTC"  # of local times without a zone, and of the profile by hour
    min_runtime: float = HOUR
    thresholds: tuple[int, ...] = THRESHOLDS
    grid: Grid = "job"
    window: Window = "clip"
    reset: Reset = "auto"
    shared: Sharing = "split"
    interval: float | None = None  # seconds; None: taken from the counters

    def settings(self, store: CounterStore) -> MetricSettings:
        """Return the settings of the method, with the sampling interval of the store."""
        if len(self.thresholds) > MAX_THRESHOLDS:
            raise UsageError(
                f"{len(self.thresholds)} thresholds are too many.\n"
                f"Hint: give at most {MAX_THRESHOLDS}."
            )
        given = self.interval
        return MetricSettings(
            sampling_interval(store) if given is None else round(given * SECOND),
            *(self.thresholds, self.grid, self.window, self.reset, self.shared, self.min_runtime),
        )


@dataclass(frozen=True, slots=True)
class MachineReport:
    """Every number of the machine-wide report."""

    metrics: JobMetrics
    load: MachineLoad
    fleet: Fleet
    profile: Profile
    trend: Trend
    interference: tuple[Disturbance, ...]
    contacts: tuple[Contact, ...]
    warnings: tuple[str, ...]


def jobs(
    store: str | Path,
    *,
    progress: Progress = lambda _: None,
    **question: Any,  # noqa: ANN401 - as `Question` has them
) -> JobMetrics:
    """Return what every job did to the file system; settings are the fields of `Question`.

    Raises:
        NotEnoughDetailError: no jobs are known, or none ran long enough.
    """
    return _measure_jobs(open_store(Path(store)), Question(**question), progress)[0]


def _measure_jobs(
    source: CounterStore, asked: Question, progress: Progress
) -> tuple[JobMetrics, pl.DataFrame]:
    """Return the metrics, and the jobs that were asked for, however short."""
    table, notes = _choose_jobs(source, asked)
    metrics = job_metrics(source, table, settings=asked.settings(source), progress=progress)
    return replace(metrics, warnings=(*notes, *metrics.warnings)), table


def report(
    store: str | Path,
    *,
    progress: Progress = lambda _: None,
    **question: Any,  # noqa: ANN401 - as `Question` has them
) -> MachineReport:
    """Return the whole machine; settings are the fields of `Question`.

    Raises:
        NotEnoughDetailError: no jobs are known, or none ran long enough.
    """
    asked, source = Question(**question), open_store(Path(store))
    zone_of(asked.timezone)
    metrics, table = _measure_jobs(source, asked, progress)
    load = machine_load(source, table, settings=metrics.settings)
    disturbances = interference(source, load, settings=metrics.settings)
    return MachineReport(
        metrics=metrics,
        load=load,
        fleet=summarise_fleet(metrics, load),
        profile=weekly_profile(load, asked.timezone),
        trend=monthly_trend(load, asked.timezone),
        interference=disturbances,
        contacts=contacts(metrics, disturbances),
        warnings=metrics.warnings,
    )


def figure(
    machine: MachineReport,
    name: str,
    *,
    width: float = COLUMN_WIDTH,
    peak_read: float | None = None,
    peak_write: float | None = None,
) -> StaticFigure:
    """Draw a figure of a machine for a paper; the names are those of `--figure`.

    Args:
        machine: what `report` returns.
        name: one of load, servers, bandwidth-cdf, volume-cdf, intensity-cdf, burstiness-cdf,
            parallel-intensity-cdf, jobs.
        width: in inches; by default one column.
        peak_read: of the file system, in bytes per second.
        peak_write: likewise.

    Raises:
        UsageError: there is no such figure.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the report lacks what the figure shows.
    """
    require_matplotlib()
    from ioprism.servers.figures import DrawnMachine

    drawn = DrawnMachine(machine, {"read": peak_read, "write": peak_write})
    return draw_figure("servers report", name, drawn, width=width)


def _choose_jobs(source: CounterStore, question: Question) -> tuple[pl.DataFrame, list[str]]:
    """Return the jobs to look at: those of the file given, else the store's, else the counters'.

    Raises:
        NotEnoughDetailError: no jobs are known.
    """
    tally = Tally()
    if question.jobs is not None:
        table = read_jobs(Path(question.jobs), ReadingOptions(timezone=question.timezone), tally)
    else:
        table = source.jobs()
        if not table.height:
            table = _jobs_of_counters(source)
    if not table.height:
        raise NotEnoughDetailError(
            needed="a list of jobs",
            has=f"none ({'; '.join(tally.warnings()) or 'nothing was given'})",
            source="the store",
            hint="use --jobs FILE (sacct, PBS, LSF, LoadLeveler or CSV), or ingest such a file.",
        )
    if question.server_map is not None:
        table = map_servers(table, read_server_map(Path(question.server_map)))
    return table, [f"{question.jobs}: {warning}" for warning in tally.warnings()]


def _jobs_of_counters(source: CounterStore) -> pl.DataFrame:
    servers = source.per_job_servers()
    if not servers:
        return JOBS.empty()
    step = sampling_interval(source)
    tables = [
        derive_jobs(source.counters(server, start_us=EARLIEST, end_us=LATEST, per_job=True), step)
        for server in servers
    ]
    whole = pl.concat(tables).group_by("job").agg(pl.col("start_us").min(), pl.col("end_us").max())
    lasting = whole.filter(pl.col("end_us") > pl.col("start_us"))
    return JOBS.conform(lasting).with_columns(pl.col("servers").fill_null([]))
