"""``ioprism write-time evaluate``: is the model any good?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.cli import options, output
from ioprism.cli.options import PATH, option
from ioprism.cli.write_time import inputs
from ioprism.pipeline import write_time
from ioprism.reports import to_json
from ioprism.reports.to_html import write_time as html_form
from ioprism.reports.to_terminal import write_time as terminal_form
from ioprism.storage.atomic import atomic_write_text


@click.command()
@inputs.store
@inputs.model
@option(
    "-o",
    "--output",
    "target",
    metavar="OUT.html",
    type=PATH,
    help="Also write a page with the error plots.",
)
@option("--force", is_flag=True, help="Replace the page if it exists.")
@options.as_json
def evaluate(
    store_path: Path, model_path: Path, target: Path | None, force: bool, as_json: bool
) -> None:
    """Compare predicted with measured times: small (200-256 nodes), medium (400-512), unconverged.

    Example: ioprism write-time evaluate --store runs.db --model model.json -o errors.html
    """
    evaluation = write_time.evaluate(store_path, write_time.load_model(model_path))
    if target is not None:
        atomic_write_text(target, html_form.page(evaluation), replace=force)
    if as_json:
        paths = [store_path, model_path]
        click.echo(to_json.document_of(evaluation.to_dict(), paths=paths, format_name="store"))
    else:
        terminal_form.show_evaluation(evaluation, output.console())
