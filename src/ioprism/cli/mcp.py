"""``ioprism mcp``: the same answers for assistants, over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command.options import PATH, Command


@click.command(cls=Command)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=PATH)
def mcp(folders: tuple[Path, ...]) -> None:
    """Serve the Model Context Protocol: tools that return the same JSON as the commands.

    Only traces inside the given folders (default: the current one) are read; nothing is written.

    Example: ioprism mcp /projects/me/traces
    """
    from ioprism.mcp import server

    server(folders or (Path(),)).run("stdio")
