"""``ioprism convert``: keep a trace in another form."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.cli import options, output
from ioprism.formats.chrome.writer import write_chrome
from ioprism.formats.registry import read_trace
from ioprism.formats.tables.export import write_events
from ioprism.storage.trace_store import write_store


@click.command()
@options.traces
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@options.format_name
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@options.quiet
def convert(
    paths: tuple[Path, ...], target: Path, format_name: str | None, force: bool, quiet: bool
) -> None:
    """Keep traces as a Parquet store (OUT is a folder), or write their events.

    OUT.csv is a table; OUT.json or OUT.json.gz opens in Perfetto (ui.perfetto.dev), with one
    track per rank and counters for bandwidth. OUT appears only when it is complete.

    Example: ioprism convert run42.darshan run42.store
    """
    trace = read_trace(*paths, format_name=format_name)
    with output.progress("writing events", quiet=quiet) as progress:
        if target.suffix == ".csv":
            write_events(trace, target, replace=force, progress=progress)
        elif target.name.endswith((".json", ".json.gz")):
            write_chrome(trace, target, replace=force, progress=progress)
        else:
            write_store(trace, target, replace=force, progress=progress)
    output.show_warnings(trace)
    if not quiet:
        click.echo(f"wrote {target}", err=True)
