"""``ioprism convert``: keep a trace in another form."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, option
from ioprism.conversion import check_ending
from ioprism.conversion import convert as write


@click.command(cls=Command)
@options.traces
@click.argument("target", metavar="OUT", type=PATH)
@options.format_name
@option("--counters", is_flag=True, help="Write counters to tables, even if there are events.")
@option("--force", is_flag=True, help="Replace OUT if it exists.")
@options.engine
@options.quiet
def convert(
    paths: tuple[Path, ...],
    target: Path,
    format_name: str | None,
    counters: bool,
    force: bool,
    engine_options: options.EngineOptions,
    quiet: bool,
) -> None:
    """Keep traces as a Parquet store (OUT is a folder), or write their events or counters.

    OUT.csv or OUT.parquet is a table of events. Where only counters were recorded, or with
    --counters, each module has its own table, with Darshan's names: OUT-POSIX.csv, …
    OUT.json or OUT.json.gz opens in Perfetto (ui.perfetto.dev), with one track per rank and
    counters for bandwidth. OUT appears only when it is complete. With --engine dask, workers
    write the store; after an interruption, the same command resumes where it stopped.

    Example: ioprism convert run42.darshan run42.store
    """
    check_ending(target)
    trace = options.read_job(paths, format_name)
    with output.progress("writing events", quiet=quiet) as progress:
        engine = engine_options.make_engine(progress)
        written = write(
            trace, target, replace=force, progress=progress, engine=engine, counters=counters
        )
    output.show_warnings(trace)
    output.say_written(*written, quiet=quiet)
