"""``ioprism bottlenecks``: what takes more than its share of the I/O time, and why."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.bottleneck_search.settings import Settings
from ioprism.bottleneck_search.severity import LABELS
from ioprism.bottleneck_search.steps import Source
from ioprism.cli.bottleneck_options import looking
from ioprism.command import options, output
from ioprism.command.options import TABLE, Command, option
from ioprism.formats.tables.export import write_table
from ioprism.reports import to_json
from ioprism.reports.to_terminal import bottlenecks as terminal_form
from ioprism.views.perspectives.codes import meanings

FOUND = 3  # the exit code when --fail-on was met


def _list_views(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for name, meaning in meanings().items():
            click.echo(f"{name:12} {meaning}")
        ctx.exit()


@click.command(cls=Command)
@options.traces
@options.format_name
@looking
@option(
    "--top",
    default=20,
    type=click.IntRange(0),
    help="Number of bottlenecks to show for each view; 0 shows all.",
)
@option("--page", default=1, type=click.IntRange(1), help="Page of results to show.")
@option(
    "--export",
    "target",
    type=TABLE,
    metavar="FILE",
    help="Write all bottlenecks with every field to a .csv or .parquet file.",
)
@option("--force", is_flag=True, help="Replace the exported file if it exists.")
@option(
    "--fail-on",
    type=click.Choice(LABELS[:-1]),
    metavar="LABEL",
    help="Exit with code 3 if there is a bottleneck of this label or worse.",
)
@option(
    "--list-views",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_views,
    help="Explain the views and exit.",
)
@options.engine
@options.as_json
@options.quiet
def bottlenecks(
    paths: tuple[Path, ...],
    format_name: str | None,
    settings: Settings,
    compatible: str | None,
    rule_files: tuple[Path, ...],
    stages: Path | None,
    top: int,
    page: int,
    target: Path | None,
    force: bool,
    fail_on: str | None,
    engine_options: options.EngineOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what costs more seconds than its peers, from every perspective, and why.

    One list over all views: records that cover the same calls are one. With --method slope,
    every ordered combination of the views is listed; a record's severity is then the angle
    of its share of time over its share of operations, where 45 degrees means in proportion.

    Example: ioprism bottlenecks run42.darshan --views file,time --top 5
    """  # fmt: skip
    known = rules(*rule_files)
    per_view = top or None
    with output.progress("reading events", quiet=quiet) as progress:
        looked_at = Source(paths, format_name, stages, options.grouping(), options.reading()).stage(
            settings, engine_options.made(progress), like_wisio=compatible is not None
        )
        result = looked_at.bottlenecks(known, top=per_view, page=page, fold=not as_json)
    if target is not None:
        write_table(result.to_frame(), target, replace=force)
    if as_json:
        body = {**result.to_dict(), "page": {"number": page, "per_view": per_view}}
        click.echo(to_json.document(looked_at.trace, body))
    else:
        terminal_form.show(result, output.console(), page=page, top=per_view)
        output.show_warnings(looked_at.trace)
    output.say_written(target, quiet=quiet)
    if fail_on is not None and result.worst_label_at_least(fail_on):
        raise click.exceptions.Exit(FOUND)
