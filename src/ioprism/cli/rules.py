"""``ioprism rules``: every rule code, and the thresholds behind them."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options
from ioprism.command.options import PATH, option
from ioprism.diagnosis.rules.registry import all_rules
from ioprism.reports import to_json
from ioprism.reports.to_json import rules as json_form
from ioprism.units import format_counted


@click.group(invoke_without_command=True)
@option("--thresholds", "limits", is_flag=True, help="List the thresholds instead.")
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
    from ioprism.command import output
    from ioprism.reports.to_terminal import rules as terminal_form

    if limits:
        terminal_form.show_thresholds(output.console())
    else:
        terminal_form.show(all_rules(), output.console())


def _list_fields(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from ioprism.views.perspectives.records import FIELDS

        for field in FIELDS.values():
            click.echo(f"{field.name:24} {field.unit or '-':2} {field.meaning}")
        ctx.exit()


@rules.command()
@click.argument("path", metavar="FILE", type=PATH)
@option(
    "--fields",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_fields,
    help="List the fields that rules may use, and exit.",
)
def check(path: Path) -> None:
    """Check a file of bottleneck rules (TOML or YAML) without running anything.

    Example: ioprism rules check my-rules.toml
    """  # fmt: skip
    from ioprism.bottleneck_search.rule_language.load import read_rules

    read = read_rules(path)
    on = sum(rule is not None for rule in read.rules.values())
    click.echo(f"{path}: {format_counted(on, 'rule')} valid, {len(read.rules) - on} switched off.")
