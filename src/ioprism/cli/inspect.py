"""``ioprism inspect``: the records and calls behind one finding or bottleneck."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click
from click.core import ParameterSource

from ioprism.bottleneck_search.inspection import Inspection
from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.bottleneck_search.settings import Settings
from ioprism.bottleneck_search.steps import Source
from ioprism.cli.bottlenecks import looking
from ioprism.cli.insights import chosen_thresholds, server_loads
from ioprism.command import options, output
from ioprism.command.options import Command
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.insights import with_background_load
from ioprism.errors import UsageError
from ioprism.inspection import FindingInspection, inspected_finding, rule_called
from ioprism.model.trace import Trace
from ioprism.reports import to_json
from ioprism.reports.to_terminal import inspect as terminal_form
from ioprism.text import printable

Inspected = Inspection | FindingInspection

OF_BOTTLENECKS = frozenset(
    {"views", "method", "metric", "threshold", "percentile", "floor", "bucket",
     "combine", "across", "layer", "compatible", "rule_files", "stages"}
)  # fmt: skip
OF_FINDINGS = frozenset({"thresholds_file", "servers"})


@click.command(cls=Command)
@options.traces
@click.argument("identifier", metavar="ID")
@options.format_name
@looking
@options.thresholds
@options.servers
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
    thresholds_file: Path | None,
    servers: Path | None,
    engine_options: options.EngineOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what is behind a bottleneck or finding: files, processes, times, longest calls.

    ID is one that `ioprism bottlenecks` prints for the same traces and options, or the code of
    a finding of `ioprism insights`. Findings take the options --thresholds and --servers of
    `ioprism insights`; the options of `ioprism bottlenecks` are for bottlenecks.

    Example: ioprism inspect run42.darshan small-writes
    """
    if len(paths) == 1 and Path(identifier).exists() and not paths[0].exists():
        raise click.UsageError(
            f"the trace comes before the ID.\nHint: ioprism inspect {identifier} {paths[0]}"
        )
    rule = rule_called(identifier)
    if rule is None:
        _refuse(OF_FINDINGS, f"{printable(identifier)[:40]!r} is not the code of a finding")
    else:
        _refuse(OF_BOTTLENECKS, f"{rule.code!r} is a finding, not a bottleneck")
    with output.progress("reading events", quiet=quiet) as progress:
        engine = engine_options.make_engine(progress)
        source = Source(paths, format_name, stages, options.grouping(), options.reading())
        if rule is None:
            known = rules(*rule_files)
            looked_at = source.stage(settings, engine, like_wisio=compatible is not None)
            trace = looked_at.trace
            inspection: Inspected = looked_at.inspect(identifier, known, engine, source)
        else:
            trace = options.read_job(paths, format_name)
            evidence = evidence_of_trace(trace, engine, chosen_thresholds(thresholds_file))
            inspection = inspected_finding(
                rule, with_background_load(evidence, server_loads(servers)), trace, engine
            )
    _show(inspection, trace, as_json=as_json)


def _refuse(names: Collection[str], why: str) -> None:
    """Refuse options that were given and would change nothing.

    Raises:
        UsageError: there are such options; those from the environment do not count.
    """
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in names
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(
            f"{', '.join(given)} would change nothing: {why}.\n"
            f"Hint: leave {'it' if len(given) == 1 else 'them'} out."
        )


def _show(inspected: Inspected, trace: Trace, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json.document(trace, inspected.to_dict()))
    else:
        terminal_form.show(inspected, output.console())
        output.show_warnings(trace)
