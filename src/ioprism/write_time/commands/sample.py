"""``ioprism write-time sample`` and ``import``: runs for a model to learn from."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, NumberRange, option
from ioprism.errors import UsageError
from ioprism.reports import to_json
from ioprism.storage.atomic import atomic_write_text
from ioprism.write_time import documents as json_form
from ioprism.write_time import steps as write_time
from ioprism.write_time import terminal as terminal_form
from ioprism.write_time.campaign.job_script import SCHEDULERS, Job, job_script
from ioprism.write_time.campaign.launchers import LAUNCHERS
from ioprism.write_time.campaign.sampler import Announce, Limits
from ioprism.write_time.commands import inputs
from ioprism.write_time.sampling import SCALES, PlanSettings


@click.group()
def sample() -> None:
    """Plan and run writes that a model can learn from.

    Example: ioprism write-time sample plan --system machine.toml --store runs.db
    """


@sample.command("plan")
@option(
    "--system",
    "system_name",
    metavar="NAME|FILE.toml",
    help="System to sample; needed for a new store.",
)
@inputs.store
@option("--scales", default=",".join(map(str, SCALES)), help="Node counts.")
@option("--max-burst", type=inputs.Size(), metavar="SIZE", help="Largest burst of a process.")
@option("--max-bytes", type=inputs.Size(), metavar="SIZE", help="Most bytes of a run.")
@option(
    "--rounds", default=1, type=click.IntRange(1, 100), help="Times to go through the templates."
)
@option(
    "--rate",
    type=inputs.Size(),
    metavar="SIZE",
    help="Expected write rate of a node, in bytes per second.",
)
@option(
    "--placements",
    is_flag=True,
    help="Choose the nodes of each run; by default the scheduler does.",
)
@options.seed
@option("--skip-short", is_flag=True, help="Leave out writes that are too short to count.")
@option("--dry-run", is_flag=True, help="Only show the cost.")
@options.as_json
def plan_(
    system_name: str | None,
    store_path: Path,
    scales: str,
    max_burst: int | None,
    max_bytes: int | None,
    rounds: int,
    rate: int | None,
    placements: bool,
    seed: int,
    skip_short: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Choose write patterns from published templates, and show what they will cost.

    Example: ioprism write-time sample plan --system machine.toml --store runs.db --max-burst 1GB
    """
    settings = PlanSettings(
        scales=_scales(scales),
        largest_burst=max_burst,
        most_bytes=max_bytes,
        rounds=rounds,
        placements=placements,
        seed=seed,
    )
    planned = write_time.plan(
        store_path, settings, system=system_name, rate=rate, skip_short=skip_short, dry_run=dry_run
    )
    warnings = terminal_form.plan_warnings(planned)
    if as_json:
        body = json_form.plan(planned)
        click.echo(
            to_json.document_of(body, paths=[store_path], format_name="plan", warnings=warnings)
        )
        return
    terminal_form.show_plan(planned, output.console())
    output.show_warnings(warnings)


def _scales(text: str) -> tuple[int, ...]:
    try:
        scales = tuple(int(part) for part in text.split(","))
    except ValueError:
        scales = ()
    if not scales or min(scales) < 1:
        raise UsageError(f"{text!r} is not a list of node counts.\nHint: write for example 1,2,4.")
    return scales


@sample.command()
@inputs.store
@option(
    "--directory",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder to write to, on the file system to measure.",
)
@option(
    "--launcher",
    default="auto",
    type=click.Choice(LAUNCHERS),
    help="How to start IOR; builtin writes from the cores of this node, without IOR.",
)
@option("--max-runs", type=click.IntRange(1), help="Stop after this many runs.")
@option(
    "--time-limit",
    type=NumberRange(0, min_open=True),
    metavar="SECONDS",
    help="Start no run after this many seconds.",
)
@option(
    "--timeout",
    type=NumberRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop a run that takes longer; default: 20 times what is expected, at least 600.",
)
@option(
    "--pause",
    default=60.0,
    type=NumberRange(0),
    metavar="SECONDS",
    help="Seconds to wait after a round in which every run failed.",
)
@option(
    "--fail-on",
    type=click.Choice(["waiting"]),
    help="Exit with code 3 if another session would make progress; for job scripts.",
)
@options.as_json
@options.quiet
@click.pass_context
def run(
    context: click.Context,
    store_path: Path,
    directory: Path,
    launcher: str,
    max_runs: int | None,
    time_limit: float | None,
    timeout: float | None,
    pause: float,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the planned writes until every mean has converged; resumes where it stopped.

    Every run writes files of its own into a folder of its own, and removes them. A run that is
    refused, hangs or gives no result is noted, and its pattern is tried again later.

    Example: ioprism write-time sample run --store runs.db --directory /scratch/me
    """
    done = write_time.sample(
        store_path,
        directory,
        launcher=launcher,
        limits=Limits(runs=max_runs, seconds=time_limit, timeout=timeout, pause=pause),
        announce=_announce(quiet),
    )
    warnings = terminal_form.sampling_warnings(done)
    if as_json:
        body = json_form.progress(done)
        click.echo(
            to_json.document_of(body, paths=[store_path], format_name="store", warnings=warnings)
        )
    else:
        terminal_form.show_progress(done, output.console())
        output.show_warnings(warnings)
    if fail_on and done.worth_another:
        context.exit(3)


@sample.command()
@inputs.store
@option(
    "--directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to, on the file system to measure.",
)
@option(
    "--scheduler",
    required=True,
    type=click.Choice(list(SCHEDULERS)),
    help="Batch system of the script.",
)
@option("--nodes", required=True, type=click.IntRange(1), help="Number of nodes of each job.")
@option("--minutes", default=60, type=click.IntRange(10), help="Time limit of each job.")
@option("--account", help="Account, project or bank.")
@option("--queue", help="Queue or partition.")
@option(
    "-o",
    "--output",
    "target",
    metavar="JOB.sh",
    required=True,
    type=PATH,
    help="File to write the script to.",
)
@option("--force", is_flag=True, help="Replace the script if it exists.")
def script(
    store_path: Path,
    directory: Path,
    scheduler: str,
    nodes: int,
    minutes: int,
    account: str | None,
    queue: str | None,
    target: Path,
    force: bool,
) -> None:
    """Write a job script that samples, and resubmits itself until everything is done.

    Example: ioprism write-time sample script --store runs.db --directory /scratch/me
    --scheduler slurm --nodes 128 -o sample.sh
    """
    job = Job(store_path, directory, target, nodes, minutes, account, queue)
    atomic_write_text(target, job_script(scheduler, job), replace=force)
    output.say_written(target)


def _announce(quiet: bool) -> Announce:
    if quiet or not sys.stderr.isatty():
        return lambda _: None
    return output.say


@click.command("import")
@click.argument("path", metavar="RUNS", type=PATH)
@option("--system", "system_name", metavar="NAME|FILE.toml", help="System the runs are from.")
@inputs.store
@option("--skip-bad", is_flag=True, help="Skip bad rows instead of rejecting the file.")
@options.as_json
@options.quiet
def import_(
    path: Path,
    system_name: str | None,
    store_path: Path,
    skip_bad: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add runs from a CSV table, or from IOR results as JSON or text.

    Either all runs of the file are added or none. A new store needs --system.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """
    imported = write_time.import_runs(path, store_path, system=system_name, skip_bad=skip_bad)
    runs, samples, warnings = (
        len(imported.file.runs),
        imported.samples_in_store,
        imported.file.warnings,
    )
    if as_json:
        body = {"imported": {"runs": runs, "samples_in_store": samples}}
        click.echo(
            to_json.document_of(
                body, paths=[path], format_name=imported.file.format, warnings=warnings
            )
        )
        return
    output.show_warnings(warnings)
    if not quiet:
        output.say(f"{runs} runs added; the store has {samples} samples")
