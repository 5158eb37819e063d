"""``ioprism compare``: what did a change do?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.api import analyse
from ioprism.command import options, output
from ioprism.command.options import Command, option
from ioprism.comparison.repetitions import MIN_RUNS
from ioprism.comparison.steps import compare_sides, read_side, run_folders
from ioprism.diagnosis.steps import DiagnosisOptions, JobHistory, with_layout
from ioprism.engine.base import LocalEngine
from ioprism.formats.beside_trace import read_layout
from ioprism.report_steps import ReportSettings
from ioprism.reports import to_json
from ioprism.reports.to_html import compare as html_form
from ioprism.reports.to_terminal.compare import show_comparison
from ioprism.reports.to_terminal.diagnose import show_history
from ioprism.storage.atomic import atomic_write_text

BETWEEN = "\0"  # stands for `--` among the paths: no path holds it


class TwoSides(Command):
    """Keeps the `--` between both sides, so that options may stand anywhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse options and paths."""
        return super().parse_args(ctx, [BETWEEN if word == "--" else word for word in args])


@click.command(cls=TwoSides)
@click.argument("paths", metavar="BASE... -- CANDIDATE...", nargs=-1, required=True)
@options.page
@option(
    "--fail-on",
    metavar="SHARE",
    type=options.Share(),
    help="Exit with 3 if the run time grew by at least this share, such as 5%, beyond noise.",
)
@option(
    "--layout",
    "layout_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="How files lie on storage targets, as `diagnose` takes it; may be given for each run.",
)
@options.site
@options.one_job
@options.anonymise
@options.format_name
@options.as_json
@options.quiet
def compare(
    paths: tuple[str, ...],
    *,
    page: Path | None,
    force: bool,
    fail_on: float | None,
    layout_files: tuple[Path, ...],
    site: JobHistory | None,
    format_name: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what a change did: run time, stall time, what was promised, numbers and findings.

    Give one run or several on each side; a recording of `ioprism record --repeat` stands for all
    its runs. Repeated runs tell a change from noise.

    Example: ioprism compare before.darshan after.darshan -o change.html

    Example: ioprism compare --fail-on 5% main-1 main-2 main-3 -- branch-1 branch-2 branch-3
    """
    before, after = split_sides(paths)
    if fail_on is not None:
        refuse_few_runs(len(run_folders(before)), len(run_folders(after)))
    layout = {path: how for file in layout_files for path, how in read_layout(file).items()}
    settings = ReportSettings(diagnosis=DiagnosisOptions(site=site))
    with output.progress("reading events", quiet=quiet) as progress:
        engine = LocalEngine(progress)
        old, new = (
            read_side(
                side,
                format_name=format_name,
                grouping=options.grouping(),
                reading=options.reading(),
                prepare=lambda trace: with_layout(trace, layout),
                analyse=lambda trace: analyse(trace, settings=settings, engine=engine).document,
            )
            for side in (before, after)
        )
    comparison, history = compare_sides(old, new), new.typical.verdict.history
    if page is not None:
        text = html_form.page(comparison, old, new)
        atomic_write_text(page, text, replace=force)
    if as_json:
        body = to_json.between(old.typical.trace, new.typical.trace) | comparison.to_dict()
        body |= {} if history is None else {"history": history.to_dict()}
        click.echo(to_json.document(new.typical.trace, body))
    else:
        for label, side, given in (("before: ", old, before), ("after:  ", new, after)):
            output.show_job(side.typical.trace, options.shown_paths(given), label=label)
        show_comparison(comparison, output.console())
        show_history(history, output.console())
        for document in (*old.documents, *new.documents):
            output.show_warnings(document.trace)
    output.say_written(page, quiet=quiet)
    output.fail_if(fail_on is not None and comparison.is_regression(fail_on))


def split_sides(words: tuple[str, ...]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the runs before and after: on both sides of `--`, or two paths.

    Raises:
        UsageError: a side is empty, or it is not clear where one ends.
    """
    if BETWEEN in words:
        at = words.index(BETWEEN)
        before, after = words[:at], words[at + 1 :]
        if not before or not after or BETWEEN in after:
            raise click.UsageError("give at least one run on each side of --.")
    elif len(words) == 2:
        before, after = words[:1], words[1:]
    else:
        raise click.UsageError(
            "one run was given, and there is nothing to compare it with.\n"
            "Hint: ioprism compare BASE CANDIDATE"
            if len(words) == 1
            else f"{len(words)} runs were given, and it is not clear which are which.\n"
            "Hint: ioprism compare BASE BASE -- CANDIDATE CANDIDATE"
        )
    return tuple(map(Path, before)), tuple(map(Path, after))


def refuse_few_runs(before: int, after: int) -> None:
    """Refuse to judge a regression where an outlier could pass for one.

    Raises:
        UsageError: a side has fewer runs than it takes.
    """
    if min(before, after) < MIN_RUNS:
        raise click.UsageError(
            f"--fail-on needs at least {MIN_RUNS} runs on each side to tell a regression from "
            f"noise; there are {before} before and {after} after.\n"
            "Hint: `ioprism record --repeat 12` records several; a recording stands for all of "
            "them."
        )
