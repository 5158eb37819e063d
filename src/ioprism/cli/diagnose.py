"""``ioprism diagnose``, ``insights`` and ``rules``: what stalls a job and what is unusual."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, option, when_given
from ioprism.diagnosis.insights import Failed, JudgedJob, jobs_body, judge_group, judge_many
from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.registry import LEVELS, Insights, all_rules
from ioprism.diagnosis.rules.rule import Rule
from ioprism.diagnosis.steps import DiagnosisOptions, diagnose_observed
from ioprism.errors import BrokenTraceError, CannotJudgeError
from ioprism.model.pseudonyms import shown_message
from ioprism.model.verdict import Severity
from ioprism.reports import to_json
from ioprism.settings import Thresholds
from ioprism.units import format_counted

if TYPE_CHECKING:
    from ioprism.diagnosis.steps import JobHistory
    from ioprism.model.machine import Ceiling, ServerLoads
    from ioprism.model.trace import Trace
    from ioprism.model.usage import Striping


def open_servers(store: Path) -> ServerLoads | None:
    """Open a store of server counters once, rather than for every job."""
    from ioprism.servers.load import stored_loads

    return stored_loads(store)


servers_option = option(
    "--servers",
    metavar="STORE",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    callback=when_given(open_servers),
    help="Store of the servers' counters (`ioprism servers ingest`): were other jobs busy?",
)


def _read_layout(file: Path) -> Mapping[str, Striping]:
    from ioprism.formats.beside_trace import read_layout

    return read_layout(file)


def _write_seconds(model: Path) -> Callable[[Trace], float]:
    from ioprism.write_time.steps import load_model, seconds_of_writes

    return seconds_of_writes(load_model(model))


@click.command(cls=Command)
@options.traces
@options.format_name
@option("--top", type=click.IntRange(1), help="Show at most this many causes.")
@option(
    "--fail-on",
    metavar="SHARE",
    type=options.Share(most=1.0),
    help="Exit with code 3 if the causes cost at least this share of the run time, such as 10%.",
)
@option(
    "--layout",
    metavar="FILE",
    type=PATH,
    callback=when_given(_read_layout, otherwise={}),
    help="Storage targets of the files: CSV path,targets[,stripe_size], or `lfs getstripe -r`.",
)
@options.ceilings
@option(
    "--model",
    "write_seconds",
    metavar="FILE",
    type=PATH,
    callback=when_given(_write_seconds),
    help="A write-time model (`ioprism write-time train`): how long writes take at best.",
)
@servers_option
@options.site
@options.engine
@options.as_json
@options.quiet
def diagnose(
    paths: tuple[Path, ...],
    *,
    format_name: str | None,
    top: int | None,
    fail_on: float | None,
    layout: Mapping[str, Striping],
    ceilings: list[Ceiling],
    write_seconds: Callable[[Trace], float] | None,
    servers: ServerLoads | None,
    site: JobHistory | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what stalls a job, which cause costs most, and what a fix would save. Start here.

    Example: ioprism diagnose run42.darshan --fail-on 10%
    """
    known = DiagnosisOptions(layout, ceilings, write_seconds, servers, site)
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        verdict, _ = diagnose_observed(trace, options=known, engine=options.make_engine(progress))
    if verdict.status == "cannot-judge" and (verdict.missing or fail_on is not None):
        raise CannotJudgeError(verdict.line, source=paths[0])
    if as_json:
        whole = verdict.to_dict()
        click.echo(to_json.document(trace, {**whole, "causes": whole["causes"][:top]}))
    else:
        from ioprism.reports.to_terminal.diagnose import show_diagnosis

        show_diagnosis(
            verdict,
            output.console(),
            job=trace.job,
            paths=options.shown_paths(paths),
            hosts=trace.population.hosts if trace.partitions else None,  # counters name none
            top=top,
        )
        output.show_warnings(trace.completeness.warnings)
    output.fail_if(fail_on is not None and verdict.share >= fail_on)


LEVEL = click.Choice([level.value for level in Severity])


@click.command(cls=Command)
@options.traces
@options.format_name
@option("--min-level", type=LEVEL, default="ok", help="Show only findings of this level or worse.")
@options.thresholds
@servers_option
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
    thresholds: Thresholds,
    servers: ServerLoads | None,
    site: JobHistory | None,
    everything: bool,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what is wrong with a job's I/O, how much time it costs, and what to do about it.

    Several traces, or a folder of them, become a table of jobs and findings.

    Example: ioprism insights run42.darshan --min-level warn
    """
    jobs_of_paths = options.find_groups(paths, format_name)
    level = Severity(min_level)
    alone = len(jobs_of_paths) == 1
    with output.progress("reading events" if alone else "judging jobs", quiet=quiet) as progress:
        known: dict[str, Any] = {
            "thresholds": thresholds, "format_name": format_name, "reading": options.reading(),
            "servers": servers, "site": site, "progress": progress,
        }  # fmt: skip
        if alone:
            jobs = [judge_group(jobs_of_paths[0], **known)]
        else:
            results = list(judge_many(jobs_of_paths, **known))
    if alone:
        _show_one(jobs[0], level, as_json=as_json, everything=everything)
    else:
        jobs = [result for result in results if isinstance(result, JudgedJob)]
        failures = [shown_message(one.message) for one in results if isinstance(one, Failed)]
        _show_many(jobs, failures, paths, level, as_json=as_json, everything=everything)
    if fail_on is not None:
        reach = LEVELS[: LEVELS.index(Severity(fail_on)) + 1]
        output.fail_if(any(f.severity in reach for job in jobs for f in job.insights.findings))


def _at_level(insights: Insights, level: Severity) -> Insights:
    if level is LEVELS[-1]:
        return insights
    return replace(insights, findings=insights.at_least(level))


def _show_one(judged: JudgedJob, level: Severity, *, as_json: bool, everything: bool) -> None:
    shown = replace(judged, insights=_at_level(judged.insights, level))
    if as_json:
        text = to_json.document_of(
            shown.to_dict(), paths=judged.paths, format_name=judged.format, warnings=judged.warnings
        )
        click.echo(text)
        return
    from ioprism.reports.to_terminal.diagnose import show_insights

    show_insights(
        shown.insights, judged.job, output.console(), everything=everything, paths=judged.paths
    )
    output.show_warnings(judged.warnings)


def _show_many(
    jobs: list[JudgedJob],
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
        shown_jobs = [replace(job, insights=_at_level(job.insights, level)) for job in jobs]
        formats = "+".join(dict.fromkeys(job.format for job in jobs))
        text = to_json.document_of(
            jobs_body(shown_jobs, failures), paths=paths, format_name=formats, warnings=failures
        )
        click.echo(text)
        return
    from ioprism.reports.to_terminal.diagnose import show_jobs

    shown = [(j.paths, j.job, _at_level(j.insights, level)) for j in jobs]
    show_jobs(shown, output.console(), everything=everything)
    output.show_warnings(failures)


@click.group(invoke_without_command=True)
@option("--thresholds", "limits", is_flag=True, help="List the thresholds instead.")
@options.as_json
@click.pass_context
def rules(context: click.Context, limits: bool, as_json: bool) -> None:
    """List every rule of `ioprism insights`: code, level, question, and its name in other tools.

    Example: ioprism rules --thresholds
    """
    if context.invoked_subcommand is not None:
        return
    if as_json:
        click.echo(to_json.plain_document(_body(all_rules())))
        return
    from ioprism.reports.to_terminal import inspect

    if limits:
        inspect.show_thresholds(output.console())
    else:
        inspect.show_rules(all_rules(), output.console())


def _body(known: Iterable[Rule]) -> dict[str, Any]:
    """Every rule and every threshold."""
    return {
        "rules": [
            {
                "code": rule.code,
                "level": rule.level.value,
                "interface": rule.interface,
                "question": wording.question(rule.advice, rule.direction),
                "thresholds": list(rule.thresholds),
                "aliases": list(rule.aliases),
                "advice": f"{rule.advice}.toml",
            }
            for rule in known
        ],
        "thresholds": [
            {"name": limit.name, "default": limit.default, **limit.metadata}
            for limit in fields(Thresholds)
        ],
    }


def _list_fields(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from ioprism.views.records import FIELDS

        for field in FIELDS.values():
            click.echo(f"{field.name:24} {field.unit or '-':2} {field.meaning}")
        ctx.exit()


@rules.command()
@click.argument("path", metavar="FILE", type=PATH)
@option(
    "--fields",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_fields,
    help="List the fields that rules may use, and exit.",
)
def check(path: Path) -> None:
    """Check a file of bottleneck rules (TOML or YAML) without running anything.

    Example: ioprism rules check my-rules.toml
    """  # fmt: skip
    from ioprism.bottleneck_search.rule_language.load import read_rules

    read = read_rules(path)
    on = sum(rule is not None for rule in read.rules.values())
    click.echo(f"{path}: {format_counted(on, 'rule')} valid, {len(read.rules) - on} switched off.")
