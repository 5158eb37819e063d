"""``ioprism schedule``: what would jobs gain if the file system served them in turn?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, NumberRange, option
from ioprism.formats.beside_trace import read_workload
from ioprism.formats.registry import job_groups
from ioprism.reports import to_json
from ioprism.reports.to_html import schedule as html_form
from ioprism.reports.to_terminal.site import show_schedule
from ioprism.scheduling.policies import POLICIES
from ioprism.scheduling.result import Schedule
from ioprism.scheduling.steps import (
    SOURCES,
    ScheduleSettings,
    jobs_of_store,
    jobs_of_traces,
    schedule_jobs,
    schedule_workload,
)
from ioprism.storage.atomic import atomic_write_text
from ioprism.units import parse_bytes

EXAMPLE = """\
bandwidth = "10GB"        # of the file system, per second
horizon = 8000            # seconds to simulate

[[jobs]]
name = "fast"
count = 4                 # equal jobs
period = 10               # seconds from one phase to the next, alone on the machine
io_share = 0.07           # of the period spent in I/O; or give bytes = "5GB"

[[jobs]]
name = "slow"
count = 4
period = 1000
io_share = 0.07
nodes = 64
variation = 0.05          # of the computing time, from step to step
spread = 0.2              # of the period, from job to job
"""


@click.command(cls=Command)
@click.argument("paths", metavar="[JOBS]...", nargs=-1, type=PATH)
@option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(list(POLICIES)),
    help="Policy to simulate; by default all.",
)
@option(
    "--phases",
    multiple=True,
    type=click.Choice(SOURCES),
    default=("given", "live"),
    help="Source of the periods: as given, as ioprism finds them live, or as FTIO does.",
)
@option("--bandwidth", metavar="SIZE", help="Bandwidth of the file system per second, as 10GB.")
@option("--horizon", type=NumberRange(min=0.0, min_open=True), help="Seconds to simulate.")
@option("--seeds", type=click.IntRange(1, 1000), default=5, help="How often to draw the jobs.")
@option("--ftio-python", type=PATH, help="Python that has FTIO, for --phases ftio.")
@option("--example", is_flag=True, help="Print an example of a workload and exit.")
@options.page
@options.anonymise
@options.as_json
@options.quiet
def schedule(
    paths: tuple[Path, ...],
    *,
    policies: tuple[str, ...],
    phases: tuple[str, ...],
    bandwidth: str | None,
    horizon: float | None,
    seeds: int,
    ftio_python: Path | None,
    example: bool,
    page: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate a machine whose jobs share the file system, under several policies.

    JOBS is a workload (TOML), a site store, or traces of two jobs or more; without it, jobs with
    periods of about 10, 100 and 1000 s are drawn.

    Example: ioprism schedule workload.toml --seeds 20 -o schedule.html
    """
    if example:
        click.echo(EXAMPLE, nl=False)
        return
    settings = ScheduleSettings(
        policies=policies or tuple(POLICIES),
        phases=phases,
        seeds=seeds,
        bandwidth=None if bandwidth is None else float(parse_bytes(bandwidth)),
        horizon=horizon,
        ftio_python=ftio_python,
    )
    with output.progress("simulating", quiet=quiet):
        result = _schedule(paths, settings)
    if page is not None:
        atomic_write_text(page, html_form.page(result), replace=force)
    if as_json:
        click.echo(to_json.document_of(result.to_dict(), paths=paths, format_name="workload"))
    else:
        show_schedule(result, output.console())
    output.say_written(page, quiet=quiet)


def _schedule(paths: tuple[Path, ...], settings: ScheduleSettings) -> Schedule:
    if not paths:
        return schedule_workload(None, settings)
    source = ", ".join(path.name for path in options.shown_paths(paths))
    if len(paths) == 1 and paths[0].suffix == ".toml":
        return schedule_workload(read_workload(paths[0]), settings, source=source)
    if len(paths) == 1 and (paths[0] / "ioprism-site.json").is_file():
        return schedule_jobs(jobs_of_store(paths[0]), settings, source=source)
    jobs = jobs_of_traces(job_groups(paths))
    return schedule_jobs(jobs, settings, source=source)
