"""``ioprism servers``: what the file-system servers' counters say of jobs and of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.figure_options import FigureRequest, page_or_figure
from ioprism.command.options import PATH, Number, NumberRange, option
from ioprism.formats.tables.export import write_table
from ioprism.servers import benchmark
from ioprism.servers import documents as json_form
from ioprism.servers import steps as pipeline
from ioprism.servers import terminal as terminal_form
from ioprism.servers.options import (
    export_option,
    question,
    sizes,
    store_option,
    timezone,
)
from ioprism.servers.page import write_page
from ioprism.servers.simulated_files import WRITERS
from ioprism.servers.simulated_load import SimulationSettings
from ioprism.servers.steps import Question
from ioprism.units import format_counted


@click.group()
def servers() -> None:
    """Characterise a machine from its file-system servers' counters.

    First `ingest` raw counters and job lists into a store, whenever there are new ones; then ask
    for the `jobs`, or for a `report` on the whole machine.

    Example: ioprism servers ingest mmpmon/ sacct.txt --store machine.store
    """


@servers.command()
@click.argument("paths", metavar="RAW...", nargs=-1, required=True, type=PATH)
@store_option
@option(
    "--time", type=Number(), help="Time of a scrape without time stamps, in seconds since 1970."
)
@timezone
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
    """Add raw counters and job lists to a store.

    Files may come in any order and repeatedly: each record is kept once. Counters: mmpmon,
    Lustre stats and job_stats, Prometheus text, LMT (SQLite), TOKIO (HDF5), CSV. Jobs: sacct, PBS,
    LSF (lsb.acct, bacct -l, bhist -l), LoadLeveler (llsummary -l), CSV.

    Example: ioprism servers ingest mmpmon/ sacct.txt --store machine.store
    """
    with output.progress("reading records", quiet=quiet) as progress:
        outcomes = pipeline.ingest(paths, store, time=time, timezone=timezone, progress=progress)
    if as_json:
        click.echo(json_form.ingested(paths, outcomes))
    elif not quiet:
        terminal_form.show_ingested(outcomes, output.console())


@servers.command()
@store_option
@question
@export_option
@option("--force", is_flag=True, help="Replace the table if it exists.")
@options.as_json
@options.quiet
def jobs(
    store: Path, question: Question, export: Path | None, force: bool, as_json: bool, quiet: bool
) -> None:
    """Show what every job did to the file system.

    Example: ioprism servers jobs --store machine.store --jobs sacct.txt --min-runtime 600
    """
    with output.progress("measuring jobs", quiet=quiet) as progress:
        metrics = pipeline.jobs(store, question, progress=progress)
    if export is not None:
        write_table(metrics.table, export, replace=force)
    if as_json:
        click.echo(json_form.jobs(store, metrics))
    else:
        terminal_form.show_jobs(metrics, output.console())
        output.show_warnings(metrics.warnings)
    output.say_written(export, quiet=quiet)


@servers.command()
@store_option
@question
@page_or_figure("servers report")
@option(
    "--peak-read",
    metavar="SIZE",
    help="Peak read rate of the file system per second, such as 66GB.",
)
@option("--peak-write", metavar="SIZE", help="Peak write rate of the file system per second.")
@export_option
@options.as_json
@options.quiet
def report(
    store: Path,
    question: Question,
    page: Path | None,
    figure: FigureRequest | None,
    peak_read: str | None,
    peak_write: str | None,
    export: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on the whole machine: a summary, and with -o one self-contained page or a figure.

    Example: ioprism servers report --store machine.store -o machine.html
    """
    given = {"read": peak_read, "write": peak_write}
    peaks = {name: None if text is None else sizes(text)[0] for name, text in given.items()}
    with output.progress("measuring jobs", quiet=quiet) as progress:
        machine = pipeline.report(store, question, progress=progress)
    if export is not None:
        write_table(machine.metrics.table, export, replace=force)
    if page is not None:
        write_page(machine, page, peaks=peaks, force=force)
    if figure is not None:
        _write_figure(figure, machine, peaks)
    if as_json:
        click.echo(json_form.machine(store, machine))
    else:
        terminal_form.show_machine(machine, output.console())
        output.show_warnings(machine.warnings)
    output.say_written(export, page, figure.path if figure else None, quiet=quiet)


def _write_figure(
    figure: FigureRequest, machine: pipeline.MachineReport, peaks: Mapping[str, float | None]
) -> None:
    from ioprism.servers.figures import DrawnMachine

    figure.write(DrawnMachine(machine, peaks))


simulated_servers = option(
    "--servers",
    "count",
    default=16,
    type=click.IntRange(1, 2000),
    help="Number of servers to simulate.",
)


@servers.command()
@click.argument("folder", metavar="OUT", type=PATH)
@simulated_servers
@option("--days", default=2.0, type=NumberRange(0.1, 800.0), help="Days to simulate.")
@option(
    "--interval",
    default=120.0,
    type=NumberRange(1.0, 86_400.0),
    help="Sampling interval, in seconds.",
)
@options.seed
@option("--format", "format_name", default="mmpmon",
        type=click.Choice(sorted(WRITERS)), help="Format of the counters.")  # fmt: skip
@option("--faults", is_flag=True, help="Drop some samples and reset some counters.")
@option("--jobs-at-once", default=1, type=click.IntRange(1, 100),
        help="Number of jobs that share a server.")  # fmt: skip
@option("--force", is_flag=True, help="Replace OUT if it exists.")
@options.quiet
def simulate(
    folder: Path,
    count: int,
    days: float,
    interval: float,
    seed: int,
    format_name: str,
    faults: bool,
    jobs_at_once: int,
    force: bool,
    quiet: bool,
) -> None:
    """Simulate a machine with known jobs: write raw counters, the job list and the truth.

    Example: ioprism servers simulate demo-machine --servers 16 --days 2
    """
    settings = SimulationSettings(count, days, interval, seed, faults, jobs_at_once)
    files, jobs = pipeline.simulate(settings, folder, format_name=format_name, force=force)
    if not quiet:
        output.say(
            f"wrote {format_counted(len(files), 'file')} to {folder}: {format_counted(jobs, 'job')}"
        )


@servers.command()
@simulated_servers
@option("--days", default=4.0, type=NumberRange(0.5, 800.0), help="Days to simulate.")
@options.seed
@option(
    "--run",
    "folder",
    is_flag=False,
    flag_value=Path(),
    type=PATH,
    help="Folder of the real file system to write to and read from (default: the current one).",
)
@option("--store", type=PATH,
        help="Store whose counters to compare with the benchmark of --run.")  # fmt: skip
@option("--bytes", "size", default="1GiB", help="Bytes per phase of --run.")
@option("--phases", default=3, type=click.IntRange(1, 1000), help="Number of phases of --run.")
@option("--pause", default=240.0, type=NumberRange(0.0, 86_400.0),
        help="Seconds between phases of --run; use two sampling intervals.")  # fmt: skip
@option(
    "--ior", metavar="COMMAND", help="Command of an IOR to use instead, such as 'mpirun -n 4 ior'."
)
@option("--record", type=PATH,
        help="Record of what --run did; with --store, the record to compare.")  # fmt: skip
@option("--force", is_flag=True, help="Replace the record if it exists.")
@options.as_json
@options.quiet
def validate(
    count: int,
    days: float,
    seed: int,
    folder: Path | None,
    store: Path | None,
    size: str,
    phases: int,
    pause: float,
    ior: str | None,
    record: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check the whole chain on a simulated load or on the real machine.

    Without --run a load is simulated, and exit code 1 means that a number is not where its known
    bias puts it. With --run, known data is written and read in a folder of the file system and
    noted in a record; once the counters of that time are ingested, --store with the same record
    shows whether they contain those bytes at those times.

    Example: ioprism servers validate --run /scratch/check --record check.json
    """
    if folder is not None or store is not None:
        plan = benchmark.Plan(folder, record, sizes(size)[0], phases, pause, ior, force)
        with output.progress("bytes", quiet=quiet) as progress:
            checked = benchmark.check(plan, store, progress=progress)
        if as_json:
            click.echo(json_form.benchmark(checked))
        else:
            terminal_form.show_benchmark(checked, output.console())
        click.get_current_context().exit(0 if checked.passed else 1)
    with output.progress("measuring jobs", quiet=quiet) as progress:
        validation = pipeline.validate(servers=count, days=days, seed=seed, progress=progress)
    if as_json:
        click.echo(json_form.validation(validation))
    else:
        terminal_form.show_validation(validation, output.console())
    click.get_current_context().exit(0 if validation.passed else 1)
