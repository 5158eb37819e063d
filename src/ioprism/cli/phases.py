"""``ioprism phases``: when a job does I/O, and whom each phase waits for."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.phases import phases as find_phases
from ioprism.cli import options, output
from ioprism.engine.local import LocalEngine
from ioprism.formats.registry import read_trace
from ioprism.reports import to_json
from ioprism.reports.to_json import phases as json_form
from ioprism.reports.to_terminal import phases as terminal_form
from ioprism.settings import PhaseSettings


@click.command()
@options.traces
@options.format_name
@click.option("--layer", metavar="NAME", help="One interface only: posix, mpiio, stdio …")
@click.option(
    "--deviations",
    type=click.FloatRange(min=0.0),
    default=PhaseSettings.__dataclass_fields__["deviations"].default,
    show_default=True,
    help="Phases are apart by the mean gap and so many standard deviations.",
)
@click.option("--gap", type=click.FloatRange(min=0.0), help="Seconds between phases, instead.")
@options.as_json
@options.quiet
def phases(
    paths: tuple[Path, ...],
    format_name: str | None,
    layer: str | None,
    deviations: float,
    gap: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the phases in which a job does I/O, with the fastest and slowest rank of each.

    Example: ioprism phases run42.darshan --layer posix
    """
    trace = read_trace(*paths, format_name=format_name)
    settings = PhaseSettings(deviations, gap)
    with output.progress("reading events", quiet=quiet) as progress:
        found = find_phases(trace, LocalEngine(progress), settings=settings, layer=layer)
    if as_json:
        click.echo(to_json.document(trace, json_form.body(found)))
    else:
        terminal_form.show(found, output.console())
        output.show_warnings(trace)
