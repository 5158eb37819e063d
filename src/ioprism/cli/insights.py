"""``ioprism insights``: what is wrong with a job's I/O, and what to do about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ioprism.command import options, output
from ioprism.command.options import Command, option
from ioprism.diagnosis.insights import Failed, Judged, jobs_body, judge_group, judge_many
from ioprism.diagnosis.rules.registry import LEVELS, Insights
from ioprism.errors import BrokenTraceError
from ioprism.formats.registry import job_groups
from ioprism.model.pseudonyms import shown_message
from ioprism.model.verdict import Severity
from ioprism.settings import Thresholds, read_thresholds

if TYPE_CHECKING:
    from ioprism.model.machine import ServerLoads

FAILED = 3  # exit code when --fail-on was met
LEVEL = click.Choice([level.value for level in Severity])


@click.command(cls=Command)
@options.traces
@options.format_name
@option("--min-level", type=LEVEL, default="ok", help="Show only findings of this level or worse.")
@options.thresholds
@options.servers
@options.site
@option("--all", "everything", is_flag=True, help="Show every detail and code snippet.")
@option(
    "--fail-on", type=LEVEL, help="Exit with code 3 if there is a finding of this level or worse."
)
@options.as_json
@options.quiet
def insights(
    paths: tuple[Path, ...],
    format_name: str | None,
    min_level: str,
    thresholds_file: Path | None,
    servers: Path | None,
    site: Path | None,
    everything: bool,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what is wrong with a job's I/O, how much time it costs, and what to do about it.

    Several traces, or a folder of them, become a table of jobs and findings.

    Example: ioprism insights run42.darshan --min-level warn
    """
    thresholds = chosen_thresholds(thresholds_file)
    loads, history = server_loads(servers), options.site_history(site)
    jobs_of_paths = job_groups(
        paths, format_name=format_name, grouping=options.grouping(), reading=options.reading()
    )
    level = Severity(min_level)
    if len(jobs_of_paths) == 1:
        with output.progress("reading events", quiet=quiet) as progress:
            judged = judge_group(
                jobs_of_paths[0],
                thresholds=thresholds,
                format_name=format_name,
                reading=options.reading(),
                servers=loads,
                site=history,
                progress=progress,
            )
        jobs, failures = [judged], []
        _show_one(judged, level, as_json=as_json, everything=everything)
    else:
        with output.progress("judging jobs", quiet=quiet) as progress:
            results = list(
                judge_many(
                    jobs_of_paths,
                    thresholds=thresholds,
                    format_name=format_name,
                    reading=options.reading(),
                    servers=loads,
                    site=history,
                    progress=progress,
                )
            )
        jobs = [result for result in results if isinstance(result, Judged)]
        failures = [shown_message(one.message) for one in results if isinstance(one, Failed)]
        _show_many(jobs, failures, paths, level, as_json=as_json, everything=everything)
    if fail_on is not None and _meets(jobs, Severity(fail_on)):
        click.get_current_context().exit(FAILED)


def chosen_thresholds(file: Path | None) -> Thresholds:
    """Return the thresholds of a file, or our own."""
    return Thresholds() if file is None else read_thresholds(file)


def server_loads(store: Path | None) -> ServerLoads | None:
    """Open a store of server counters once, rather than for every job."""
    if store is None:
        return None
    from ioprism.servers.load import stored_loads

    return stored_loads(store)


def _at_level(insights: Insights, level: Severity) -> Insights:
    if level is LEVELS[-1]:
        return insights
    return replace(insights, findings=insights.at_least(level))


def _meets(jobs: list[Judged], level: Severity) -> bool:
    reach = LEVELS[: LEVELS.index(level) + 1]
    return any(f.severity in reach for job in jobs for f in job.insights.findings)


def _show_one(judged: Judged, level: Severity, *, as_json: bool, everything: bool) -> None:
    shown = replace(judged, insights=_at_level(judged.insights, level))
    if as_json:
        from ioprism.reports import to_json

        text = to_json.document_of(
            shown.to_dict(),
            paths=judged.paths,
            format_name=judged.format,
            warnings=judged.warnings,
        )
        click.echo(text)
        return
    from ioprism.reports.to_terminal import insights as terminal_form

    terminal_form.show(
        shown.insights, judged.job, output.console(), everything=everything, paths=judged.paths
    )
    output.show_warnings(judged.warnings)


def _show_many(
    jobs: list[Judged],
    failures: list[str],
    paths: tuple[Path, ...],
    level: Severity,
    *,
    as_json: bool,
    everything: bool,
) -> None:
    if not jobs:
        raise BrokenTraceError(
            f"none of its {len(failures)} logs can be read; the first: {failures[0]}\n"
            "Hint: copy the logs again.",
            source=paths[0],
        )
    if as_json:
        from ioprism.reports import to_json

        shown_jobs = [replace(job, insights=_at_level(job.insights, level)) for job in jobs]
        formats = "+".join(dict.fromkeys(job.format for job in jobs))
        text = to_json.document_of(
            jobs_body(shown_jobs, failures), paths=paths, format_name=formats, warnings=failures
        )
        click.echo(text)
        return
    from ioprism.reports.to_terminal import insights as terminal_form

    shown = [(j.paths, j.job, _at_level(j.insights, level)) for j in jobs]
    terminal_form.show_jobs(shown, output.console(), everything=everything)
    output.show_warnings(failures)
