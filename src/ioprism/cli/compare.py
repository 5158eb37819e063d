"""``ioprism compare``: what did a change do?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.api import analyse
from ioprism.cli import options, output
from ioprism.cli.options import PATH, option
from ioprism.engine.local import LocalEngine
from ioprism.formats.layouts import read_layout
from ioprism.pipeline.compare import compared
from ioprism.pipeline.verdict import with_layout
from ioprism.reports import to_json
from ioprism.reports.to_html import compare as html_form
from ioprism.reports.to_terminal import compare as terminal_form
from ioprism.storage.atomic import atomic_write_text


@click.command()
@click.argument("before", metavar="BEFORE", type=PATH)
@click.argument("after", metavar="AFTER", type=PATH)
@options.page
@option(
    "--layout",
    "layout_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="How files lie on storage targets, as `diagnose` takes it; may be given for each run.",
)
@options.one_job
@options.format_name
@options.as_json
@options.quiet
def compare(
    before: Path,
    after: Path,
    *,
    page: Path | None,
    force: bool,
    layout_files: tuple[Path, ...],
    format_name: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what a change did: metrics side by side, findings gone, new and kept.

    Example: ioprism compare before.darshan after.darshan -o change.html
    """
    layout = {path: how for file in layout_files for path, how in read_layout(file).items()}
    traces = [
        with_layout(options.read_job((path,), format_name), layout) for path in (before, after)
    ]
    with output.progress("reading events", quiet=quiet) as progress:
        old, new = (analyse(trace, engine=LocalEngine(progress)).document for trace in traces)
    comparison = compared(old, new)
    if page is not None:
        atomic_write_text(page, html_form.page(comparison, old, new), replace=force)
    if as_json:
        click.echo(to_json.document(traces[1], to_json.between(*traces) | comparison.to_dict()))
    else:
        terminal_form.show(comparison, output.console())
        for trace in traces:
            output.show_warnings(trace)
    output.say_written(page, quiet=quiet)
