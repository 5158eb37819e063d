"""Options that `bottlenecks` and `inspect` share: how to look, and with which rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ioprism.bottleneck_search.settings import METRICS
from ioprism.bottleneck_search.steps import make_settings
from ioprism.command.options import PATH, Number, option, stack_decorators
from ioprism.errors import ExpressionError, UsageError

_DECLARED = [
    option("--views", metavar="NAMES",
           help="Views, separated by commas; see --list-views. Default: application, "
           "directory, file, process, time; with --method slope: process, file, time."),
    option("--method", type=click.Choice(["excess", "slope"]), default="excess",
           help="One list by seconds above peers, or WisIO's angles for each view."),
    option("--metric", default="operations", metavar="NAME",
           help="What to compare time with: operations, bytes, time, or an expression."),
    option("--threshold", type=Number(), default=45.0,
           help="Angle in degrees above which a record is a bottleneck."),
    option("--percentile", type=Number(),
           help="Use this percentile (0 to 1) instead of the threshold."),
    option("--floor", type=Number(),
           help="Omit records below this share of the I/O time; 0 keeps all. Default: "
           "0.02; with --method slope: 0.001."),
    option("--time-bucket", "bucket", type=Number(), default=1.0,
           help="Length of one record of the time view, in seconds."),
    option("--combine", type=click.Choice(["drill", "cross"]),
           help="With --method slope: drill down through the views (default), or cross all "
           "combinations of them."),
    option("--across", type=click.Choice(["max", "sum"]), default="max",
           help="Time of a record: that of its slowest process, or the sum over all."),
    option("--layer", default="deepest",
           help="Interface to analyse: deepest, all, posix, mpiio, …"),
    option("--compatible", type=click.Choice(["wisio"]),
           help="Count as WisIO 0.2.2 does, including its inverted threshold."),
    option("--rules", "rule_files", multiple=True, metavar="FILE",
           type=PATH,
           help="File that changes or adds rules; may be repeated."),
    option("--stages", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
           envvar="IOPRISM_STAGES",
           help="Cache the main view here and reuse it next time."),
]  # fmt: skip


def _papers_own(chosen: dict[str, Any]) -> bool:
    """Whether something is asked for that only the paper's method has."""
    own_metric = chosen["metric"] not in METRICS
    return own_metric or chosen["percentile"] is not None or chosen["combine"] is not None


def looking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets `settings`, `compatible`, `rule_files` and `stages`."""

    @wraps(command)
    def with_settings(*args: Any, views: str | None, method: str, **others: Any) -> Any:  # noqa: ANN401
        names = tuple(name.strip() for name in (views or "").split(",") if name.strip())
        compatible = others.get("compatible") is not None
        slope = method == "slope" or compatible or _papers_own(others)
        chosen = {
            name: others.pop(name)
            for name in ("metric", "threshold", "percentile", "floor", "bucket", "combine",
                         "across", "layer")
        }  # fmt: skip
        chosen["combine"] = chosen["combine"] or "drill"
        try:
            settings = make_settings(views=names, method="slope" if slope else "excess", **chosen)
        except ExpressionError as error:
            raise UsageError(f"--metric: {error}") from error
        return command(*args, settings=settings, **others)

    return stack_decorators(*_DECLARED)(with_settings)
