"""What the commands of ``ioprism servers`` share: options, the jobs to look at, the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click
import polars as pl
from rich.console import Console

from ioprism.analyses.job_metrics.fleet import Fleet
from ioprism.analyses.job_metrics.interval import sampling_interval_us
from ioprism.analyses.job_metrics.load import server_load
from ioprism.analyses.job_metrics.own_counters import derived_jobs
from ioprism.analyses.job_metrics.result import JobMetrics
from ioprism.analyses.job_metrics.settings import GRIDS, RESETS, WINDOWS, MetricSettings
from ioprism.cli.options import Decorator
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.formats.jobs.registry import read_jobs
from ioprism.formats.jobs.server_map import read_server_map, through_map
from ioprism.model.counters import COUNTERS, EARLIEST, JOBS, LATEST, SECOND, ReadingOptions, Tally
from ioprism.reports import to_terminal
from ioprism.reports.to_html.servers import page as render
from ioprism.storage.atomic import atomic_write
from ioprism.storage.counter_store import CounterStore, read_table
from ioprism.units import parse_bytes

SERVERS_ASKED = 40  # for the sampling interval
MONTHS_ASKED = 3
SAMPLES_ASKED = 2_000

store_option: Decorator = click.option(
    "--store", required=True, type=click.Path(path_type=Path), help="The folder of the store."
)


def _stacked(*decorators: Decorator) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


_timezone: Decorator = click.option(
    "--timezone", default="UTC", show_default=True, help="Of local times without a zone."
)
source_options: Decorator = _stacked(
    click.option("--time", type=float, help="When a scrape without time stamps was taken."),
    _timezone,
)
metric_options: Decorator = _stacked(
    click.option(
        "--jobs", "job_file", type=click.Path(path_type=Path), help="sacct, PBS records or CSV."
    ),
    click.option(
        "--server-map", type=click.Path(path_type=Path), help="CSV `node,server` of I/O servers."
    ),
    _timezone,
    click.option("--min-runtime", default=3600.0, show_default=True, help="Seconds."),
    click.option(
        "--thresholds",
        default="0,131072,1048576",
        show_default=True,
        help="Bytes per sampling interval above which a server counts as active.",
    ),
    click.option("--grid", type=click.Choice(GRIDS), default="job", show_default=True),
    click.option("--window", type=click.Choice(WINDOWS), default="clip", show_default=True),
    click.option("--reset", type=click.Choice(RESETS), default="auto", show_default=True),
    click.option("--interval", type=click.FloatRange(1.0, 86_400.0), help="Seconds, if not 1 Δt."),
)


def reading_options(time: float | None, timezone: str) -> ReadingOptions:
    """Return what files cannot tell by themselves.

    Raises:
        UsageError: the time is none.
    """
    if time is None:
        return ReadingOptions(timezone=timezone)
    time_us = round(time * SECOND) if abs(time) < 1e12 else LATEST + 1
    if not EARLIEST <= time_us <= LATEST:
        raise UsageError(f"--time {time} is no time.\nHint: give seconds since 1970.")
    return ReadingOptions(time_us, timezone)


def metric_settings(source: CounterStore, method: Mapping[str, object]) -> MetricSettings:
    """Return the settings of the method, with the sampling interval of the store."""
    given = method.get("interval")
    interval = round(cast("float", given) * SECOND) if given else _interval_us(source)
    defaults = MetricSettings(interval)
    if not method:
        return defaults
    return MetricSettings(
        interval_us=interval,
        thresholds=_thresholds(str(method["thresholds"])),
        grid=cast("Any", method["grid"]),
        window=cast("Any", method["window"]),
        reset=cast("Any", method["reset"]),
        min_runtime=cast("float", method["min_runtime"]),
    )


def _thresholds(text: str) -> tuple[int, ...]:
    values = tuple(dict.fromkeys(parse_bytes(word) for word in text.split(",")))
    if len(values) > 16:
        raise UsageError(f"{len(values)} thresholds are too many.\nHint: give at most 16.")
    return values


def _interval_us(source: CounterStore) -> int:
    """Ask some servers, spread over all of them."""
    names = source.servers()
    tables: list[pl.DataFrame] = []
    chosen = names[:: max(1, len(names) // SERVERS_ASKED)]
    for per_job in (False, True):
        tables = [_first_samples(source, name, per_job=per_job) for name in chosen]
        if any(table.height > 1 for table in tables):
            break
    return sampling_interval_us(tables)


def _first_samples(source: CounterStore, server: str, *, per_job: bool) -> pl.DataFrame:
    """Return the beginning of some months: the first may hold a single sample."""
    files = [path for _, path in source.months(server, per_job=per_job)[:MONTHS_ASKED]]
    tables = [read_table(path).head(SAMPLES_ASKED) for path in files]
    return pl.concat([COUNTERS.empty(), *tables])


def chosen_jobs(
    source: CounterStore, method: Mapping[str, object]
) -> tuple[pl.DataFrame, Sequence[str]]:
    """Return the jobs to look at: those of the file given, else the store's, else the counters'.

    Raises:
        NotEnoughDetailError: nobody says which jobs ran.
    """
    tally = Tally()
    job_file = cast("Path | None", method["job_file"])
    if job_file is not None:
        jobs = read_jobs(job_file, ReadingOptions(timezone=str(method["timezone"])), tally)
    else:
        jobs = source.jobs()
        if not jobs.height:
            jobs = _jobs_of_counters(source)
    if not jobs.height:
        raise NotEnoughDetailError(
            needed="a list of jobs",
            has=f"none in the store ({'; '.join(tally.warnings()) or 'nothing was given'})",
            hint="say --jobs FILE (sacct --parsable2, PBS records or CSV), or ingest such a file.",
        )
    server_map = cast("Path | None", method["server_map"])
    if server_map is not None:
        jobs = through_map(jobs, read_server_map(server_map))
    return jobs, tally.warnings()


def _jobs_of_counters(source: CounterStore) -> pl.DataFrame:
    found = [
        derived_jobs(source.counters(server, start_us=EARLIEST, end_us=LATEST, per_job=True))
        for server in source.per_job_servers()
    ]
    if not found:
        return JOBS.empty()
    whole = pl.concat(found).group_by("job").agg(pl.col("start_us").min(), pl.col("end_us").max())
    lasting = whole.filter(pl.col("end_us") > pl.col("start_us"))
    return JOBS.conform(lasting).with_columns(pl.col("servers").fill_null([]))


def write_page(
    page: Path,
    source: CounterStore,
    metrics: JobMetrics,
    found: Fleet,
    *,
    peaks: Mapping[str, str | None],
    warnings: Sequence[str],
    replace: bool,
) -> None:
    """Write the self-contained page; it takes its place only when it is whole."""
    load = server_load(
        source, start_us=found.start_us, end_us=found.end_us, settings=metrics.settings
    )
    given = {name: None if text is None else parse_bytes(text) for name, text in peaks.items()}
    text = render(metrics, load, peaks=given, warnings=warnings)
    with atomic_write(page, replace=replace) as aside:
        aside.write_text(text, encoding="utf-8")


def show_warnings(messages: Sequence[str]) -> None:
    """Print what is missing from the answer on standard error."""
    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, messages)
