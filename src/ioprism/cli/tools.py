"""``ioprism help``, ``completion`` and ``mcp``: commands that analyse nothing themselves."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ioprism.command.options import PATH, Command

SHELLS = ("bash", "zsh", "fish")


@click.command(name="help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001 - the command's name
    """Show the help of a command, or of all.

    Example: ioprism help diagnose
    """
    shown = context.find_root()
    for word in words:
        group = shown.command
        command = group.get_command(shown, word) if isinstance(group, click.Group) else None
        if command is None:
            raise click.UsageError(f"No such command {word!r}.")
        shown = click.Context(command, info_name=word, parent=shown)
    click.echo(shown.get_help())


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Example: ioprism completion bash > ~/.local/share/bash-completion/completions/ioprism
    """
    kind = get_completion_class(shell)
    if kind is not None:
        root = context.find_root().command
        click.echo(kind(root, {}, "ioprism", "_IOPRISM_COMPLETE").source())


@click.command(cls=Command)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=PATH)
def mcp(folders: tuple[Path, ...]) -> None:
    """Serve the Model Context Protocol: tools that return the same JSON as the commands.

    Only traces inside the given folders (default: the current one) are read; nothing is written.

    Example: ioprism mcp /projects/me/traces
    """
    from ioprism.mcp import server

    server(folders or (Path(),)).run("stdio")
