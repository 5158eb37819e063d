"""``ioprism write-time train``: learn from runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ioprism.analyses.write_time.kinds import BOOSTING, KINDS
from ioprism.analyses.write_time.model import to_dict
from ioprism.analyses.write_time.preparation import HONEST, LEAKING, TrainingSettings
from ioprism.analyses.write_time.training import train as learn
from ioprism.cli import options, output
from ioprism.cli.write_time import inputs
from ioprism.reports.to_json import write_time as json_form
from ioprism.reports.to_terminal import write_time as terminal_form
from ioprism.storage.atomic import atomic_write


@click.command()
@inputs.store
@click.option("--max-nodes", default=128, show_default=True, type=click.IntRange(1))
@click.option(
    "-o",
    "--output",
    "target",
    metavar="MODEL.json",
    required=True,
    type=click.Path(path_type=Path),
    help="The model's file.",
)
@click.option(
    "--model",
    "kind",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", *KINDS, BOOSTING]),
    help="auto takes relative-lasso if it validates better than lasso.",
)
@click.option(
    "--validation",
    default=HONEST,
    show_default=True,
    type=click.Choice([HONEST, LEAKING]),
    help=f"{LEAKING} is the rule of the 2019 paper: its scores leak.",
)
@click.option(
    "--features",
    "variant",
    default="full",
    show_default=True,
    type=click.Choice(["full", "paper", "strict41"]),
)
@click.option("--level", default=0.9, show_default=True, type=click.FloatRange(0.5, 0.99))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--one-scale", is_flag=True, help="Allow runs of one node count only.")
@click.option("--force", is_flag=True, help="Replace the model's file if it exists.")
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

    Only converged samples of at most --max-nodes are used; a fifth of them is held out to choose.

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
    with atomic_write(target, replace=force) as aside:
        system, samples = inputs.load_samples(store_path)
        model = learn(samples, system=system, settings=settings)
        aside.write_text(json.dumps(to_dict(model), indent=1) + "\n", "utf-8")
    if as_json:
        click.echo(
            json_form.document(json_form.model(model), paths=[store_path], format_name="store")
        )
    else:
        terminal_form.show_model(model, output.console())
