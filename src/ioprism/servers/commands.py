"""``ioprism servers``: what the file-system servers' counters say about jobs and the machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.live import Live

from ioprism.command import options, output
from ioprism.command.options import (
    PATH,
    TABLE,
    Decorator,
    FigureRequest,
    Number,
    NumberRange,
    option,
    page_or_figure,
    stack_decorators,
)
from ioprism.formats.tables.export import write_table
from ioprism.formats.text import zone_of
from ioprism.local_http import LOOPBACK, is_loopback, read_token
from ioprism.reports import to_json
from ioprism.servers import documents, steps, terminal
from ioprism.servers import raw_files as raw
from ioprism.servers.page import write_page
from ioprism.servers.raw_files import (
    CommandSource,
    EndpointSource,
    FileSource,
    FollowedFile,
    PolledSource,
)
from ioprism.servers.series import GRIDS, RESETS, SHARINGS, WINDOWS
from ioprism.servers.validation import BenchmarkPlan, run_benchmark
from ioprism.servers.watch import LoadRound, LoadWatch, WatchPlan
from ioprism.servers.watch_output import LoadServer, load_view, round_values
from ioprism.units import DAY, parse_bytes

store_option: Decorator = option("--store", required=True, type=PATH, help="Folder of the store.")
timezone_option: Decorator = option(
    "--timezone",
    default="UTC",
    callback=lambda _context, _option, name: zone_of(name).key,
    help="Time zone of local times and of the hours of the day.",
)
export_option: Decorator = option(
    "--export", type=TABLE, help="Also write the table to a .csv or .parquet file."
)
# The defaults of the commands are those of the functions.
ASKED, WATCHED, PLANNED = steps.Question(), WatchPlan(), BenchmarkPlan(folder=None)

QUESTION: tuple[Decorator, ...] = (
    option("--jobs", type=PATH, help="Job list: sacct, PBS, LSF or LoadLeveler records, or CSV."),
    option("--server-map", type=PATH, help="CSV file `node,server`: the I/O server of each node."),
    timezone_option,
    option("--min-runtime", type=Number(), default=ASKED.min_runtime,
           help="Shortest run time of a job, in seconds."),
    option("--thresholds", default=",".join(map(str, ASKED.thresholds)),
           help="Bytes per sampling interval above which a server counts as active."),
    option("--grid", type=click.Choice(GRIDS), default=ASKED.grid,
           help="Time steps: a grid that starts with each job, or the samples themselves."),
    option("--window", type=click.Choice(WINDOWS), default=ASKED.window,
           help="How to treat steps that are only partly inside a job."),
    option("--reset", type=click.Choice(RESETS), default=ASKED.reset,
           help="What to do with a counter that was reset."),
    option("--shared", type=click.Choice(SHARINGS), default=ASKED.shared,
           help="Bytes of servers shared by several jobs: split them by nodes, or attribute none."),
    option("--interval", type=NumberRange(1.0, DAY),
           help="Length of a step in seconds; by default the sampling interval."),
)  # fmt: skip


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which jobs to measure, and how; they come as one argument."""

    @wraps(command)
    def with_question(**given: Any) -> Any:  # noqa: ANN401 - whatever the command takes
        question = {name: given.pop(name) for name in steps.Question.__dataclass_fields__}
        question["thresholds"] = _sizes(question["thresholds"])
        return command(question=question, **given)

    return stack_decorators(*QUESTION)(with_question)


def _sizes(text: str) -> tuple[int, ...]:
    """Return sizes such as `0,128KiB` as bytes, each once."""
    return tuple(dict.fromkeys(parse_bytes(word) for word in text.split(",")))


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
@option("--time", "scraped", type=Number(),
        help="Time of a scrape without time stamps, in seconds since 1970.")  # fmt: skip
@timezone_option
@options.as_json
@options.quiet
def ingest(
    paths: tuple[Path, ...],
    store: Path,
    scraped: float | None,
    timezone: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add raw counters and job lists to a store.

    Files may come in any order and repeatedly: each record is kept once. Counters: mmpmon,
    mmperfmon query, Lustre stats and job_stats, Prometheus text, LMT (SQLite), TOKIO (HDF5),
    collectd and LDMS (CSV), CSV. Jobs: sacct, PBS, LSF (lsb.acct, bacct -l, bhist -l),
    LoadLeveler (llsummary -l), CSV.

    Example: ioprism servers ingest mmpmon/ sacct.txt --store machine.store
    """
    with output.progress("reading records", quiet=quiet) as progress:
        files = raw.ingest(*paths, store=store, time=scraped, timezone=timezone, progress=progress)
    if as_json:
        click.echo(documents.ingest(paths, files))
    elif not quiet:
        terminal.show_ingested(files, output.console())


@servers.command()
@store_option
@question_options
@export_option
@option("--force", is_flag=True, help="Replace the table if it exists.")
@options.as_json
@options.quiet
def jobs(
    store: Path,
    question: dict[str, Any],
    export: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what every job did to the file system.

    Example: ioprism servers jobs --store machine.store --jobs sacct.txt --min-runtime 600
    """
    with output.progress("measuring jobs", quiet=quiet) as progress:
        metrics = steps.jobs(store, progress=progress, **question)
    if export is not None:
        write_table(metrics.table, export, replace=force)
    if as_json:
        click.echo(documents.jobs(store, metrics))
    else:
        terminal.show_jobs(metrics, output.console())
        output.show_warnings(metrics.warnings)
    output.say_written(export, quiet=quiet)


@servers.command()
@store_option
@question_options
@page_or_figure("servers report")
@option("--peak-read", metavar="SIZE",
        help="Peak read rate of the file system per second, such as 66GB.")  # fmt: skip
@option("--peak-write", metavar="SIZE", help="Peak write rate of the file system per second.")
@export_option
@options.as_json
@options.quiet
def report(
    store: Path,
    question: dict[str, Any],
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
    read, write = (None if text is None else _sizes(text)[0] for text in (peak_read, peak_write))
    with output.progress("measuring jobs", quiet=quiet) as progress:
        machine = steps.report(store, progress=progress, **question)
    if export is not None:
        write_table(machine.metrics.table, export, replace=force)
    if page is not None:
        write_page(machine, page, peak_read=read, peak_write=write, force=force)
    if figure is not None:
        from ioprism.servers.figures import DrawnMachine  # needs matplotlib

        figure.write(DrawnMachine(machine, {"read": read, "write": write}))
    if as_json:
        click.echo(documents.machine(store, machine))
    else:
        terminal.show_machine(machine, output.console())
        output.show_warnings(machine.warnings)
    output.say_written(export, page, figure.path if figure else None, quiet=quiet)


@servers.command()
@option("--command", "commands", multiple=True, metavar="COMMAND",
        help="Command that prints counters, such as 'lctl get_param obdfilter.*.stats "
        "obdfilter.*.job_stats'; run once per round.")  # fmt: skip
@option("--prometheus", "endpoints", multiple=True, metavar="URL",
        help="Prometheus endpoint of an exporter.")  # fmt: skip
@option("--file", "files", multiple=True, type=PATH, help="File to read again in every round.")
@option("--follow", "followed", multiple=True, type=PATH,
        help="File of one record per line (mmpmon -p, CSV) to read while it grows.")  # fmt: skip
@option("--interval", type=NumberRange(0.0, DAY), default=WATCHED.interval,
        help="Seconds from one round to the next.")  # fmt: skip
@option("--timeout", type=NumberRange(0.0, DAY, min_open=True), default=WATCHED.timeout,
        help="Seconds that a source may take to answer.")  # fmt: skip
@option("--store", type=PATH, help="Also add every answer to this store, as `ingest` does.")
@option("--top", type=click.IntRange(1, 1000), default=WATCHED.top,
        help="Jobs, users and targets to show; the others are one row.")  # fmt: skip
@option("--users-command", metavar="COMMAND",
        help="Command that prints `job user` lines, such as \"squeue -ho '%i %u'\".")  # fmt: skip
@option("--shell", is_flag=True, help="Run commands with a shell.")
@option("--rounds", type=click.IntRange(1), help="Stop after this many rounds.")
@option("--json-lines", is_flag=True, help="Print one JSON document per round on its own line.")
@option("--http", "port", type=click.IntRange(0, 65535),
        help="Port on which to serve a page, JSON and metrics for Prometheus.")  # fmt: skip
@option("--host", default=LOOPBACK, help="Host on which --http listens.")
@option("--token-file", type=PATH,
        help="File that keeps the page's token; without it, each start makes one.")  # fmt: skip
@timezone_option
@options.quiet
def watch(
    commands: tuple[str, ...],
    endpoints: tuple[str, ...],
    files: tuple[Path, ...],
    followed: tuple[Path, ...],
    *,
    rounds: int | None,
    json_lines: bool,
    port: int | None,
    host: str,
    token_file: Path | None,
    quiet: bool,
    **chosen: Any,  # noqa: ANN401 - as `WatchPlan` has them
) -> None:
    """Show who loads the file system now: jobs, users and targets.

    Every round asks all sources for counters and shows their growth since the last round. What
    is stored can be asked with `jobs` and `report`, like counters that were ingested.

    Example: ioprism servers watch --command "lctl get_param obdfilter.*.job_stats" --http 8080
    """
    sources: list[PolledSource] = [
        *(CommandSource(text, shell=chosen["shell"]) for text in commands),
        *map(EndpointSource, endpoints),
        *map(FileSource, files),
        *map(FollowedFile, followed),
    ]
    if not sources:
        raise click.UsageError(
            "nothing to watch.\nHint: use --command, --prometheus, --file or --follow."
        )
    watch = LoadWatch(sources, WatchPlan(**chosen))
    stopped = threading.Event()
    with ExitStack() as stack:
        server = None
        if port is not None:
            token = None if token_file is None else read_token(token_file)
            server = LoadServer(host, port, token=token)
            stack.callback(server.close)
            if not quiet:
                output.say(f"page: {server.url}")
            if not is_loopback(host):
                output.say("warning: the page's token crosses the network unencrypted")
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: stopped.set()))
        show = stack.enter_context(_rounds_output(json_lines=json_lines))
        due = time.monotonic()
        while not stopped.is_set() and (rounds is None or watch.number < rounds):
            result = watch.round()
            if server is not None:
                server.latest = result
            show(result)
            due = max(due + watch.options.interval, time.monotonic())
            if rounds is None or watch.number < rounds:
                stopped.wait(max(0.0, due - time.monotonic()))


@contextmanager
def _rounds_output(*, json_lines: bool) -> Iterator[Callable[[LoadRound], None]]:
    """Yield what shows rounds on standard output: tables that refresh, or a line per round."""
    if json_lines:
        yield lambda result: click.echo(to_json.line(round_values(result)))
    elif sys.stdout.isatty():
        with Live(console=output.console(), auto_refresh=False, screen=True) as screen:
            yield lambda result: screen.update(load_view(result), refresh=True)
    else:
        console = output.console()
        yield lambda result: console.print(load_view(result))


@servers.command()
@option("--run", "folder", is_flag=False, flag_value=Path(), type=PATH,
        help="Folder of the real file system to write to and read from (default: the current "
        "one).")  # fmt: skip
@option("--store", type=PATH,
        help="Store whose counters to compare with the benchmark of --run.")  # fmt: skip
@option("--bytes", default="1GiB", help="Bytes per phase of --run.")
@option(
    "--phases",
    default=PLANNED.phases,
    type=click.IntRange(1, 1000),
    help="Number of phases of --run.",
)
@option("--pause", default=PLANNED.pause, type=NumberRange(0.0, DAY),
        help="Seconds between phases of --run; use two sampling intervals.")  # fmt: skip
@option("--ior", metavar="COMMAND",
        help="Command of an IOR to use instead, such as 'mpirun -n 4 ior'.")  # fmt: skip
@option("--record", type=PATH,
        help="Record of what --run did; with --store, the record to compare.")  # fmt: skip
@option("--force", "replace", is_flag=True, help="Replace the record if it exists.")
@options.as_json
@options.quiet
def validate(
    store: Path | None,
    as_json: bool,
    quiet: bool,
    **plan: Any,  # noqa: ANN401 - as `BenchmarkPlan` has them
) -> None:
    """Check on the real machine that its counters show known bytes.

    With --run, known data is written and read in a folder of the file system and noted in a
    record; once the counters of that time are ingested, --store with the same record shows
    whether they contain those bytes at those times: exit code 1 means that they do not.

    Example: ioprism servers validate --run /scratch/check --record check.json
    """
    if plan["folder"] is None and store is None:
        raise click.UsageError("nothing to check.\nHint: use --run FOLDER, then --store DIR.")
    benchmark = BenchmarkPlan(**{**plan, "bytes": _sizes(plan["bytes"])[0]})
    with output.progress("bytes", quiet=quiet) as progress:
        result = run_benchmark(benchmark, store, progress=progress)
    if as_json:
        click.echo(documents.benchmark(result))
    else:
        terminal.show_benchmark(result, output.console())
    click.get_current_context().exit(0 if result.passed else 1)
