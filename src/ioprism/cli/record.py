"""``ioprism record``: run a program under a tracer, and report on its I/O."""

from __future__ import annotations

import os
import resource
import signal
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ioprism.api import analyse
from ioprism.cli.compare import refuse_few_runs
from ioprism.command import options, output
from ioprism.command.options import PATH, Command, option
from ioprism.comparison.steps import compare_sides, read_side, run_folders
from ioprism.errors import BrokenTraceError, IoprismError, UnknownFormatError
from ioprism.recording.choice import TRACERS, check_machine, choose_tracer, job_script
from ioprism.recording.command import parse_command
from ioprism.recording.steps import (
    PAGE,
    delete_traces,
    estimate_overhead,
    plan_recording,
    read_run,
    record_runs,
)
from ioprism.recording.trials import fitting_hints, look_at_output, try_hints
from ioprism.reports import to_json
from ioprism.reports.to_terminal.compare import (
    show_checks,
    show_comparison,
    show_end,
    show_plan,
    show_trials,
)
from ioprism.reports.to_terminal.report import show_report

if TYPE_CHECKING:
    from ioprism.recording.steps import Plan
    from ioprism.recording.trials import OutputFolder, Trial
    from ioprism.report_steps import Document
    from ioprism.storage.recordings import RecordedRun, Recording


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@option(
    "--output",
    "-o",
    "folder",
    metavar="DIR",
    type=PATH,
    help="Folder for traces and report; by default record-PROGRAM-1, -2, …",
)
@option(
    "--tracer",
    type=click.Choice(["auto", *TRACERS]),
    default="auto",
    help="What records: `auto` takes what is installed and fits the program.",
)
@option(
    "--repeat",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=1,
    help="Run N times, to know the noise; stops at the first run that fails.",
)
@option(
    "--against",
    "baselines",
    metavar="TRACE",
    type=PATH,
    multiple=True,
    help="Compare with an earlier recording or trace; may be given for several runs.",
)
@option(
    "--fail-on",
    metavar="SHARE",
    type=options.Share(),
    help="Exit with 3 if the run time grew by this share beyond noise (with --against).",
)
@option("--open", "show", is_flag=True, help="Open the page in a browser.")
@option(
    "--keep",
    type=click.Choice(["yes", "no"]),
    default="yes",
    help="Whether to keep the traces after the report.",
)
@option(
    "--untraced", is_flag=True, help="Run once more without the tracer, to measure what it costs."
)
@option(
    "--try",
    "try_changes",
    is_flag=True,
    help="Try MPI-IO hints that fit the diagnosis, and prove their gain by runs in turn.",
)
@option(
    "--rounds",
    metavar="N",
    type=click.IntRange(4, 100),  # as MIN_ROUNDS of trials.py: fewer decide nothing
    default=8,
    help="Runs of each change that --try makes at most.",
)
@option(
    "--stripe-dir",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="With --try: a folder on Lustre whose striping may be changed; what the program makes "
    "there is removed before each run.",
)
@option("--force", is_flag=True, help="Replace an earlier recording in DIR.")
@option(
    "--check",
    "check_only",
    is_flag=True,
    help="List what can record here, and how to get what is missing.",
)
@option(
    "--script",
    "scheduler",
    type=click.Choice(["slurm", "pbs", "lsf", "flux"]),
    help="Print a job script that records the command, and do not run it.",
)
@options.as_json
@options.quiet
def record(
    command: tuple[str, ...],
    *,
    folder: Path | None,
    tracer: str,
    repeat: int,
    baselines: tuple[Path, ...],
    fail_on: float | None,
    show: bool,
    keep: str,
    untraced: bool,
    try_changes: bool,
    rounds: int,
    stripe_dir: Path | None,
    force: bool,
    check_only: bool,
    scheduler: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a program under a tracer, and report what its I/O costs.

    The program's output, exit code and signals pass through unchanged; the report goes to standard
    error, and as a page into DIR. With --json the document goes to standard output, and the
    program's output to standard error.

    Example: ioprism record -- ./simulate input.nml

    Example: ioprism record -o after --against before -- mpirun -n 4 ./simulate input.nml
    """
    if check_only:
        _check(folder or Path(), as_json=as_json)
        return
    if not command:
        raise click.UsageError("no command was given.\nHint: ioprism record -- PROGRAM ARGUMENTS")
    if scheduler is not None:
        choice = choose_tracer(parse_command(command), tracer)
        click.echo(job_script(scheduler, command, choice, repeat=repeat), nl=False)
        return
    if fail_on is not None and not baselines:
        raise click.UsageError("--fail-on needs --against.\nHint: name an earlier recording.")
    if fail_on is not None:
        refuse_few_runs(len(run_folders(baselines)), repeat)
    if stripe_dir is not None and not try_changes:
        raise click.UsageError("--stripe-dir needs --try.")
    output_folder = None if stripe_dir is None else look_at_output(stripe_dir.resolve())
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    plan = plan_recording(
        command,
        folder=folder,
        tracer=tracer,
        overwrite=force,
        stdout=sys.stderr.fileno() if as_json else None,
        stderr=sys.stderr.fileno(),
    )
    if not quiet:
        show_plan(plan, console)
    recording = record_runs(plan, repeat=repeat, untraced=untraced)
    try:
        worse = _report(
            plan,
            recording,
            console,
            baselines,
            fail_on=fail_on,
            rounds=rounds if try_changes else 0,
            output_folder=output_folder,
            as_json=as_json,
            quiet=quiet,
        )
        code = output.FAILED if worse else 0
        if show:
            webbrowser.open((recording.folder / PAGE).as_uri())
    except (UnknownFormatError, BrokenTraceError):  # the tracer had nothing to write
        code = 0
        _say_nothing(plan, recording, as_json=as_json, explained=not quiet)
    except IoprismError as error:
        code = 1
        output.say(f"Error: there is no report: {error}")
    finally:
        if keep == "no":
            delete_traces(recording)
    _leave_as(recording.runs[-1], otherwise=code)


def _check(folder: Path, *, as_json: bool) -> None:
    checks = tuple(check_machine(folder.resolve()))
    if as_json:
        click.echo(to_json.plain_document({"checks": [asdict(check) for check in checks]}))
    else:
        show_checks(checks, output.console())


def _report(
    plan: Plan,
    recording: Recording,
    console: Console,
    baselines: tuple[Path, ...],
    *,
    fail_on: float | None,
    rounds: int,
    output_folder: OutputFolder | None,
    as_json: bool,
    quiet: bool,
) -> bool:
    """Report on the last run, compare and try if asked, and return whether it is a regression."""
    run = recording.runs[-1]
    with output.progress("reading events", quiet=quiet):
        trace = read_run(recording, run)
        report = analyse(trace)
    overhead = estimate_overhead(recording, run, trace)
    report.write(recording.folder / PAGE)
    trials = _try(plan, recording, report.document, output_folder, rounds=rounds)
    comparison = None
    if baselines:
        comparison = compare_sides(read_side(baselines), read_side((recording.folder,)))
    if as_json:
        _print_document(
            recording,
            report.document.to_dict(),
            trace.completeness.warnings,
            overhead=None if overhead is None else asdict(overhead),
            comparison=None if comparison is None else comparison.to_dict(),
            trials=[trial.to_dict() for trial in trials],
        )
    elif not quiet:
        show_end(recording, run, overhead, console)
        show_report(report.document, console, page=True)
        if comparison is not None:
            show_comparison(comparison, console)
        if rounds:
            show_trials(trials, console)
        output.show_warnings(trace)
    output.say_written(recording.folder / PAGE, quiet=quiet)
    return comparison is not None and fail_on is not None and comparison.is_regression(fail_on)


def _try(
    plan: Plan,
    recording: Recording,
    document: Document,
    folder: OutputFolder | None,
    *,
    rounds: int,
) -> list[Trial]:
    """Try what may remove a cause of the diagnosis; nothing if the program did not succeed."""
    if not rounds or not recording.runs[-1].succeeded:
        return []
    codes = {cause.code for cause in document.verdict.causes}
    codes |= {finding.code for finding in document.findings}
    hints = fitting_hints(plan.command, codes, document.trace.job.ranks or 1, output=folder)
    if not hints:
        return []
    return try_hints(plan, hints, rounds=rounds, output=folder)


def _say_nothing(plan: Plan, recording: Recording, *, as_json: bool, explained: bool) -> None:
    if as_json:
        _print_document(
            recording, None, ("no I/O was recorded",), overhead=None, comparison=None, trials=[]
        )
    listed = "what is listed above" if explained else "; ".join(plan.blind_spots)
    output.say(
        f"No I/O was recorded. {plan.choice.tracer.version} cannot see {listed}.\n"
        "Hint: try another --tracer if the program does I/O."
    )


def _print_document(
    recording: Recording, report: Mapping[str, Any] | None, warnings: Sequence[str], **more: object
) -> None:
    body = {"recording": {**recording.to_dict(), **more}, "report": report}
    folders = [recording.traces(run) for run in recording.runs]
    kind = recording.tracer.partition(" ")[0].lower()
    click.echo(to_json.document_of(body, paths=folders, format_name=kind, warnings=warnings))


def _leave_as(run: RecordedRun, *, otherwise: int) -> None:
    """End as the program ended: with its exit code, or by the signal that ended it."""
    if run.signal is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own
        with suppress(OSError):  # SIGKILL cannot be changed, and need not be
            signal.signal(run.signal, signal.SIG_DFL)
        os.kill(os.getpid(), run.signal)
    click.get_current_context().exit(run.exit_code or otherwise)
