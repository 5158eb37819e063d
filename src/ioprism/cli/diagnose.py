"""``ioprism diagnose``: what stalls the job, and what a fix would save."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, NumberRange, option
from ioprism.diagnosis.steps import DiagnosisOptions
from ioprism.diagnosis.steps import diagnose as judge
from ioprism.errors import CannotJudgeError
from ioprism.reports import to_json

FAILED = 3  # exit code when --fail-on was met


@click.command(cls=Command)
@options.traces
@options.format_name
@option("--top", type=click.IntRange(1), help="Show at most this many causes.")
@option(
    "--fail-on",
    metavar="SHARE",
    type=NumberRange(0.0, 1.0),
    help="Exit with code 3 if the causes cost at least this share (0 to 1) of the run time.",
)
@option(
    "--layout",
    "layout_file",
    metavar="FILE",
    type=PATH,
    help="Storage targets of the files: CSV path,targets[,stripe_size], or `lfs getstripe -r`.",
)
@options.ceilings
@option(
    "--model",
    "model_file",
    metavar="FILE",
    type=PATH,
    help="A write-time model (`ioprism write-time train`): how long writes take at best.",
)
@options.servers
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
    layout_file: Path | None,
    ceilings: tuple[Path, ...],
    model_file: Path | None,
    servers: Path | None,
    site: Path | None,
    engine_options: options.EngineOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what stalls a job, which cause costs most, and what a fix would save. Start here.

    Example: ioprism diagnose run42.darshan --fail-on 0.1
    """
    known = _known_of_site(layout_file, ceilings, model_file, servers, site)
    trace = options.read_job(paths, format_name)
    with output.progress("reading events", quiet=quiet) as progress:
        verdict = judge(trace, options=known, engine=engine_options.make_engine(progress))
    if verdict.status == "cannot-judge" and (verdict.missing or fail_on is not None):
        raise CannotJudgeError(verdict.line, source=paths[0])
    if as_json:
        whole = verdict.to_dict()
        click.echo(to_json.document(trace, {**whole, "causes": whole["causes"][:top]}))
    else:
        from ioprism.reports.to_terminal import diagnose as terminal_form

        terminal_form.show(
            verdict, output.console(), job=trace.job, paths=options.shown_paths(paths), top=top
        )
        output.show_warnings(trace.completeness.warnings)
    if fail_on is not None and verdict.share >= fail_on:
        click.get_current_context().exit(FAILED)


def _known_of_site(
    layout: Path | None,
    ceilings: tuple[Path, ...],
    model: Path | None,
    servers: Path | None,
    site: Path | None,
) -> DiagnosisOptions | None:
    """What a site knows beyond the trace, where anything is given."""
    if not (layout or ceilings or model or servers or site):
        return None
    from ioprism.cli.insights import server_loads
    from ioprism.formats.ceilings import read_ceiling
    from ioprism.formats.layouts import read_layout
    from ioprism.write_time.steps import load_model, seconds_of_writes

    return DiagnosisOptions(
        layout={} if layout is None else read_layout(layout),
        ceilings=[read_ceiling(path) for path in ceilings],
        write_seconds=None if model is None else seconds_of_writes(load_model(model)),
        servers=server_loads(servers),
        site=options.site_history(site),
    )
