"""``ioprism characterise`` and ``phases``: how much I/O, by whom, when."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.characteristics.totals import characterise as describe
from ioprism.characteristics.totals import relate
from ioprism.command import options, output
from ioprism.command.options import Command, NumberRange, option
from ioprism.engine.base import LocalEngine
from ioprism.model.machine import Ceiling
from ioprism.phase_detection.find import phases as find_phases
from ioprism.reports import to_json
from ioprism.reports.to_terminal.period import show_phases
from ioprism.reports.to_terminal.report import show_ceilings, show_characteristics
from ioprism.settings import PhaseSettings


@click.command(cls=Command)
@options.traces
@options.format_name
@options.ceilings
@options.as_json
@options.quiet
def characterise(
    paths: tuple[Path, ...],
    format_name: str | None,
    ceilings: list[Ceiling],
    as_json: bool,
    quiet: bool,
) -> None:
    """Show how much I/O a job did, by whom, and through which interface.

    Files that the processes of one run wrote are one job; --one-job makes a workflow of others.

    Example: ioprism characterise run42.darshan --ceiling ior.json
    """
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        characteristics = describe(trace, LocalEngine(progress))
    relations = [relate(characteristics, ceiling) for ceiling in ceilings]
    if as_json:
        body = characteristics.to_dict()
        if relations:
            body["ceilings"] = [relation.to_dict() for relation in relations]
        click.echo(to_json.document(trace, body))
    else:
        output.show_job(trace, options.shown_paths(paths))
        show_characteristics(characteristics, output.console())
        show_ceilings(relations, output.console())
        output.show_warnings(trace)


@click.command(cls=Command)
@options.traces
@options.format_name
@option("--layer", metavar="NAME", help="Only this interface: posix, mpiio, stdio, …")
@option(
    "--deviations",
    type=NumberRange(min=0.0),
    help="Separate phases at gaps of the mean plus this many standard deviations.",
)
@option(
    "--gap",
    type=NumberRange(min=0.0),
    help="Separate phases at gaps of at least this many seconds.",
)
@options.as_json
@options.quiet
def phases(
    paths: tuple[Path, ...],
    format_name: str | None,
    layer: str | None,
    deviations: float | None,
    gap: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the phases in which a job does I/O, and the fastest and slowest rank of each.

    Example: ioprism phases run42.darshan --layer posix
    """
    trace = options.read_job(paths, format_name)
    settings = PhaseSettings(deviations, gap)
    with output.progress("reading events", quiet=quiet) as progress:
        result = find_phases(trace, LocalEngine(progress), settings=settings, layer=layer)
    if as_json:
        output.show_document(to_json.document_pieces(trace, result.to_stream()))
    else:
        output.show_job(trace, options.shown_paths(paths))
        show_phases(result, output.console())
        output.show_warnings(trace)
