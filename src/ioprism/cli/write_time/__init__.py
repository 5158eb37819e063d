"""``ioprism write-time``: how long a checkpoint write takes, and what would be faster."""

from __future__ import annotations

import click

from ioprism.cli.write_time.estimate import estimate
from ioprism.cli.write_time.sample import import_, sample
from ioprism.cli.write_time.system import system
from ioprism.cli.write_time.train import evaluate, train
from ioprism.cli.write_time.tune import tune


@click.group("write-time")
def write_time() -> None:
    """Predict how long a file-per-process write takes, and choose a better configuration.

    First import runs or sample them, then train a model, then ask it: estimate, tune.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """


for command in (system, sample, import_, train, evaluate, estimate, tune):
    write_time.add_command(command)
