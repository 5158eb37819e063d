"""``ioprism servers``: what the file-system servers' counters say of jobs and of the machine."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import click

from ioprism.analyses.job_metrics.compute import job_metrics
from ioprism.analyses.job_metrics.fleet import fleet
from ioprism.analyses.job_metrics.validate import validate as compare
from ioprism.cli import options, output
from ioprism.cli.server_options import (
    chosen_jobs,
    metric_options,
    metric_settings,
    reading_options,
    show_warnings,
    source_options,
    store_option,
    write_page,
)
from ioprism.errors import UsageError
from ioprism.formats.tables.export import write_table
from ioprism.model.counters import ReadingOptions
from ioprism.pipeline.ingest import ingest as bring_in
from ioprism.reports.to_json import servers as json_form
from ioprism.reports.to_terminal import servers as terminal_form
from ioprism.storage.counter_store import open_store
from ioprism.synthetic.server_load import SimulationSettings
from ioprism.synthetic.server_load import simulate as make
from ioprism.synthetic.server_load_files import WRITERS, write_simulation


@click.group()
def servers() -> None:
    """Characterise a machine from its file-system servers' counters.

    First `ingest` raw counters and job lists into a store, as often as new ones come; then ask
    for `jobs` or for the whole machine in one `report`.

    Example: ioprism servers ingest mmpmon/ sacct.txt --store machine.store
    """


@servers.command()
@click.argument("paths", metavar="RAW...", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
@source_options
@options.as_json
@options.quiet
def ingest(
    paths: tuple[Path, ...],
    store: Path,
    time: float | None,
    timezone: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Bring raw counters and job lists into a store.

    Files may come in any order and again: each record is kept once. Counters: mmpmon, Lustre
    stats and job_stats, Prometheus text, LMT (SQLite), TOKIO (HDF5), CSV. Jobs: sacct, PBS, CSV.

    Example: ioprism servers ingest mmpmon/ sacct.txt --store machine.store
    """
    with output.progress("reading records", quiet=quiet) as progress:
        outcomes = bring_in(
            paths, store, options=reading_options(time, timezone), progress=progress
        )
    warnings = [
        f"{outcome.path.name}: {warning}" for outcome in outcomes for warning in outcome.warnings
    ]
    if as_json:
        click.echo(json_form.document(paths, warnings, json_form.ingested(outcomes)))
    elif not quiet:
        terminal_form.show_ingested(outcomes, output.console())


@servers.command()
@store_option
@metric_options
@click.option(
    "--export", type=click.Path(path_type=Path), help="Also write OUT.csv or OUT.parquet."
)
@click.option("--force", is_flag=True, help="Replace the exported file if it exists.")
@options.as_json
@options.quiet
def jobs(
    store: Path, export: Path | None, force: bool, as_json: bool, quiet: bool, **method: object
) -> None:
    """Tell what every job did to the file system.

    Example: ioprism servers jobs --store machine.store --jobs sacct.txt --min-runtime 600
    """
    source = open_store(store)
    table, notes = chosen_jobs(source, method)
    settings = metric_settings(source, method)
    with output.progress("measuring jobs", quiet=quiet) as progress:
        metrics = job_metrics(source, table, settings=settings, progress=progress)
    if export is not None:
        write_table(metrics.table, export, replace=force)
    warnings = [*notes, *metrics.warnings]
    if as_json:
        click.echo(json_form.document([store], warnings, json_form.jobs(metrics)))
    else:
        terminal_form.show_jobs(metrics, output.console())
        show_warnings(warnings)


@servers.command()
@store_option
@metric_options
@click.option("-o", "--output", "page", type=click.Path(path_type=Path), help="The page to write.")
@click.option("--peak-read", metavar="SIZE", help="The file system's peak, per second: 66GB.")
@click.option("--peak-write", metavar="SIZE", help="The same for writing.")
@click.option(
    "--export", type=click.Path(path_type=Path), help="Also write OUT.csv or OUT.parquet."
)
@click.option("--force", is_flag=True, help="Replace the page or the export if it exists.")
@options.as_json
@options.quiet
def report(
    store: Path,
    page: Path | None,
    peak_read: str | None,
    peak_write: str | None,
    export: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **method: object,
) -> None:
    """Show the whole machine: a summary here, and one self-contained page with -o.

    Example: ioprism servers report --store machine.store -o machine.html
    """
    source = open_store(store)
    table, notes = chosen_jobs(source, method)
    settings = metric_settings(source, method)
    with output.progress("measuring jobs", quiet=quiet) as progress:
        metrics = job_metrics(source, table, settings=settings, progress=progress)
    found = fleet(metrics)
    warnings = [*notes, *metrics.warnings]
    if export is not None:
        write_table(metrics.table, export, replace=force)
    if page is not None:
        peaks = {"read": peak_read, "write": peak_write}
        write_page(page, source, metrics, found, peaks=peaks, warnings=warnings, replace=force)
    if as_json:
        click.echo(json_form.document([store], warnings, json_form.machine(found, metrics)))
    else:
        terminal_form.show_machine(found, metrics, output.console())
        show_warnings(warnings)
        if page is not None and not quiet:
            click.echo(f"wrote {page}", err=True)


@servers.command()
@click.argument("folder", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--servers", "count", default=16, show_default=True, type=click.IntRange(1, 2000))
@click.option("--days", default=2.0, show_default=True, type=click.FloatRange(0.1, 800.0))
@click.option("--interval", default=120.0, show_default=True, type=click.FloatRange(1.0, 86_400.0))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--format", "format_name", default="mmpmon", show_default=True,
              type=click.Choice(sorted(WRITERS)), help="The form of the counters.")  # fmt: skip
@click.option("--faults", is_flag=True, help="Lose some samples and reset some counters.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@options.quiet
def simulate(
    folder: Path,
    count: int,
    days: float,
    interval: float,
    seed: int,
    format_name: str,
    faults: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Make raw files of a machine whose jobs are known: counters, jobs and the truth.

    Example: ioprism servers simulate demo-machine --servers 16 --days 2
    """
    made = make(SimulationSettings(count, days, interval, seed, faults))
    if not made.jobs.height:
        raise UsageError("no job fits into so short a time.\nHint: raise --days.")
    files = write_simulation(made, folder, format_name=format_name, replace=force)
    if not quiet:
        click.echo(f"wrote {len(files)} files to {folder}: {made.jobs.height} jobs", err=True)


@servers.command()
@click.option("--servers", "count", default=16, show_default=True, type=click.IntRange(1, 2000))
@click.option("--days", default=4.0, show_default=True, type=click.FloatRange(0.5, 800.0))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@options.as_json
@options.quiet
def validate(count: int, days: float, seed: int, as_json: bool, quiet: bool) -> None:
    """Run the whole chain on a simulated load and compare with what is known of it.

    Exit code 1 means that a number is not where its known bias puts it.

    Example: ioprism servers validate --servers 32 --days 7
    """
    made = make(SimulationSettings(servers=count, days=days, seed=seed))
    with (
        tempfile.TemporaryDirectory() as place,
        output.progress("measuring jobs", quiet=quiet) as progress,
    ):
        raw, store = Path(place) / "raw", Path(place) / "store"
        write_simulation(made, raw)
        bring_in([raw / "counters", raw / "jobs.sacct"], store, options=ReadingOptions())
        source = open_store(store)
        settings = metric_settings(source, {})
        metrics = job_metrics(source, source.jobs(), settings=settings, progress=progress)
        native = job_metrics(source, source.jobs(), settings=replace(settings, grid="native"))
    found = compare(metrics, made, native)
    if as_json:
        click.echo(json_form.document([], [], json_form.validation(found)))
    else:
        terminal_form.show_validation(found, output.console())
    click.get_current_context().exit(0 if found.passed else 1)
