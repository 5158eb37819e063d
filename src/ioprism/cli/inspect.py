"""``ioprism inspect``: the records and calls behind one finding or bottleneck."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.bottlenecks.inspection import Inspection
from ioprism.analyses.bottlenecks.settings import Settings
from ioprism.cli import options, output
from ioprism.cli.bottleneck_options import looking
from ioprism.model.trace import Trace
from ioprism.readers.registry import read_trace
from ioprism.reports import to_json
from ioprism.reports.to_json import inspect as json_form
from ioprism.reports.to_terminal import inspect as terminal_form
from ioprism.rules.bottlenecks.analyse import Source
from ioprism.rules.bottlenecks.load import rules
from ioprism.rules.finding_inspection import FindingInspection, inspected_finding, rule_called

Inspected = Inspection | FindingInspection


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
    """Show what lies behind a bottleneck or finding: files, processes, times, longest calls.

    ID is one that `ioprism bottlenecks` prints for the same traces and options, or the code of
    a finding of `ioprism insights`.

    Example: ioprism inspect run42.darshan small-writes
    """
    rule = rule_called(identifier)
    with output.progress("reading events", quiet=quiet) as progress:
        engine = engine_options.made(progress)
        source = Source(paths, format_name, stages)
        if rule is None:
            known = rules(*rule_files)
            looked_at = source.stage(settings, engine, like_wisio=compatible is not None)
            trace = looked_at.trace
            found: Inspected = looked_at.inspect(identifier, known, engine, source)
        else:
            trace = read_trace(*paths, format_name=format_name)
            found = inspected_finding(rule, trace, engine)
    _show(found, trace, as_json=as_json)


def _show(found: Inspected, trace: Trace, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json.document(trace, json_form.body(found)))
    else:
        terminal_form.show(found, output.console())
        output.show_warnings(trace)
