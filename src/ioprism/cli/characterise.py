"""``ioprism characterise``: how much, by whom, through which interface."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.characteristics.totals import characterise as describe
from ioprism.characteristics.totals import relate
from ioprism.command import options, output
from ioprism.command.options import Command
from ioprism.engine.local import LocalEngine
from ioprism.formats.ceilings import read_ceiling
from ioprism.reports import to_json
from ioprism.reports.to_terminal import characterise as terminal_form


@click.command(cls=Command)
@options.traces
@options.format_name
@options.ceilings
@options.as_json
@options.quiet
def characterise(
    paths: tuple[Path, ...],
    format_name: str | None,
    ceilings: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Show how much I/O a job did, by whom, and through which interface.

    Files that the processes of one run wrote are one job; --one-job makes a workflow of others.

    Example: ioprism characterise run42.darshan --ceiling ior.json
    """
    measured = [read_ceiling(path) for path in ceilings]
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        characteristics = describe(trace, LocalEngine(progress))
    relations = [relate(characteristics, ceiling) for ceiling in measured]
    if as_json:
        body = characteristics.to_dict()
        if relations:
            body["ceilings"] = [relation.to_dict() for relation in relations]
        click.echo(to_json.document(trace, body))
    else:
        terminal_form.show(characteristics, output.console())
        terminal_form.show_ceilings(relations, output.console())
        output.show_warnings(trace)
