"""``ioprism characterise``: how much, by whom, through which interface."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.characterise import characterise as describe
from ioprism.cli import options, output
from ioprism.engine.local import LocalEngine
from ioprism.readers.registry import read_trace
from ioprism.reports import to_json
from ioprism.reports.to_json import characterise as json_form
from ioprism.reports.to_terminal import characterise as terminal_form


@click.command()
@options.traces
@options.format_name
@options.as_json
@options.quiet
def characterise(
    paths: tuple[Path, ...], format_name: str | None, as_json: bool, quiet: bool
) -> None:
    """Tell how much I/O a job did, by whom, and through which interface.

    Several traces, or a folder of them, are taken as one workflow.

    Example: ioprism characterise run42.darshan
    """
    trace = read_trace(*paths, format_name=format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        found = describe(trace, LocalEngine(progress))
    if as_json:
        click.echo(to_json.document(trace, json_form.body(found)))
    else:
        terminal_form.show(found, output.console())
        output.show_warnings(trace)
