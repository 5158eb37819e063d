"""``ioprism completion``: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ioprism.command.options import Command

SHELLS = ("bash", "zsh", "fish")


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
