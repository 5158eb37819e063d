"""``ioprism write-time tune``: which configuration writes faster, and how often to write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import NumberRange, option
from ioprism.errors import UsageError
from ioprism.model.samples import parse_node_list
from ioprism.reports import to_json
from ioprism.write_time import steps as write_time
from ioprism.write_time import terminal as terminal_form
from ioprism.write_time.commands import inputs
from ioprism.write_time.tuning import Limits


@click.command()
@inputs.model
@option("--nodes", required=True, type=click.IntRange(1), help="Number of nodes that write now.")
@option(
    "--cores",
    required=True,
    type=click.IntRange(1),
    help="Number of cores that write on each node.",
)
@option(
    "--burst",
    required=True,
    type=inputs.Size(),
    metavar="SIZE",
    help="Bytes each core writes, such as 512MB.",
)
@option(
    "--stripe-count", type=click.IntRange(1), help="Present stripe count of each file (Lustre)."
)
@option("--node-list", metavar="LIST", help="Node numbers, such as 0-63,128.")
@option("--vary-cores", metavar="LOW-HIGH", help="Range of writing cores per node; default: all.")
@option("--vary-nodes", metavar="LOW-HIGH", help="Range of writing nodes; default: as now.")
@option("--vary-stripes", metavar="LOW-HIGH", help="Range of stripe counts; default: as now.")
@option("--max-burst", type=inputs.Size(), metavar="SIZE", help="Most bytes a process can hold.")
@option("--top", default=10, type=click.IntRange(1), help="Number of configurations to show.")
@option(
    "--mtbf", type=NumberRange(0, min_open=True), help="Mean time between failures, in seconds."
)
@option(
    "--io-share",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    help="Largest share of the time that I/O may take.",
)
@options.as_json
def tune(
    model_path: Path,
    nodes: int,
    cores: int,
    burst: int,
    stripe_count: int | None,
    node_list: str | None,
    vary_cores: str | None,
    vary_nodes: str | None,
    vary_stripes: str | None,
    max_burst: int | None,
    top: int,
    mtbf: float | None,
    io_share: float | None,
    as_json: bool,
) -> None:
    """Rank configurations that write the same bytes, and advise how often to write them.

    The advice follows Young and Daly from --mtbf, and keeps I/O under --io-share of the time.

    Example: ioprism write-time tune --model m.json --nodes 256 --cores 16 --burst 1GB --mtbf 86400
    """
    model = write_time.load_model(model_path)
    limits = Limits(
        cores=_limits(vary_cores, model.system.cores_per_node) or (1, cores),
        nodes=_limits(vary_nodes, nodes) or (nodes, nodes),
        stripe_counts=_limits(vary_stripes, model.system.storage.targets),
        burst_bytes=max_burst,
    )
    tuning = write_time.tune(
        model,
        nodes=nodes,
        cores=cores,
        burst=burst,
        stripe_count=stripe_count,
        node_list=parse_node_list(node_list) if node_list else None,
        limits=limits,
        mean_time_between_failures=mtbf,
        io_share=io_share,
    )
    tuning = replace(tuning, choices=tuning.choices[:top])
    if as_json:
        click.echo(to_json.document_of(tuning.to_dict(), paths=[model_path], format_name="model"))
        return
    terminal_form.show_tuning(tuning, output.console())
    output.show_warnings(tuning.now.warnings)


def _limits(text: str | None, most: int) -> tuple[int, int] | None:
    if text is None:
        return None
    low, _, high = text.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal()):
        raise UsageError(f"{text!r} is not a range.\nHint: write for example 1-16.")
    limits = int(low), int(high or low)
    if not 1 <= limits[0] <= limits[1] <= most:
        raise UsageError(
            f"the limits {text} must ascend and be between 1 and {most}.\nHint: 1-{most} tries all."
        )
    return limits
