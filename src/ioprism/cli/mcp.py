"""``ioprism mcp``: the same answers for assistants, over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
def mcp(folders: tuple[Path, ...]) -> None:
    """Serve the Model Context Protocol: tools that answer as the commands do, with their JSON.

    Only traces in the folders are read, in this one if none is given; nothing is written.

    Example: ioprism mcp /projects/me/traces
    """
    from ioprism.service.mcp import server

    server(folders or (Path(),)).run("stdio")
