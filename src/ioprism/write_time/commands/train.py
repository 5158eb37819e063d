"""``ioprism write-time train`` and ``evaluate``: learn from runs; is the model any good?"""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.figure_options import FigureRequest, page_or_figure
from ioprism.command.options import PATH, NumberRange, option
from ioprism.reports import to_json
from ioprism.storage.atomic import atomic_write, atomic_write_text
from ioprism.write_time import documents as json_form
from ioprism.write_time import page as html_form
from ioprism.write_time import steps as write_time
from ioprism.write_time import terminal as terminal_form
from ioprism.write_time.commands import inputs
from ioprism.write_time.evaluation import Evaluation
from ioprism.write_time.kinds import BOOSTING, KINDS, STAGES
from ioprism.write_time.preparation import HONEST, LEAKING, TrainingSettings


@click.command()
@inputs.store
@option("--max-nodes", default=128, type=click.IntRange(1), help="Largest node count to train on.")
@option(
    "-o",
    "--output",
    "target",
    metavar="MODEL.json",
    required=True,
    type=PATH,
    help="File to write the model to.",
)
@option(
    "--model",
    "kind",
    default="auto",
    type=click.Choice(["auto", STAGES, *KINDS, BOOSTING]),
    help="auto takes the one that best predicts larger training scales from smaller ones.",
)
@option(
    "--validation",
    default=HONEST,
    type=click.Choice([HONEST, LEAKING]),
    help=f"{LEAKING} is the rule of the 2019 paper, whose scores are too good (leakage).",
)
@option(
    "--features",
    "variant",
    default="full",
    type=click.Choice(["full", "paper", "strict41"]),
    help="Feature set.",
)
@option(
    "--level", default=0.9, type=NumberRange(0.5, 0.99), help="Confidence level of the intervals."
)
@options.seed
@option("--one-scale", is_flag=True, help="Allow training runs that all have the same node count.")
@option("--force", is_flag=True, help="Replace the model's file if it exists.")
@options.as_json
def train(
    store_path: Path,
    max_nodes: int,
    target: Path,
    kind: str,
    validation: str,
    variant: str,
    level: float,
    seed: int,
    one_scale: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Search training sets and penalties for the model that predicts best.

    Only converged samples of at most --max-nodes are used; a fifth is held out for validation.

    Example: ioprism write-time train --store runs.db --max-nodes 128 -o model.json
    """
    settings = TrainingSettings(
        max_nodes=max_nodes,
        kind=kind,
        validation=validation,
        variant=variant,
        level=level,
        seed=seed,
        one_scale=one_scale,
    )
    with atomic_write(target, replace=force) as temporary:
        model = write_time.train(store_path, settings)
        temporary.write_text(write_time.model_text(model), encoding="utf-8")
    if as_json:
        body = json_form.model(model)
        notes = model.facts.notes
        click.echo(
            to_json.document_of(body, paths=[store_path], format_name="store", warnings=notes)
        )
        return
    terminal_form.show_model(model, output.console())
    output.show_warnings(model.facts.notes)


@click.command()
@inputs.store
@inputs.model
@page_or_figure("write-time evaluate")
@option(
    "--kinds",
    metavar="KIND,...",
    help="Kinds of model in --figure errors and ratio-cdf; by default all in the model's file.",
)
@options.as_json
def evaluate(
    store_path: Path,
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
    evaluation = write_time.evaluate(store_path, write_time.load_model(model_path))
    if page is not None:
        atomic_write_text(page, html_form.page(evaluation), replace=force)
    if figure is not None:
        _write_figure(figure, evaluation, kinds)
    if as_json:
        paths = [store_path, model_path]
        click.echo(to_json.document_of(evaluation.to_dict(), paths=paths, format_name="store"))
    else:
        terminal_form.show_evaluation(evaluation, output.console())
    output.say_written(page, figure.path if figure else None)


def _write_figure(figure: FigureRequest, evaluation: Evaluation, kinds: str | None) -> None:
    from ioprism.write_time.figures import DrawnEvaluation

    figure.write(DrawnEvaluation(evaluation, tuple(kinds.split(",")) if kinds else ()))
