"""``ioprism rules``: every rule code, and the thresholds behind them."""

from __future__ import annotations

from importlib import import_module

import click

from ioprism.cli import options
from ioprism.reports import to_json
from ioprism.reports.to_json import rules as json_form
from ioprism.rules.registry import all_rules

# Loaded when they are called.
SUBCOMMANDS = {"check": ("ioprism.cli.rules_check", "Check a file of bottleneck rules.")}


class _RuleCommands(click.Group):
    """Loads subcommands late."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name every subcommand."""
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one subcommand."""
        if cmd_name not in SUBCOMMANDS:
            return None
        try:
            module = import_module(SUBCOMMANDS[cmd_name][0])
        except ModuleNotFoundError:
            return None
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the subcommands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.group(cls=_RuleCommands, invoke_without_command=True)
@click.option("--thresholds", "limits", is_flag=True, help="List the thresholds instead.")
@options.as_json
@click.pass_context
def rules(context: click.Context, limits: bool, as_json: bool) -> None:
    """List every rule of `ioprism insights`: code, level, question, and its name in other tools.

    Example: ioprism rules --thresholds
    """
    if context.invoked_subcommand is not None:
        return
    if as_json:
        click.echo(to_json.plain_document(json_form.body(all_rules())))
        return
    from ioprism.cli import output
    from ioprism.reports.to_terminal import rules as terminal_form

    if limits:
        terminal_form.show_thresholds(output.console())
    else:
        terminal_form.show(all_rules(), output.console())
