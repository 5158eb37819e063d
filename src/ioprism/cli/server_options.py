"""Options that the commands of ``ioprism servers`` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ioprism.analyses.job_metrics.settings import GRIDS, RESETS, SHARINGS, WINDOWS
from ioprism.cli.options import Decorator, Number, NumberRange
from ioprism.pipeline.servers import Question
from ioprism.reports import to_terminal
from ioprism.units import parse_bytes

store_option: Decorator = click.option(
    "--store", required=True, type=click.Path(path_type=Path), help="Folder of the store."
)
timezone: Decorator = click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    help="Time zone of local times and of the hours of the day.",
)
export_options: tuple[Decorator, ...] = (
    click.option(
        "--export",
        type=click.Path(path_type=Path),
        help="Also write the table to a .csv or .parquet file.",
    ),
    click.option("--force", is_flag=True, help="Replace existing files."),
)
QUESTION: tuple[Decorator, ...] = (
    click.option(
        "--jobs",
        type=click.Path(path_type=Path),
        help="Job list: sacct, PBS, LSF or LoadLeveler records, or CSV.",
    ),
    click.option(
        "--server-map",
        type=click.Path(path_type=Path),
        help="CSV file `node,server`: the I/O server of each node.",
    ),
    timezone,
    click.option(
        "--min-runtime",
        type=Number(),
        default=3600.0,
        show_default=True,
        help="Shortest run time of a job, in seconds.",
    ),
    click.option(
        "--thresholds",
        default="0,131072,1048576",
        show_default=True,
        help="Bytes per sampling interval above which a server counts as active.",
    ),
    click.option(
        "--grid",
        type=click.Choice(GRIDS),
        default="job",
        show_default=True,
        help="Time steps: a grid that starts with each job, or the samples themselves.",
    ),
    click.option(
        "--window",
        type=click.Choice(WINDOWS),
        default="clip",
        show_default=True,
        help="How to treat steps that are only partly inside a job.",
    ),
    click.option(
        "--reset",
        type=click.Choice(RESETS),
        default="auto",
        show_default=True,
        help="What to do with a counter that was reset.",
    ),
    click.option(
        "--shared",
        type=click.Choice(SHARINGS),
        default="split",
        show_default=True,
        help="Bytes of servers shared by several jobs: split them by nodes, or attribute none.",
    ),
    click.option(
        "--interval",
        type=NumberRange(1.0, 86_400.0),
        help="Length of a step in seconds; by default the sampling interval.",
    ),
)


def stacked(*decorators: Decorator) -> Decorator:
    """Apply decorators as if they stood one below the other."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def question(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which jobs to measure, and how; they come as one argument."""
    names = Question.__dataclass_fields__.keys()

    @wraps(command)
    def with_question(**given: Any) -> Any:  # noqa: ANN401 - whatever the command takes
        chosen = {name: given.pop(name) for name in names}
        chosen["thresholds"] = sizes(chosen["thresholds"])
        return command(question=Question(**chosen), **given)

    return stacked(*QUESTION)(with_question)


def sizes(text: str) -> tuple[int, ...]:
    """Return sizes such as `0,128KiB` as bytes, each once."""
    return tuple(dict.fromkeys(parse_bytes(word) for word in text.split(",")))


def show_warnings(messages: Sequence[str]) -> None:
    """Print what is missing from the answer on standard error."""
    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, messages)
