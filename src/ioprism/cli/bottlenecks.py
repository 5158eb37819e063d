"""``ioprism bottlenecks`` and ``inspect``: bottlenecks, and what is behind one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ioprism.bottleneck_search.find import Inspection
from ioprism.bottleneck_search.result import LABELS, METRICS, Settings
from ioprism.bottleneck_search.rule_language.load import rules
from ioprism.bottleneck_search.steps import Source, make_settings
from ioprism.cli.diagnose import servers_option
from ioprism.command import options, output
from ioprism.command.options import PATH, TABLE, Command, Number, option, stack_decorators
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.insights import with_background_load
from ioprism.errors import ExpressionError, UsageError
from ioprism.formats.tables.export import write_table
from ioprism.inspection import FindingInspection, inspected_finding, rule_called
from ioprism.model.machine import ServerLoads
from ioprism.reports import to_json
from ioprism.reports.to_terminal.bottlenecks import show_bottlenecks
from ioprism.reports.to_terminal.inspect import show_inspection
from ioprism.settings import read_thresholds
from ioprism.text import printable
from ioprism.views.call_class import meanings


def _list_views(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for name, meaning in meanings().items():
            click.echo(f"{name:12} {meaning}")
        ctx.exit()


_DECLARED = [
    option("--views", metavar="NAMES",
           help="Views, separated by commas; see --list-views. Default: application, "
           "directory, file, process, time; with --method slope: process, file, time."),
    option("--method", type=click.Choice(["excess", "slope"]), default="excess",
           help="One list by seconds above peers, or WisIO's angles for each view."),
    option("--metric", default="operations", metavar="NAME",
           help="What to compare time with: operations, bytes, time, or an expression."),
    option("--threshold", type=Number(), default=45.0,
           help="Angle in degrees above which a record is a bottleneck."),
    option("--percentile", type=Number(),
           help="Use this percentile (0 to 1) instead of the threshold."),
    option("--floor", type=Number(),
           help="Omit records below this share of the I/O time; 0 keeps all. Default: "
           "0.02; with --method slope: 0.001."),
    option("--time-bucket", "bucket", type=Number(), default=1.0,
           help="Length of one record of the time view, in seconds."),
    option("--combine", type=click.Choice(["drill", "cross"]),
           help="With --method slope: drill down through the views (default), or cross all "
           "combinations of them."),
    option("--across", type=click.Choice(["max", "sum"]), default="max",
           help="Time of a record: that of its slowest process, or the sum over all."),
    option("--layer", default="deepest",
           help="Interface to analyse: deepest, all, posix, mpiio, …"),
    option("--compatible", type=click.Choice(["wisio"]),
           help="Count as WisIO 0.2.2 does, including its inverted threshold."),
    option("--rules", "rule_files", multiple=True, metavar="FILE",
           type=PATH,
           help="File that changes or adds rules; may be repeated."),
    option("--stages", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
           envvar="IOPRISM_STAGES",
           help="Cache the main view here and reuse it next time."),
]  # fmt: skip


def _papers_own(chosen: dict[str, Any]) -> bool:
    """Whether something is asked for that only the paper's method has."""
    own_metric = chosen["metric"] not in METRICS
    return own_metric or chosen["percentile"] is not None or chosen["combine"] is not None


def looking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets `settings`, `compatible`, `rule_files` and `stages`."""

    @wraps(command)
    def with_settings(*args: Any, views: str | None, method: str, **others: Any) -> Any:  # noqa: ANN401
        names = tuple(name.strip() for name in (views or "").split(",") if name.strip())
        compatible = others.get("compatible") is not None
        slope = method == "slope" or compatible or _papers_own(others)
        chosen = {
            name: others.pop(name)
            for name in ("metric", "threshold", "percentile", "floor", "bucket", "combine",
                         "across", "layer")
        }  # fmt: skip
        chosen["combine"] = chosen["combine"] or "drill"
        try:
            settings = make_settings(views=names, method="slope" if slope else "excess", **chosen)
        except ExpressionError as error:
            raise UsageError(f"--metric: {error}") from error
        return command(*args, settings=settings, **others)

    return stack_decorators(*_DECLARED)(with_settings)


@click.command(cls=Command)
@options.traces
@options.format_name
@looking
@option(
    "--top",
    default=20,
    type=click.IntRange(0),
    help="Number of bottlenecks to show for each view; 0 shows all.",
)
@option("--page", default=1, type=click.IntRange(1), help="Page of results to show.")
@option(
    "--export",
    "target",
    type=TABLE,
    metavar="FILE",
    help="Write all bottlenecks with every field to a .csv or .parquet file.",
)
@option("--force", is_flag=True, help="Replace the exported file if it exists.")
@option(
    "--fail-on",
    type=click.Choice(LABELS[:-1]),
    metavar="LABEL",
    help="Exit with code 3 if there is a bottleneck of this label or worse.",
)
@option(
    "--list-views",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_views,
    help="Explain the views and exit.",
)
@options.engine
@options.as_json
@options.quiet
def bottlenecks(
    paths: tuple[Path, ...],
    format_name: str | None,
    settings: Settings,
    compatible: str | None,
    rule_files: tuple[Path, ...],
    stages: Path | None,
    top: int,
    page: int,
    target: Path | None,
    force: bool,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what costs more seconds than its peers, from every perspective, and why.

    One list over all views: records that cover the same calls are one. With --method slope,
    every ordered combination of the views is listed; a record's severity is then the angle
    of its share of time over its share of operations, where 45 degrees means in proportion.

    Example: ioprism bottlenecks run42.darshan --views file,time --top 5
    """  # fmt: skip
    known = rules(*rule_files)
    per_view = top or None
    with output.progress("reading events", quiet=quiet) as progress:
        looked_at = Source(paths, format_name, stages, options.grouping(), options.reading()).stage(
            settings, options.make_engine(progress), like_wisio=compatible is not None
        )
        result = looked_at.bottlenecks(known, top=per_view, page=page, fold=not as_json)
    if target is not None:
        write_table(result.to_frame(), target, replace=force)
    if as_json:
        body = {**result.to_dict(), "page": {"number": page, "per_view": per_view}}
        click.echo(to_json.document(looked_at.trace, body))
    else:
        output.show_job(looked_at.trace, options.shown_paths(paths))
        show_bottlenecks(result, output.console(), page=page, top=per_view)
        output.show_warnings(looked_at.trace)
    output.say_written(target, quiet=quiet)
    output.fail_if(fail_on is not None and result.worst_label_at_least(fail_on))


OF_BOTTLENECKS = frozenset(
    {"views", "method", "metric", "threshold", "percentile", "floor", "bucket",
     "combine", "across", "layer", "compatible", "rule_files", "stages"}
)  # fmt: skip
OF_FINDINGS = frozenset({"thresholds_file", "servers"})


@click.command(cls=Command)
@options.traces
@click.argument("identifier", metavar="ID")
@options.format_name
@looking
@options.thresholds_file
@servers_option
@options.engine
@options.as_json
@options.quiet
def inspect(
    paths: tuple[Path, ...],
    identifier: str,
    format_name: str | None,
    settings: Settings,
    compatible: str | None,
    rule_files: tuple[Path, ...],
    stages: Path | None,
    thresholds_file: Path | None,
    servers: ServerLoads | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what is behind a bottleneck or finding: files, processes, times, longest calls.

    ID is one that `ioprism bottlenecks` prints for the same traces and options, or the code of
    a finding of `ioprism insights`. Findings take the options --thresholds and --servers of
    `ioprism insights`; the options of `ioprism bottlenecks` are for bottlenecks.

    Example: ioprism inspect run42.darshan small-writes
    """
    if len(paths) == 1 and Path(identifier).exists() and not paths[0].exists():
        raise click.UsageError(
            f"the trace comes before the ID.\nHint: ioprism inspect {identifier} {paths[0]}"
        )
    rule = rule_called(identifier)
    if rule is None:
        _refuse(OF_FINDINGS, f"{printable(identifier)[:40]!r} is not the code of a finding")
    else:
        _refuse(OF_BOTTLENECKS, f"{rule.code!r} is a finding, not a bottleneck")
    with output.progress("reading events", quiet=quiet) as progress:
        engine = options.make_engine(progress)
        source = Source(paths, format_name, stages, options.grouping(), options.reading())
        if rule is None:
            known = rules(*rule_files)
            looked_at = source.stage(settings, engine, like_wisio=compatible is not None)
            trace = looked_at.trace
            inspection: Inspection | FindingInspection = looked_at.inspect(
                identifier, known, engine, source
            )
        else:
            trace = options.read_job(paths, format_name)
            evidence = evidence_of_trace(trace, engine, read_thresholds(thresholds_file))
            evidence = with_background_load(evidence, servers)
            inspection = inspected_finding(rule, evidence, trace, engine)
    if as_json:
        click.echo(to_json.document(trace, inspection.to_dict()))
    else:
        show_inspection(inspection, output.console())
        output.show_warnings(trace)


def _refuse(names: Collection[str], why: str) -> None:
    """Refuse options that were given and would change nothing.

    Raises:
        UsageError: there are such options; those from the environment do not count.
    """
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in names
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(
            f"{', '.join(given)} would change nothing: {why}.\n"
            f"Hint: leave {'it' if len(given) == 1 else 'them'} out."
        )
