"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

traces: Decorator = click.argument(
    "paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
format_name: Decorator = click.option(
    "--format", "format_name", metavar="NAME", help="The trace's format, if it is not recognised."
)
as_json: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
quiet: Decorator = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
