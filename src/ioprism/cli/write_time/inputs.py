"""Options that the write-time commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ioprism.reports import to_terminal
from ioprism.units import parse_bytes

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Size(click.ParamType[int]):
    """A size such as 512MB, in bytes."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size."""
        del param, ctx
        return value if isinstance(value, int) else parse_bytes(str(value))


store: Decorator = click.option(
    "--store",
    "store_path",
    metavar="S.db",
    required=True,
    type=click.Path(path_type=Path),
    help="Database file of the runs.",
)
model: Decorator = click.option(
    "--model",
    "model_path",
    metavar="MODEL.json",
    required=True,
    type=click.Path(path_type=Path),
    help="The trained model, or cetus or titan for the models of the paper.",
)


def show_warnings(messages: Sequence[str]) -> None:
    """Print on standard error what a person should know beside the answer."""
    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, messages)
