"""What `ioprism servers` does: raw files to a store, a store to jobs, and to the whole machine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.formats.local_time import zone_of
from ioprism.model.counters import COUNTERS, EARLIEST, JOBS, LATEST, SECOND, ReadingOptions, Tally
from ioprism.model.trace import Progress
from ioprism.servers.compute import job_metrics
from ioprism.servers.contacts import Contact, contacts
from ioprism.servers.counter_formats.registry import read_jobs
from ioprism.servers.disturbance import Disturbance
from ioprism.servers.fleet import Fleet, fleet
from ioprism.servers.ingest import Outcome
from ioprism.servers.ingest import ingest as bring_in
from ioprism.servers.interference import interference
from ioprism.servers.interval import sampling_interval_us
from ioprism.servers.job_formats.server_map import read_server_map, through_map
from ioprism.servers.load import MachineLoad, machine_load
from ioprism.servers.own_counters import derived_jobs
from ioprism.servers.profile import Profile, Trend, profile, trend
from ioprism.servers.result import JobMetrics
from ioprism.servers.settings import (
    THRESHOLDS,
    Grid,
    MetricSettings,
    Reset,
    Sharing,
    Window,
)
from ioprism.servers.simulated_files import write_simulation
from ioprism.servers.simulated_load import SimulationSettings
from ioprism.servers.simulated_load import simulate as make
from ioprism.servers.store import CounterStore, open_store, read_table
from ioprism.servers.validate import Validation
from ioprism.servers.validate import validate as compare

SERVERS_ASKED = 40  # for the sampling interval
MONTHS_ASKED = 3
SAMPLES_ASKED = 2_000
MOST_THRESHOLDS = 16


@dataclass(frozen=True, slots=True)
class Question:
    """Which jobs to look at, and how to measure them."""

    jobs: Path | str | None = None  # a list of jobs; None: the store's, else those of the counters
    server_map: Path | str | None = None  # CSV `node,server`
    timezone: str = "UTC"  # of local times without a zone, and of the profile by hour
    min_runtime: float = 3600.0
    thresholds: tuple[int, ...] = THRESHOLDS
    grid: Grid = "job"
    window: Window = "clip"
    reset: Reset = "auto"
    shared: Sharing = "split"
    interval: float | None = None  # seconds; None: read off the counters


USUAL = Question()


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


def ingest(
    sources: Sequence[Path],
    store: Path,
    *,
    time: float | None = None,
    timezone: str = "UTC",
    progress: Progress = lambda _: None,
) -> list[Outcome]:
    """Bring raw counters and job lists into a store; what is there already is skipped.

    Args:
        sources: files and folders.
        store: the folder of the store, made if need be.
        time: when a scrape without time stamps was taken, in seconds since 1970.
        timezone: of local times without a zone.
        progress: hears how many records were read.
    """
    options = ReadingOptions(None if time is None else _moment(time), timezone)
    return bring_in(sources, store, options=options, progress=progress)


def _moment(time: float) -> int:
    time_us = round(time * SECOND) if abs(time) < 1e12 else LATEST + 1
    if not EARLIEST <= time_us <= LATEST:
        raise UsageError(f"--time {time} is not a time.\nHint: give seconds since 1970.")
    return time_us


def jobs(
    store: Path, question: Question = USUAL, *, progress: Progress = lambda _: None
) -> JobMetrics:
    """Return what every job did to the file system.

    Raises:
        NotEnoughDetailError: nobody says which jobs ran, or none ran long enough.
    """
    source = open_store(store)
    table, notes = _chosen_jobs(source, question)
    metrics = job_metrics(source, table, settings=_settings(source, question), progress=progress)
    return replace(metrics, warnings=(*notes, *metrics.warnings))


def report(
    store: Path, question: Question = USUAL, *, progress: Progress = lambda _: None
) -> MachineReport:
    """Return the whole machine: its jobs, its servers, and what administrators ask."""
    source = open_store(store)
    table, notes = _chosen_jobs(source, question)
    zone_of(question.timezone)
    settings = _settings(source, question)
    metrics = job_metrics(source, table, settings=settings, progress=progress)
    load = machine_load(source, table, settings=settings)
    disturbances = interference(source, load, settings=settings)
    return MachineReport(
        metrics=metrics,
        load=load,
        fleet=fleet(metrics, load),
        profile=profile(load, question.timezone),
        trend=trend(load, question.timezone),
        interference=disturbances,
        contacts=contacts(metrics, disturbances),
        warnings=(*notes, *metrics.warnings),
    )


def simulate(
    settings: SimulationSettings, folder: Path, *, format_name: str = "mmpmon", force: bool = False
) -> tuple[list[Path], int]:
    """Write raw files of a machine whose jobs are known; return them and the number of jobs.

    Raises:
        UsageError: no job fits into the time.
    """
    made = make(settings)
    if not made.jobs.height:
        raise UsageError("no job fits into such a short time.\nHint: raise --days.")
    return write_simulation(made, folder, format_name=format_name, replace=force), made.jobs.height


def validate(
    *, servers: int = 16, days: float = 4.0, seed: int = 1, progress: Progress = lambda _: None
) -> Validation:
    """Run the whole chain on a simulated load and compare with what is known of it."""
    made = make(SimulationSettings(servers=servers, days=days, seed=seed))
    with tempfile.TemporaryDirectory() as place:
        raw, store = Path(place) / "raw", Path(place) / "store"
        write_simulation(made, raw)
        ingest([raw / "counters", raw / "jobs.sacct"], store)
        measured = jobs(store, progress=progress)
        native = jobs(store, Question(grid="native"))
    return compare(measured, made, native)


def _settings(source: CounterStore, question: Question) -> MetricSettings:
    """Return the settings of the method, with the sampling interval of the store."""
    if len(question.thresholds) > MOST_THRESHOLDS:
        raise UsageError(
            f"{len(question.thresholds)} thresholds are too many.\n"
            f"Hint: give at most {MOST_THRESHOLDS}."
        )
    given = question.interval
    return MetricSettings(
        interval_us=interval_us(source) if given is None else round(given * SECOND),
        thresholds=question.thresholds,
        grid=question.grid,
        window=question.window,
        reset=question.reset,
        shared=question.shared,
        min_runtime=question.min_runtime,
    )


def interval_us(source: CounterStore) -> int:
    """Return how often a store's servers were sampled: ask some, spread over all of them."""
    names = source.servers()
    chosen = names[:: max(1, len(names) // SERVERS_ASKED)]
    tables = [_first_samples(source, name, per_job=False) for name in chosen]
    if any(table.height > 1 for table in tables):
        return sampling_interval_us(tables)
    own = [_first_samples(source, name, per_job=True) for name in chosen]
    return sampling_interval_us(own, per_job=True)


def _first_samples(source: CounterStore, server: str, *, per_job: bool) -> pl.DataFrame:
    """Return the beginning of some months: the first may hold a single sample."""
    files = [path for _, path in source.months(server, per_job=per_job)[:MONTHS_ASKED]]
    tables = [read_table(path).head(SAMPLES_ASKED) for path in files]
    return pl.concat([COUNTERS.empty(), *tables])


def _chosen_jobs(source: CounterStore, question: Question) -> tuple[pl.DataFrame, list[str]]:
    """Return the jobs to look at: those of the file given, else the store's, else the counters'.

    Raises:
        NotEnoughDetailError: nobody says which jobs ran.
    """
    tally = Tally()
    if question.jobs is not None:
        found = read_jobs(Path(question.jobs), ReadingOptions(timezone=question.timezone), tally)
    else:
        found = source.jobs()
        if not found.height:
            found = _jobs_of_counters(source)
    if not found.height:
        raise NotEnoughDetailError(
            needed="a list of jobs",
            has=f"none ({'; '.join(tally.warnings()) or 'nothing was given'})",
            source="the store",
            hint="use --jobs FILE (sacct, PBS, LSF, LoadLeveler or CSV), or ingest such a file.",
        )
    if question.server_map is not None:
        found = through_map(found, read_server_map(Path(question.server_map)))
    return found, [f"{question.jobs}: {warning}" for warning in tally.warnings()]


def _jobs_of_counters(source: CounterStore) -> pl.DataFrame:
    servers = source.per_job_servers()
    if not servers:
        return JOBS.empty()
    step = interval_us(source)
    tables = [
        derived_jobs(source.counters(server, start_us=EARLIEST, end_us=LATEST, per_job=True), step)
        for server in servers
    ]
    whole = pl.concat(tables).group_by("job").agg(pl.col("start_us").min(), pl.col("end_us").max())
    lasting = whole.filter(pl.col("end_us") > pl.col("start_us"))
    return JOBS.conform(lasting).with_columns(pl.col("servers").fill_null([]))
