"""``ioprism report``: everything about a job in one go, here and as one page."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.api import analyse
from ioprism.command import options, output
from ioprism.command.figure_options import FigureRequest, page_or_figure
from ioprism.command.options import Command, option
from ioprism.diagnosis.steps import DiagnosisOptions
from ioprism.engine.local import LocalEngine
from ioprism.model.verdict import Severity
from ioprism.report_steps import ReportSettings
from ioprism.reports.report import report_endings
from ioprism.reports.to_terminal import report as terminal_form
from ioprism.settings import Thresholds, read_thresholds

FAILED = 3  # exit code when --fail-on was met
LEVELS = tuple(Severity)


@click.command(cls=Command)
@options.traces
@page_or_figure("report", what="reports", page_endings=report_endings)
@options.thresholds
@options.site
@option(
    "--fail-on",
    type=click.Choice([level.value for level in LEVELS]),
    help="Exit with code 3 if there is a finding of this level or worse.",
)
@options.format_name
@options.as_json
@options.quiet
def report(
    paths: tuple[Path, ...],
    *,
    page: Path | None,
    figure: FigureRequest | None,
    force: bool,
    thresholds_file: Path | None,
    site: Path | None,
    fail_on: str | None,
    format_name: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on a job: what costs time, what to do first, and where to see it.

    Prints a summary; with -o, also writes one self-contained interactive page, or with --figure
    one figure for a paper.

    Example: ioprism report run42.darshan -o run42.html
    """
    thresholds = Thresholds() if thresholds_file is None else read_thresholds(thresholds_file)
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        known = DiagnosisOptions(site=options.site_history(site))
        settings = ReportSettings(thresholds=thresholds, diagnosis=known)
        analysis = analyse(trace, settings=settings, engine=LocalEngine(progress))
    if page is not None:
        analysis.write(page, replace=force)
    if figure is not None:
        figure.write(analysis.document)
    if as_json:
        click.echo(analysis.to_json())
    else:
        terminal_form.show(analysis.document, output.console())
        output.show_warnings(trace)
    output.say_written(page, figure.path if figure else None, quiet=quiet)
    if fail_on is not None and any(
        LEVELS.index(f.severity) <= LEVELS.index(Severity(fail_on)) for f in analysis.findings
    ):
        click.get_current_context().exit(FAILED)
