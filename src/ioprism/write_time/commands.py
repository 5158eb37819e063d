"""``ioprism write-time``: how long a checkpoint write takes, and what would be faster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ioprism.command import options, output
from ioprism.command.options import (
    PATH,
    Decorator,
    FigureRequest,
    NumberRange,
    option,
    page_or_figure,
    stack_decorators,
)
from ioprism.errors import UsageError
from ioprism.formats.registry import read_trace
from ioprism.model.samples import ACCESSES, parse_node_list
from ioprism.model.trace import Trace
from ioprism.reports import to_json
from ioprism.reports.to_terminal import heading, table
from ioprism.storage.atomic import atomic_write_text, refuse_unless_file
from ioprism.text import harmless, printable
from ioprism.write_time import steps, terminal
from ioprism.write_time.estimate import PhaseEstimate
from ioprism.write_time.features import features
from ioprism.write_time.fitting import BOOSTING, KINDS, STAGES
from ioprism.write_time.machine import draft, look_around
from ioprism.write_time.model import training_document
from ioprism.write_time.page import page as evaluation_page
from ioprism.write_time.page import tuning_page
from ioprism.write_time.sample_commands import SIZE, import_runs, sample, store_option
from ioprism.write_time.system import bundled_systems, parse_system
from ioprism.write_time.training_data import HONEST, LEAKING, TrainingSettings
from ioprism.write_time.tuning import TuningLimits

TRAINED = TrainingSettings()  # the defaults of `train`
model_option: Decorator = option(
    "--model",
    "model_path",
    metavar="MODEL.json",
    required=True,
    type=PATH,
    help="The trained model, or cetus or titan for the published models of these machines.",
)


def pattern_options(*, required: bool) -> Decorator:
    """Add the options that describe a write."""
    return stack_decorators(
        option("--nodes", required=required, type=click.IntRange(1),
               help="Number of nodes that write."),
        option("--cores", required=required, type=click.IntRange(1),
               help="Number of cores that write on each node."),
        option("--burst", required=required, type=SIZE, metavar="SIZE",
               help="Bytes each core writes, such as 512MB."),
        option("--stripe-count", type=click.IntRange(1),
               help="Stripe count of each file (Lustre)."),
        option("--node-list", metavar="LIST", help="Node numbers, such as 0-63,128.",
               callback=lambda _context, _option, text: parse_node_list(text) if text else None),
    )  # fmt: skip


@click.group("write-time")
def write_time() -> None:
    """Predict how long a write or read takes, and choose a better configuration.

    Files may be one per process or one shared by all; each kind of access has its own model.

    First import runs or sample them, then train a model, then ask it: estimate, tune.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """


@write_time.group()
def system() -> None:
    """Show or draft the description of a machine's write path.

    Example: ioprism write-time system show titan
    """


write_time.add_command(sample)
write_time.add_command(import_runs)


@system.command("list")
@options.as_json
def list_systems(as_json: bool) -> None:
    """List the systems that come with ioprism.

    Example: ioprism write-time system list
    """
    known = [steps.load_system(name) for name in bundled_systems()]
    if as_json:
        body = {"systems": [{"name": s.name, "title": s.title, "nodes": s.nodes} for s in known]}
        click.echo(to_json.document_of(body, paths=(), format_name="system"))
        return
    for described in known:
        click.echo(printable(f"{described.name}: {described.title}, {described.nodes} nodes"))


@system.command()
@click.argument("name", metavar="NAME|FILE.toml")
@option("--features", "with_features", is_flag=True, help="List the features instead.")
@option("--variant", default="full", help="Feature set: full, paper or strict41.")
@options.as_json
def show(name: str, with_features: bool, variant: str, as_json: bool) -> None:
    """Print a description, or the features that a model of it may use.

    Example: ioprism write-time system show titan --features
    """
    described = steps.load_system(name)
    chosen = features(described, variant=variant)
    if as_json:
        facts = {"name": described.name, "title": described.title, "description": described.text}
        body = {"system": facts, "features": [feature.to_dict() for feature in chosen]}
        click.echo(to_json.document_of(body, paths=(), format_name="system"))
    elif with_features:
        console = output.console()
        heading(console, f"{len(chosen)} features of {described.title}, set {variant}")
        rows = [(f.name, f.unit, f.stage, f.kind) for f in chosen]
        table(console, ("feature", "unit", "stage", "kind"), rows)
    else:
        click.echo(harmless(described.text), nl=False)


@system.command()
@option("-o", "--output", "target", metavar="FILE.toml", type=PATH,
        help="File to write; by default standard output.")  # fmt: skip
@option("--directory", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder on the file system to describe.")  # fmt: skip
@option("--force", is_flag=True, help="Replace the file if it exists.")
def init(target: Path | None, directory: Path, force: bool) -> None:
    """Draft a description of this machine, using Slurm, Lustre and GPFS tools if present.

    Example: ioprism write-time system init --directory /scratch -o machine.toml
    """
    text = draft(look_around(directory))
    parse_system(text, source="draft")
    if target is None:
        click.echo(harmless(text), nl=False)
        return
    atomic_write_text(target, text, replace=force)
    output.say(f"wrote {target}: check the lines marked `check`")


@write_time.command()
@store_option
@option(
    "--max-nodes",
    default=TRAINED.max_nodes,
    type=click.IntRange(1),
    help="Largest node count to train on.",
)
@option("-o", "--output", "target", metavar="MODEL.json", required=True, type=PATH,
        help="File to write the model to.")  # fmt: skip
@option("--model", "kind", default="auto", type=click.Choice(["auto", STAGES, *KINDS, BOOSTING]),
        help="auto takes the one that best predicts larger training scales from smaller "
        "ones.")  # fmt: skip
@option("--validation", default=HONEST, type=click.Choice([HONEST, LEAKING]),
        help=f"{LEAKING} is the rule of the 2019 paper, whose scores are too good "
        "(leakage).")  # fmt: skip
@option("--features", "variant", default="full",
        type=click.Choice(["full", "paper", "strict41"]), help="Feature set.")  # fmt: skip
@option("--level", default=TRAINED.level, type=NumberRange(0.5, 0.99),
        help="Confidence level of the intervals.")  # fmt: skip
@options.seed
@option("--access", type=click.Choice(ACCESSES),
        help="Kind of access to learn; by default writes of a file per process, if there are "
        "any.")  # fmt: skip
@option("--one-scale", is_flag=True, help="Allow training runs that all have the same node count.")
@option("--force", is_flag=True, help="Replace the model's file if it exists.")
@options.as_json
def train(
    store: Path,
    target: Path,
    force: bool,
    as_json: bool,
    **settings: Any,  # noqa: ANN401 - as `TrainingSettings` has them
) -> None:
    """Search training sets and penalties for the model that predicts best.

    Only converged samples of at most --max-nodes are used; a fifth is held out for validation.

    Example: ioprism write-time train --store runs.db --max-nodes 128 -o model.json
    """
    refuse_unless_file(target, replace=force)  # before the training takes its time
    model = steps.train(store, TrainingSettings(**settings))
    steps.save_model(model, target, replace=force)
    notes = model.facts.notes
    if as_json:
        body = training_document(model)
        click.echo(to_json.document_of(body, paths=[store], format_name="store", warnings=notes))
        return
    terminal.show_model(model, output.console())
    output.show_warnings(notes)


@write_time.command()
@store_option
@model_option
@page_or_figure("write-time evaluate")
@option("--kinds", metavar="KIND,...",
        help="Kinds of model in --figure errors, error-cdf and ratio-cdf; by default all in the "
        "model's file.")  # fmt: skip
@options.as_json
def evaluate(
    store: Path,
    model_path: Path,
    page: Path | None,
    figure: FigureRequest | None,
    kinds: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare predicted with measured times: small (200-256 nodes), medium (400-512), unconverged.

    Example: ioprism write-time evaluate --store runs.db --model model.json -o errors.html
    """
    evaluation = steps.evaluate(store, steps.load_model(model_path))
    if page is not None:
        atomic_write_text(page, evaluation_page(evaluation), replace=force)
    if figure is not None:
        from ioprism.write_time.figures import DrawnEvaluation  # needs matplotlib

        figure.write(DrawnEvaluation(evaluation, tuple(kinds.split(",")) if kinds else ()))
    if as_json:
        paths = [store, model_path]
        click.echo(to_json.document_of(evaluation.to_dict(), paths=paths, format_name="store"))
    else:
        terminal.show_evaluation(evaluation, output.console())
    output.say_written(page, figure.path if figure else None)


@write_time.command()
@model_option
@pattern_options(required=False)
@option("--trace", metavar="TRACE", type=PATH,
        help="Take nodes, cores and bursts from the write phases of a trace, and "
        "compare.")  # fmt: skip
@option("--gap", default=1.0, type=NumberRange(0, min_open=True),
        help="Seconds without writes that end a phase of the trace.")  # fmt: skip
@options.format_name
@options.as_json
def estimate(
    model_path: Path,
    nodes: int | None,
    cores: int | None,
    burst: int | None,
    stripe_count: int | None,
    node_list: tuple[int, ...] | None,
    trace: Path | None,
    gap: float,
    format_name: str | None,
    as_json: bool,
) -> None:
    """Predict how long a write takes, with an interval and the stages that dominate.

    Example: ioprism write-time estimate --model model.json --nodes 256 --cores 16 --burst 512MB
    """
    given: dict[str, Any] = {"stripe_count": stripe_count, "node_list": node_list}
    if trace is not None:
        if cores is not None or burst is not None:
            raise UsageError(
                "--trace determines cores and bursts itself.\nHint: leave --cores and --burst out."
            )
        source = read_trace(trace, format_name=format_name)
        model = steps.load_model(model_path)
        _show_phases(source, steps.compare(model, source, gap=gap, nodes=nodes, **given), as_json)
        return
    nodes = nodes or (len(node_list) if node_list else None)
    if nodes is None or cores is None or burst is None:
        raise UsageError("--nodes, --cores and --burst are needed.\nHint: or give --trace.")
    model = steps.load_model(model_path)
    result = steps.estimate(model, nodes=nodes, cores=cores, burst=burst, **given)
    if as_json:
        click.echo(to_json.document_of(result.to_dict(), paths=[model_path], format_name="model"))
        return
    terminal.show_estimate(result, output.console())
    output.show_warnings(result.warnings)


def _show_phases(trace: Trace, phases: tuple[PhaseEstimate, ...], as_json: bool) -> None:
    warnings = dict.fromkeys(text for phase in phases for text in phase.estimate.warnings)
    if as_json:
        body = {"phases": [phase.to_dict() for phase in phases]}
        every = [*trace.completeness.warnings, *warnings]
        click.echo(
            to_json.document_of(body, paths=trace.paths, format_name=trace.format, warnings=every)
        )
        return
    terminal.show_phases(phases, output.console())
    output.show_warnings(trace)
    output.show_warnings(tuple(warnings))


@write_time.command()
@model_option
@pattern_options(required=True)
@option("--vary-cores", metavar="LOW-HIGH", help="Range of writing cores per node; default: all.")
@option("--vary-nodes", metavar="LOW-HIGH", help="Range of writing nodes; default: as now.")
@option("--vary-stripes", metavar="LOW-HIGH", help="Range of stripe counts; default: as now.")
@option("--max-burst", type=SIZE, metavar="SIZE", help="Most bytes a process can hold.")
@option("--top", default=10, type=click.IntRange(1), help="Number of configurations to show.")
@option("--mtbf", type=NumberRange(0, min_open=True),
        help="Mean time between failures, in seconds.")  # fmt: skip
@option("--io-share", type=NumberRange(0, 1, min_open=True, max_open=True),
        help="Largest share of the time that I/O may take.")  # fmt: skip
@option("--output", "-o", "page", metavar="FILE.html", type=PATH, help="HTML page to write.")
@option("--force", is_flag=True, help="Replace the page if it exists.")
@options.as_json
def tune(
    model_path: Path,
    vary_cores: str | None,
    vary_nodes: str | None,
    vary_stripes: str | None,
    max_burst: int | None,
    top: int,
    mtbf: float | None,
    io_share: float | None,
    page: Path | None,
    force: bool,
    as_json: bool,
    **pattern: Any,  # noqa: ANN401 - as `pattern_options` has them
) -> None:
    """Rank configurations that write the same bytes, and advise how often to write them.

    The advice follows Young and Daly from --mtbf, and keeps I/O under --io-share of the time.

    Example: ioprism write-time tune --model m.json --nodes 256 --cores 16 --burst 1GB --mtbf 86400
    """
    model = steps.load_model(model_path)
    cores, nodes = pattern["cores"], pattern["nodes"]
    limits = TuningLimits(
        cores=_range(vary_cores, model.system.cores_per_node) or (1, cores),
        nodes=_range(vary_nodes, nodes) or (nodes, nodes),
        stripe_counts=_range(vary_stripes, model.system.storage.targets),
        burst_bytes=max_burst,
    )
    tuning = steps.tune(
        model, **pattern, limits=limits, mean_time_between_failures=mtbf, io_share=io_share
    )
    if page is not None:
        atomic_write_text(page, tuning_page(tuning, model), replace=force)
    if as_json:
        shown = replace(tuning, choices=tuning.choices[:top])
        click.echo(to_json.document_of(shown.to_dict(), paths=[model_path], format_name="model"))
    else:
        terminal.show_tuning(tuning, output.console(), most=top)
        output.show_warnings(tuning.now.warnings)
    output.say_written(page)


def _range(text: str | None, most: int) -> tuple[int, int] | None:
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
