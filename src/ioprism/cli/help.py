"""``ioprism help``: the help of a command."""

from __future__ import annotations

import click


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
