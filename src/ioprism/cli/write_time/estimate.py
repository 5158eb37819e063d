"""``ioprism write-time estimate``: how long will this write take?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.write_time.estimate import estimate as predict
from ioprism.analyses.write_time.measured_phases import Comparison, compare_phases, phases_of
from ioprism.analyses.write_time.model import WriteTimeModel
from ioprism.cli import options, output
from ioprism.cli.write_time import inputs
from ioprism.errors import NotEnoughDetailError, UsageError
from ioprism.model.samples import WritePattern, parse_node_list
from ioprism.model.trace import Trace
from ioprism.reports.to_json import write_time as json_form
from ioprism.reports.to_terminal import write_time as terminal_form


@click.command()
@inputs.model
@click.option("--nodes", type=click.IntRange(1), help="Nodes that write.")
@click.option("--cores", type=click.IntRange(1), help="Writing cores on each.")
@click.option("--burst", type=inputs.Size(), metavar="SIZE", help="What each core writes: 512MB.")
@click.option("--stripe-count", type=click.IntRange(1), help="Lustre stripes of each file.")
@click.option("--node-list", metavar="LIST", help="Node numbers, such as 0-63,128.")
@click.option(
    "--trace",
    "trace_path",
    metavar="TRACE",
    type=click.Path(path_type=Path),
    help="Take nodes, cores and bursts from a trace's write phases, and compare.",
)
@click.option(
    "--gap",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds without writes that end a phase of the trace.",
)
@options.format_name
@options.as_json
def estimate(
    model_path: Path,
    nodes: int | None,
    cores: int | None,
    burst: int | None,
    stripe_count: int | None,
    node_list: str | None,
    trace_path: Path | None,
    gap: float,
    format_name: str | None,
    as_json: bool,
) -> None:
    """Predict the time of a write, with an interval and what decides it.

    Example: ioprism write-time estimate --model model.json --nodes 256 --cores 16 --burst 512MB
    """
    placed = parse_node_list(node_list) if node_list else None
    if trace_path is None:
        nodes = nodes or (len(placed) if placed else None)
        if nodes is None or cores is None or burst is None:
            raise UsageError("--nodes, --cores and --burst are needed.\nHint: or give --trace.")
        model = inputs.load_model(model_path)
        pattern = WritePattern(nodes, cores, burst, None, stripe_count, placed)
        found = predict(pattern, model=model)
        if as_json:
            body = json_form.estimate(found)
            click.echo(json_form.document(body, paths=[model_path], format_name="model"))
            return
        terminal_form.show_estimate(found, output.console())
        inputs.show_warnings(found.warnings)
        return
    if cores is not None or burst is not None:
        raise UsageError(
            "--trace takes cores and bursts itself.\nHint: leave --cores and --burst out."
        )
    model = inputs.load_model(model_path)
    trace, compared = _from_trace(
        trace_path, model, gap=gap, format_name=format_name, nodes=nodes,
        node_list=placed, stripe_count=stripe_count,
    )  # fmt: skip
    _show(trace, compared, as_json=as_json)


def _from_trace(
    path: Path,
    model: WriteTimeModel,
    *,
    gap: float,
    format_name: str | None,
    nodes: int | None,
    node_list: tuple[int, ...] | None,
    stripe_count: int | None,
) -> tuple[Trace, tuple[Comparison, ...]]:
    from ioprism.formats.registry import read_trace
    from ioprism.views.time.write_intervals import write_intervals

    trace = read_trace(path, format_name=format_name)
    if not trace.partitions:
        raise NotEnoughDetailError(
            needed="single write calls",
            has="counters only",
            hint="record them next time (for Darshan: DXT enabled).",
        )
    phases = phases_of(
        write_intervals(trace, gap=gap).to_dicts(),
        cores_per_node=model.system.cores_per_node,
        nodes=nodes,
    )
    found = compare_phases(phases, model=model, node_list=node_list, stripe_count=stripe_count)
    return trace, found


def _show(trace: Trace, found: tuple[Comparison, ...], *, as_json: bool) -> None:
    warnings = dict.fromkeys(text for c in found for text in c.estimate.warnings)
    if as_json:
        body = json_form.comparisons(found)
        every = [*trace.completeness.warnings, *warnings]
        click.echo(
            json_form.document(body, paths=trace.paths, format_name=trace.format, warnings=every)
        )
        return
    terminal_form.show_comparisons(found, output.console())
    output.show_warnings(trace)
    inputs.show_warnings(tuple(warnings))
