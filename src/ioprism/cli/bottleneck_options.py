"""Options that `bottlenecks` and `inspect` share: how to look, and with which rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ioprism.analyses.bottlenecks.settings import METRICS
from ioprism.cli.options import Number
from ioprism.pipeline.bottlenecks import make_settings

_DECLARED = [
    click.option("--views", metavar="NAMES",
                 help="Views, separated by commas; see --list-views. Default: application, "
                 "directory, file, process, time; with --method slope: process, file, time."),
    click.option("--method", type=click.Choice(["excess", "slope"]), default="excess",
                 show_default=True,
                 help="One list by seconds above peers, or the paper's angles for each view."),
    click.option("--metric", default="operations", show_default=True, metavar="NAME",
                 help="What to compare time with: operations, bytes, time, or an expression."),
    click.option("--threshold", type=Number(), default=45.0, show_default=True,
                 help="Angle in degrees above which a record is a bottleneck."),
    click.option("--percentile", type=Number(),
                 help="Use this percentile (0 to 1) instead of the threshold."),
    click.option("--floor", type=Number(),
                 help="Omit records below this share of the I/O time; 0 keeps all. Default: "
                 "0.02; with --method slope: 0.001."),
    click.option("--time-bucket", "bucket", type=Number(), default=1.0, show_default=True,
                 help="Length of one record of the time view, in seconds."),
    click.option("--combine", type=click.Choice(["drill", "cross"]),
                 help="With --method slope: drill down through the views (default), or cross all "
                 "combinations of them."),
    click.option("--across", type=click.Choice(["max", "sum"]), default="max", show_default=True,
                 help="Time of a record: that of its slowest process, or the sum over all."),
    click.option("--layer", default="deepest", show_default=True,
                 help="Interface to analyse: deepest, all, posix, mpiio, …"),
    click.option("--compatible", type=click.Choice(["wisio"]),
                 help="Count as WisIO 0.2.2 does, including its inverted threshold."),
    click.option("--rules", "rule_files", multiple=True, metavar="FILE",
                 type=click.Path(path_type=Path),
                 help="File that changes or adds rules; may be repeated."),
    click.option("--stages", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
                 envvar="IOPRISM_STAGES",
                 help="Cache the main view here and reuse it next time."),
]  # fmt: skip


def _papers_own(chosen: dict[str, Any]) -> bool:
    """Whether something is asked for that only the paper's way of looking knows."""
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
        settings = make_settings(views=names, method="slope" if slope else "excess", **chosen)
        return command(*args, settings=settings, **others)

    decorated: Callable[..., Any] = with_settings
    for option in reversed(_DECLARED):
        decorated = option(decorated)
    return decorated
