"""``ioprism write-time sample`` and ``import``: runs for a model to learn from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Decorator, NumberRange, option
from ioprism.errors import UsageError
from ioprism.model.samples import ACCESSES
from ioprism.recording.schedulers import SCHEDULERS
from ioprism.reports import to_json
from ioprism.storage.atomic import atomic_write_text
from ioprism.units import parse_bytes
from ioprism.write_time import steps, terminal
from ioprism.write_time.launchers import LAUNCHERS
from ioprism.write_time.machine import SamplingJob, job_script
from ioprism.write_time.sampling import SCALES, PlanSettings, SessionLimits


class Size(click.ParamType[int]):
    """A size such as 512MB, in bytes; at least one."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size."""
        size = value if isinstance(value, int) else parse_bytes(str(value))
        if size < 1:
            self.fail(f"{value} is not positive.\nHint: write for example 512MB.", param, ctx)
        return size


SIZE = Size()
SECONDS = NumberRange(0, min_open=True)
store_option: Decorator = option("--store", metavar="S.db", required=True, type=PATH,
                                 help="Database file of the runs.")  # fmt: skip
DIRECTORY_HELP = "Folder to write to, on the file system to measure."


@click.group()
def sample() -> None:
    """Plan and run writes that a model can learn from.

    Example: ioprism write-time sample plan --system machine.toml --store runs.db
    """


@sample.command()
@option("--system", metavar="NAME|FILE.toml", help="System to sample; needed for a new store.")
@store_option
@option("--scales", default=",".join(map(str, SCALES)), help="Node counts.")
@option("--max-burst", "largest_burst", type=SIZE, metavar="SIZE",
        help="Largest burst of a process.")  # fmt: skip
@option("--max-bytes", "most_bytes", type=SIZE, metavar="SIZE", help="Most bytes of a run.")
@option("--access", default=ACCESSES[0], type=click.Choice(ACCESSES),
        help="Write or read, with a file per process or one shared file.")  # fmt: skip
@option("--rounds", default=1, type=click.IntRange(1, 100),
        help="Times to go through the templates.")  # fmt: skip
@option("--rate", type=SIZE, metavar="SIZE",
        help="Expected write rate of a node, in bytes per second.")  # fmt: skip
@option("--placements", is_flag=True,
        help="Choose the nodes of each run; by default the scheduler does.")  # fmt: skip
@options.seed
@option("--skip-short", is_flag=True, help="Leave out writes that are too short to count.")
@option("--dry-run", is_flag=True, help="Only show the cost.")
@options.as_json
def plan(
    system: str | None,
    store: Path,
    scales: str,
    rate: int | None,
    skip_short: bool,
    dry_run: bool,
    as_json: bool,
    **settings: Any,  # noqa: ANN401 - as `PlanSettings` has them
) -> None:
    """Choose write patterns from published templates, and show what they will cost.

    Example: ioprism write-time sample plan --system machine.toml --store runs.db --max-burst 1GB
    """
    planned = steps.plan(
        store,
        PlanSettings(scales=_scales(scales), **settings),
        system=system,
        rate=rate,
        skip_short=skip_short,
        dry_run=dry_run,
    )
    warnings = terminal.plan_warnings(planned)
    if as_json:
        body = {"plan": planned.to_dict()}
        click.echo(to_json.document_of(body, paths=[store], format_name="plan", warnings=warnings))
        return
    terminal.show_plan(planned, output.console())
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
@store_option
@option("--directory", required=True, help=DIRECTORY_HELP,
        type=click.Path(exists=True, file_okay=False, path_type=Path))  # fmt: skip
@option("--launcher", default="auto", type=click.Choice(LAUNCHERS),
        help="How to start IOR; builtin writes from the cores of this node, without "
        "IOR.")  # fmt: skip
@option("--max-runs", "runs", type=click.IntRange(1), help="Stop after this many runs.")
@option("--time-limit", "seconds", type=SECONDS, metavar="SECONDS",
        help="Start no run after this many seconds.")  # fmt: skip
@option("--timeout", type=SECONDS, metavar="SECONDS",
        help="Stop a run that takes longer; default: 20 times what is expected, at least "
        "600.")  # fmt: skip
@option("--pause", default=SessionLimits().pause, type=NumberRange(0), metavar="SECONDS",
        help="Seconds to wait after a round in which every run failed.")  # fmt: skip
@option("--fail-on", type=click.Choice(["waiting"]),
        help="Exit with code 3 if another session would make progress; for job "
        "scripts.")  # fmt: skip
@options.as_json
@options.quiet
@click.pass_context
def run(
    context: click.Context,
    /,
    store: Path,
    directory: Path,
    launcher: str,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
    **limits: Any,  # noqa: ANN401 - as `SessionLimits` has them
) -> None:
    """Run the planned writes until every mean has converged; resumes where it stopped.

    Every run writes its files into a separate folder, and removes them. A run that is refused,
    hangs or ends without a result is noted, and its pattern is tried again later.

    Example: ioprism write-time sample run --store runs.db --directory /scratch/me
    """
    silent = quiet or not sys.stderr.isatty()
    done = steps.sample(
        store,
        directory,
        launcher=launcher,
        limits=SessionLimits(**limits),
        announce=(lambda _: None) if silent else output.say,
    )
    warnings = terminal.sampling_warnings(done)
    if as_json:
        body = {"sampling": done.to_dict()}
        click.echo(to_json.document_of(body, paths=[store], format_name="store", warnings=warnings))
    else:
        terminal.show_progress(done, output.console())
        output.show_warnings(warnings)
    if fail_on and done.worth_another:
        context.exit(3)


@sample.command()
@store_option
@option("--directory", required=True, help=DIRECTORY_HELP,
        type=click.Path(file_okay=False, path_type=Path))  # fmt: skip
@option("--scheduler", required=True, type=click.Choice(list(SCHEDULERS)),
        help="Batch system of the script.")  # fmt: skip
@option("--nodes", required=True, type=click.IntRange(1), help="Number of nodes of each job.")
@option("--minutes", default=60, type=click.IntRange(10), help="Time limit of each job.")
@option("--account", help="Account, project or bank.")
@option("--queue", help="Queue or partition.")
@option("-o", "--output", "script", metavar="JOB.sh", required=True, type=PATH,
        help="File to write the script to.")  # fmt: skip
@option("--force", is_flag=True, help="Replace the script if it exists.")
def script(scheduler: str, script: Path, force: bool, **job: Any) -> None:  # noqa: ANN401
    """Write a job script that samples, and resubmits itself until everything is done.

    Example: ioprism write-time sample script --store runs.db --directory /scratch/me
    --scheduler slurm --nodes 128 -o sample.sh
    """
    text = job_script(scheduler, SamplingJob(script=script, **job))
    atomic_write_text(script, text, replace=force)
    output.say_written(script)


@click.command("import")
@click.argument("path", metavar="RUNS", type=PATH)
@option("--system", metavar="NAME|FILE.toml", help="System the runs are from.")
@store_option
@option("--skip-bad", is_flag=True, help="Skip bad rows instead of rejecting the file.")
@options.as_json
@options.quiet
def import_runs(
    path: Path, system: str | None, store: Path, skip_bad: bool, as_json: bool, quiet: bool
) -> None:
    """Add runs from a CSV table, or from IOR results as JSON or text.

    Either all runs of the file are added or none. A new store needs --system.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """
    imported = steps.import_runs(path, store, system=system, skip_bad=skip_bad)
    file, samples = imported.file, imported.samples_in_store
    if as_json:
        body = {"imported": {"runs": len(file.runs), "samples_in_store": samples}}
        click.echo(
            to_json.document_of(body, paths=[path], format_name=file.format, warnings=file.warnings)
        )
        return
    output.show_warnings(file.warnings)
    if not quiet:
        output.say(f"{len(file.runs)} runs added; the store has {samples} samples")
