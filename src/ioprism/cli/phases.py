"""``ioprism phases``: when a job does I/O, and whom each phase waits for."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import Command, NumberRange, option
from ioprism.engine.local import LocalEngine
from ioprism.phase_detection.find import phases as find_phases
from ioprism.reports import to_json
from ioprism.reports.to_terminal import phases as terminal_form
from ioprism.settings import PhaseSettings


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
        click.echo(to_json.document(trace, result.to_dict()))
    else:
        terminal_form.show(result, output.console())
        output.show_warnings(trace)
