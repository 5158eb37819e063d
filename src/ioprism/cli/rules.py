"""``ioprism rules``: every rule code, and the thresholds behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from ioprism.command import options
from ioprism.command.options import PATH, option
from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.registry import all_rules
from ioprism.diagnosis.rules.rule import Rule
from ioprism.reports import to_json
from ioprism.settings import Thresholds
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
        click.echo(to_json.plain_document(_body(all_rules())))
        return
    from ioprism.command import output
    from ioprism.reports.to_terminal import listings

    if limits:
        listings.show_thresholds(output.console())
    else:
        listings.show_rules(all_rules(), output.console())


def _body(known: Iterable[Rule]) -> dict[str, Any]:
    """Every rule and every threshold."""
    return {
        "rules": [
            {
                "code": rule.code,
                "level": rule.level.value,
                "interface": rule.interface,
                "question": wording.question(rule.advice, rule.direction),
                "thresholds": list(rule.thresholds),
                "aliases": list(rule.aliases),
                "advice": f"{rule.advice}.toml",
            }
            for rule in known
        ],
        "thresholds": [
            {"name": limit.name, "default": limit.default, **limit.metadata}
            for limit in fields(Thresholds)
        ],
    }


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
