"""``ioprism report`` and ``demo``: everything about a job, here and as one page."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ioprism.api import analyse, sample_log
from ioprism.command import options, output
from ioprism.command.options import Command, FigureRequest, option, page_or_figure
from ioprism.diagnosis.steps import DiagnosisOptions, JobHistory
from ioprism.engine.base import LocalEngine
from ioprism.formats.registry import read_trace
from ioprism.model.verdict import Severity
from ioprism.report_steps import ReportSettings, document_of
from ioprism.reports import to_json
from ioprism.reports.report import Report, report_endings
from ioprism.reports.to_terminal.report import show_report
from ioprism.settings import Thresholds
from ioprism.storage.atomic import atomic_write, atomic_write_text

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
    thresholds: Thresholds,
    site: JobHistory | None,
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
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        settings = ReportSettings(thresholds=thresholds, diagnosis=DiagnosisOptions(site=site))
        document = document_of(trace, settings=settings, engine=LocalEngine(progress))
    analysis = Report(document)
    if page is not None:
        analysis.write(page, replace=force)
    if figure is not None:
        figure.write(document)
    if as_json:
        click.echo(analysis.to_json())
    else:
        shown = options.shown_paths(paths)
        show_report(document, output.console(), paths=shown, page=page is not None)
        output.show_warnings(trace)
    output.say_written(page, figure.path if figure else None, quiet=quiet)
    if fail_on is not None:
        reach = LEVELS[: LEVELS.index(Severity(fail_on)) + 1]
        output.fail_if(any(finding.severity in reach for finding in analysis.findings))


PAGE = "report.html"


@click.command(cls=Command)
@option(
    "--output",
    "-o",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ioprism-demo"),
    help="Folder for a copy of the sample log and the results.",
)
@options.quiet
def demo(folder: Path, quiet: bool) -> None:
    """Analyse the sample log of a checkpointing MPI job.

    The job writes small pieces to a shared file at every checkpoint, one of its ranks is a
    straggler, and it opens thousands of files when it starts.

    Example: ioprism demo --output demo
    """
    sample = sample_log()
    log = folder / sample.name
    ours = log.exists()  # what an earlier demo left may be replaced, other files may not
    if not ours:
        with atomic_write(log) as target:
            shutil.copyfile(sample, target)
    trace = read_trace(log)
    analysis = analyse(trace)
    described = analysis.document.characteristics.to_dict()
    documents = {
        "characteristics.json": to_json.document(trace, described),
        "report.json": analysis.to_json(),
    }
    for name, text in documents.items():
        atomic_write_text(folder / name, text, replace=ours)
    analysis.to_html(folder / PAGE, replace=ours)
    show_report(analysis.document, output.console(), paths=(log,), page=True)
    output.show_warnings(trace)
    if not quiet:
        output.say(f"\nThe sample log and the results are in {folder}.")
        output.say(f"Open {folder / PAGE} in a browser.")
