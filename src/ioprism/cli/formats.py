"""``ioprism formats``: what can be read, and what each format can tell."""

from __future__ import annotations

import click

from ioprism.command import options, output
from ioprism.command.options import Command
from ioprism.formats.registry import FACTS, Unavailable, readers
from ioprism.reports import to_json
from ioprism.reports.to_terminal import listings


@click.command(cls=Command)
@options.as_json
def formats(as_json: bool) -> None:
    """List the trace formats ioprism reads, and what each of them records.

    Example: ioprism formats
    """
    known = list(readers())
    if as_json:
        entries = [
            {"name": r.name, "available": False, "missing": r.missing}
            if isinstance(r, Unavailable)
            else {"name": r.name, "available": True, "title": r.title, "tells": sorted(r.tells)}
            for r in known
        ]
        click.echo(to_json.plain_document({"formats": entries, "facts": FACTS}))
    else:
        listings.show_formats(known, output.console())
