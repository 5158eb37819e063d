"""``ioprism diagnose``: what holds the job up, and what removing it would save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ioprism.cli import options, output
from ioprism.cli.options import PATH, NumberRange, option
from ioprism.formats.ceilings import read_ceiling
from ioprism.formats.layouts import read_layout
from ioprism.pipeline.diagnosis import DiagnosisOptions
from ioprism.pipeline.diagnosis import diagnose as find_causes
from ioprism.reports import to_json
from ioprism.reports.to_terminal import diagnose as terminal_form

if TYPE_CHECKING:
    from ioprism.analyses.write_time.model import WriteTimeModel

FAILED = 3  # exit code when --fail-on was met


@click.command()
@options.traces
@options.format_name
@option("--top", type=click.IntRange(1), help="Show at most this many causes.")
@option(
    "--fail-on",
    metavar="SHARE",
    type=NumberRange(0.0, 1.0),
    help="Exit with code 3 if the causes cost at least this share (0 to 1) of the run time.",
)
@option(
    "--layout",
    "layout_file",
    metavar="FILE",
    type=PATH,
    help="Storage targets of the files: CSV path,targets[,stripe_size], or `lfs getstripe -r`.",
)
@options.ceilings
@option(
    "--model",
    "model_file",
    metavar="FILE",
    type=PATH,
    help="A write-time model (`ioprism write-time train`): how long writes take at best.",
)
@option(
    "--servers",
    metavar="STORE",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Store of the servers' counters (`ioprism servers ingest`): were others busy?",
)
@options.engine
@options.as_json
@options.quiet
def diagnose(
    paths: tuple[Path, ...],
    *,
    format_name: str | None,
    top: int | None,
    fail_on: float | None,
    layout_file: Path | None,
    ceilings: tuple[Path, ...],
    model_file: Path | None,
    servers: Path | None,
    engine_options: options.EngineOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what holds a job up, which cause costs most, and what removing it would save.

    Example: ioprism diagnose run42.darshan --fail-on 0.1
    """
    chosen = DiagnosisOptions(
        layout={} if layout_file is None else read_layout(layout_file),
        ceilings=[read_ceiling(path) for path in ceilings],
        model=_model(model_file),
        servers=servers,
    )
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        diagnosis = find_causes(trace, options=chosen, engine=engine_options.made(progress))
    if as_json:
        whole = diagnosis.to_dict()
        click.echo(to_json.document(trace, {**whole, "causes": whole["causes"][:top]}))
    else:
        terminal_form.show(diagnosis, output.console(), top=top)
        output.show_warnings(trace)
    if fail_on is not None and diagnosis.share >= fail_on:
        click.get_current_context().exit(FAILED)


def _model(file: Path | None) -> WriteTimeModel | None:
    if file is None:
        return None
    from ioprism.pipeline.write_time import load_model

    return load_model(file)
