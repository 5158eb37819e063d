"""Options that the commands of ``ioprism servers`` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ioprism.command.options import (
    PATH,
    TABLE,
    Decorator,
    Number,
    NumberRange,
    option,
    stack_decorators,
)
from ioprism.formats.local_time import zone_of
from ioprism.servers.settings import GRIDS, RESETS, SHARINGS, WINDOWS
from ioprism.servers.steps import Question
from ioprism.units import parse_bytes

store_option: Decorator = option("--store", required=True, type=PATH, help="Folder of the store.")
timezone: Decorator = option(
    "--timezone",
    default="UTC",
    callback=lambda _context, _option, name: zone_of(name).key,
    help="Time zone of local times and of the hours of the day.",
)
export_option: Decorator = option(
    "--export", type=TABLE, help="Also write the table to a .csv or .parquet file."
)
QUESTION: tuple[Decorator, ...] = (
    option("--jobs", type=PATH, help="Job list: sacct, PBS, LSF or LoadLeveler records, or CSV."),
    option("--server-map", type=PATH, help="CSV file `node,server`: the I/O server of each node."),
    timezone,
    option("--min-runtime", type=Number(), default=3600.0,
           help="Shortest run time of a job, in seconds."),
    option("--thresholds", default="0,131072,1048576",
           help="Bytes per sampling interval above which a server counts as active."),
    option("--grid", type=click.Choice(GRIDS), default="job",
           help="Time steps: a grid that starts with each job, or the samples themselves."),
    option("--window", type=click.Choice(WINDOWS), default="clip",
           help="How to treat steps that are only partly inside a job."),
    option("--reset", type=click.Choice(RESETS), default="auto",
           help="What to do with a counter that was reset."),
    option("--shared", type=click.Choice(SHARINGS), default="split",
           help="Bytes of servers shared by several jobs: split them by nodes, or attribute none."),
    option("--interval", type=NumberRange(1.0, 86_400.0),
           help="Length of a step in seconds; by default the sampling interval."),
)  # fmt: skip


def question(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which jobs to measure, and how; they come as one argument."""
    names = Question.__dataclass_fields__.keys()

    @wraps(command)
    def with_question(**given: Any) -> Any:  # noqa: ANN401 - whatever the command takes
        chosen = {name: given.pop(name) for name in names}
        chosen["thresholds"] = sizes(chosen["thresholds"])
        return command(question=Question(**chosen), **given)

    return stack_decorators(*QUESTION)(with_question)


def sizes(text: str) -> tuple[int, ...]:
    """Return sizes such as `0,128KiB` as bytes, each once."""
    return tuple(dict.fromkeys(parse_bytes(word) for word in text.split(",")))
