"""Options that the write-time commands share."""

from __future__ import annotations

import click

from ioprism.command.options import PATH, Decorator, option
from ioprism.units import parse_bytes


class Size(click.ParamType[int]):
    """A size such as 512MB, in bytes; at least one."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size."""
        size = value if isinstance(value, int) else parse_bytes(str(value))
        if size < 1:
            self.fail(f"{value} is not positive.\nHint: write for example 512MB.", param, ctx)
        return size


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
    help="The trained model, or cetus or titan for the published models of these machines.",
)
