"""``ioprism inspect``: the records and calls behind one bottleneck."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.bottlenecks.settings import Settings
from ioprism.cli import options, output
from ioprism.cli.bottleneck_options import looking
from ioprism.reports import to_json
from ioprism.reports.to_json import inspect as json_form
from ioprism.reports.to_terminal import inspect as terminal_form
from ioprism.rules.bottlenecks.analyse import Source
from ioprism.rules.bottlenecks.load import rules


@click.command()
@options.traces
@click.argument("identifier", metavar="ID")
@options.format_name
@looking
@options.engine
@options.as_json
@options.quiet
def inspect(
    paths: tuple[Path, ...],
    identifier: str,
    format_name: str | None,
    settings: Settings,
    compatible: str | None,
    rule_files: tuple[Path, ...],
    stages: Path | None,
    engine_options: options.EngineOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what lies behind a bottleneck: its files, processes, times, and longest calls.

    ID is one that `ioprism bottlenecks` prints for the same traces and options.

    Example: ioprism inspect run42.darshan CR1
    """
    known = rules(*rule_files)
    with output.progress("reading events", quiet=quiet) as progress:
        engine = engine_options.made(progress)
        source = Source(paths, format_name, stages)
        looked_at = source.stage(settings, engine, like_wisio=compatible is not None)
        found = looked_at.inspect(identifier, known, engine, source)
    if as_json:
        click.echo(to_json.document(looked_at.trace, json_form.body(found)))
    else:
        terminal_form.show(found, output.console())
        output.show_warnings(looked_at.trace)
