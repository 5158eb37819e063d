"""``ioprism rules check``: is a file of bottleneck rules sound?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.rules.bottlenecks.load import read_rules
from ioprism.units import format_counted
from ioprism.views.perspectives.fields import FIELDS


def _list_fields(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for field in FIELDS.values():
            click.echo(f"{field.name:24} {field.unit or '-':2} {field.meaning}")
        ctx.exit()


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
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
    read = read_rules(path)
    on = sum(rule is not None for rule in read.rules.values())
    click.echo(f"{path}: {format_counted(on, 'rule')} valid, {len(read.rules) - on} switched off.")
