"""``ioprism write-time estimate``: how long will this write take?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, NumberRange, option
from ioprism.errors import UsageError
from ioprism.formats.registry import read_trace
from ioprism.model.samples import parse_node_list
from ioprism.model.trace import Trace
from ioprism.reports import to_json
from ioprism.write_time import documents as json_form
from ioprism.write_time import steps as write_time
from ioprism.write_time import terminal as terminal_form
from ioprism.write_time.commands import inputs
from ioprism.write_time.measured_phases import Comparison


@click.command()
@inputs.model
@option("--nodes", type=click.IntRange(1), help="Number of nodes that write.")
@option("--cores", type=click.IntRange(1), help="Number of cores that write on each node.")
@option(
    "--burst", type=inputs.Size(), metavar="SIZE", help="Bytes each core writes, such as 512MB."
)
@option("--stripe-count", type=click.IntRange(1), help="Stripe count of each file (Lustre).")
@option("--node-list", metavar="LIST", help="Node numbers, such as 0-63,128.")
@option(
    "--trace",
    "trace_path",
    metavar="TRACE",
    type=PATH,
    help="Take nodes, cores and bursts from the write phases of a trace, and compare.",
)
@option(
    "--gap",
    default=1.0,
    type=NumberRange(0, min_open=True),
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
    """Predict how long a write takes, with an interval and the stages that dominate.

    Example: ioprism write-time estimate --model model.json --nodes 256 --cores 16 --burst 512MB
    """
    placed = parse_node_list(node_list) if node_list else None
    if trace_path is not None:
        if cores is not None or burst is not None:
            raise UsageError(
                "--trace determines cores and bursts itself.\nHint: leave --cores and --burst out."
            )
        trace = read_trace(trace_path, format_name=format_name)
        compared = write_time.compare(
            write_time.load_model(model_path),
            trace,
            gap=gap,
            nodes=nodes,
            stripe_count=stripe_count,
            node_list=placed,
        )
        _show(trace, compared, as_json=as_json)
        return
    nodes = nodes or (len(placed) if placed else None)
    if nodes is None or cores is None or burst is None:
        raise UsageError("--nodes, --cores and --burst are needed.\nHint: or give --trace.")
    result = write_time.estimate(
        write_time.load_model(model_path),
        nodes=nodes,
        cores=cores,
        burst=burst,
        stripe_count=stripe_count,
        node_list=placed,
    )
    if as_json:
        click.echo(to_json.document_of(result.to_dict(), paths=[model_path], format_name="model"))
        return
    terminal_form.show_estimate(result, output.console())
    output.show_warnings(result.warnings)


def _show(trace: Trace, comparisons: tuple[Comparison, ...], *, as_json: bool) -> None:
    warnings = dict.fromkeys(text for c in comparisons for text in c.estimate.warnings)
    if as_json:
        body = json_form.comparisons(comparisons)
        every = [*trace.completeness.warnings, *warnings]
        click.echo(
            to_json.document_of(body, paths=trace.paths, format_name=trace.format, warnings=every)
        )
        return
    terminal_form.show_comparisons(comparisons, output.console())
    output.show_warnings(trace)
    output.show_warnings(tuple(warnings))
