"""``ioprism write-time sample``: measure writes for a model to learn from."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ioprism.analyses.write_time.convergence import converged, finished
from ioprism.analyses.write_time.sampling import SCALES, PlanSettings, cost, plan
from ioprism.analyses.write_time.system import System
from ioprism.campaign.launchers import LAUNCHERS, find_launcher
from ioprism.campaign.sampler import Announce, Progress, StopRule, allocated_hosts
from ioprism.campaign.sampler import sample as measure
from ioprism.cli import options, output
from ioprism.cli.write_time import inputs
from ioprism.errors import AnalysisError, UsageError
from ioprism.reports.to_json import write_time as json_form
from ioprism.reports.to_terminal import write_time as terminal_form
from ioprism.storage.run_store import open_store

ASSUMED_RATE = 1e9  # bytes per second and node, until something was measured


@click.group()
def sample() -> None:
    """Plan and run writes that a model can learn from.

    Example: ioprism write-time sample plan --system machine.toml --store runs.db
    """


@sample.command("plan")
@click.option("--system", "system_name", metavar="NAME|FILE.toml", help="For a new store.")
@inputs.store
@click.option("--scales", default=",".join(map(str, SCALES)), show_default=True, help="Nodes.")
@click.option("--max-burst", type=inputs.Size(), metavar="SIZE", help="Largest burst.")
@click.option("--max-bytes", type=inputs.Size(), metavar="SIZE", help="Most bytes of one run.")
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1, 100))
@click.option("--rate", type=inputs.Size(), metavar="SIZE", help="Bytes per second of one node.")
@click.option("--placements", is_flag=True, help="Draw node lists; else the scheduler decides.")
@click.option("--seed", default=1, show_default=True)
@click.option("--dry-run", is_flag=True, help="Only tell the cost.")
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
    dry_run: bool,
    as_json: bool,
) -> None:
    """Choose patterns after the paper's templates, and tell what they will cost.

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
    system = _system(system_name, store_path)
    patterns = plan(system, settings)
    added, measured = 0, None
    if not dry_run:
        with open_store(store_path, create_for=(system.name, system.text)) as runs:
            added, measured = runs.add_plan(patterns), runs.measured_rate()
    speed = rate or measured or ASSUMED_RATE
    rate_is = "as you say" if rate else "as measured so far" if measured else "a guess: say --rate"
    found = cost(patterns, system, rate=speed)
    if as_json:
        body = json_form.cost(found, rate=speed, rate_is=rate_is, added=added)
        click.echo(json_form.document(body, paths=[store_path], format_name="plan"))
    else:
        console = output.console()
        terminal_form.show_cost(found, console, rate=speed, rate_is=rate_is, added=added)


def _system(name: str | None, store_path: Path) -> System:
    if name is not None:
        return inputs.load_system(name)
    if not store_path.exists():
        raise UsageError("a new store needs --system.\nHint: name one, or a description's file.")
    with open_store(store_path) as runs:
        return inputs.system_of(runs)


def _scales(text: str) -> tuple[int, ...]:
    try:
        scales = tuple(int(part) for part in text.split(","))
    except ValueError:
        scales = ()
    if not scales or min(scales) < 1:
        raise UsageError(f"{text!r} is no list of node counts.\nHint: write for example 1,2,4.")
    return scales


@sample.command()
@inputs.store
@click.option(
    "--directory",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where to write; on the file system to measure.",
)
@click.option(
    "--launcher",
    default="auto",
    show_default=True,
    type=click.Choice(LAUNCHERS),
    help="Start IOR through srun or mpirun, or write from this node's own cores.",
)
@click.option("--max-runs", type=click.IntRange(1), help="Stop after so many runs.")
@options.as_json
@options.quiet
def run(
    store_path: Path,
    directory: Path,
    launcher: str,
    max_runs: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run what is planned until every mean has converged; goes on where it was stopped.

    Every run writes files of its own into a folder of its own, and removes them.

    Example: ioprism write-time sample run --store runs.db --directory /scratch/me
    """
    with open_store(store_path) as runs:
        system = inputs.system_of(runs)
        if not runs.planned():
            raise AnalysisError(
                f"{store_path}: nothing is planned.\nHint: `ioprism write-time sample plan` plans."
            )
        rule = system.sampling
        hosts = allocated_hosts(system.hostname)
        done = measure(
            runs,
            rule=StopRule(lambda t: converged(t, rule), lambda t: finished(t, rule)),
            launcher=find_launcher(launcher, hosts=hosts),
            folder=directory,
            hosts=hosts if launcher != "mpirun" else {},
            most_runs=max_runs,
            announce=_announce(quiet),
        )
    _show(done, store_path, as_json=as_json)


def _announce(quiet: bool) -> Announce:
    if quiet or not sys.stderr.isatty():
        return lambda _: None
    return lambda text: click.echo(text, err=True)


def _show(done: Progress, store_path: Path, *, as_json: bool) -> None:
    warnings = [f"{count} patterns cannot run here: {why}" for why, count in done.obstacles.items()]
    if as_json:
        body = {
            "sampling": {
                "runs": done.runs,
                "converged": done.converged,
                "unconverged": done.unconverged,
                "waiting": done.waiting,
                "discarded": done.discarded,
            }
        }
        click.echo(
            json_form.document(body, paths=[store_path], format_name="store", warnings=warnings)
        )
        return
    terminal_form.show_progress(done, output.console())
    inputs.show_warnings(warnings)
