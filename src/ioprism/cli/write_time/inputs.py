"""Options that the write-time commands share."""

from __future__ import annotations

import click

from ioprism.cli.options import PATH, Decorator, option
from ioprism.units import parse_bytes


class Size(click.ParamType[int]):
    """A size such as 512MB, in bytes."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size."""
        del param, ctx
        return value if isinstance(value, int) else parse_bytes(str(value))


store: Decorator = option(
    "--store",
    "store_path",
    metavar="S.db",
    required=True,
    type=PATH,
    help="Database file of the runs.",
)
model: Decorator = option(
    "--model",
    "model_path",
    metavar="MODEL.json",
    required=True,
    type=PATH,
    help="The trained model, or cetus or titan for the models of the paper.",
)
