"""Options that `bottlenecks` and `inspect` share: how to look, and with which rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ioprism.pipeline.bottlenecks import make_settings

_DECLARED = [
    click.option("--views", default="process,file,time", show_default=True,
                 help="Perspectives to combine, with commas; see --list-views."),
    click.option("--metric", default="operations", show_default=True, metavar="NAME",
                 help="What time is compared with: operations, bytes, time, or an expression."),
    click.option("--threshold", default=45.0, show_default=True,
                 help="Degrees beyond which a record is a bottleneck."),
    click.option("--percentile", type=float,
                 help="Instead of the threshold: only from this percentile (0 to 1) on."),
    click.option("--floor", default=0.001, show_default=True,
                 help="Share of the I/O time below which a record is not told; 0: all."),
    click.option("--time-bucket", "bucket", default=1.0, show_default=True,
                 help="Seconds in one record of the time view."),
    click.option("--combine", type=click.Choice(["drill", "cross"]), default="drill",
                 show_default=True, help="Views as drill-down, or as plain combinations."),
    click.option("--across", type=click.Choice(["max", "sum"]), default="max", show_default=True,
                 help="Time of a record: of its slowest process, or of all."),
    click.option("--layer", default="deepest", show_default=True,
                 help="The interface to look at: deepest, all, posix, mpiio, …"),
    click.option("--compatible", type=click.Choice(["wisio"]),
                 help="Count as WisIO 0.2.2 does; its threshold is turned round."),
    click.option("--rules", "rule_files", multiple=True, metavar="FILE",
                 type=click.Path(path_type=Path),
                 help="Change the rules or add to them; may be given again."),
    click.option("--stages", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
                 envvar="IOPRISM_STAGES",
                 help="Keep the main view here, and start from it next time."),
]  # fmt: skip


def looking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets `settings`, `compatible`, `rule_files` and `stages`."""

    @wraps(command)
    def with_settings(*args: Any, views: str, **others: Any) -> Any:  # noqa: ANN401
        names = tuple(name.strip() for name in views.split(",") if name.strip())
        chosen = {
            name: others.pop(name)
            for name in ("metric", "threshold", "percentile", "floor", "bucket", "combine",
                         "across", "layer")
        }  # fmt: skip
        return command(*args, settings=make_settings(views=names, **chosen), **others)

    decorated: Callable[..., Any] = with_settings
    for option in reversed(_DECLARED):
        decorated = option(decorated)
    return decorated
