"""``ioprism write-time``: how long a checkpoint write takes, and what would be faster."""

from __future__ import annotations

import click

from ioprism.write_time.commands.estimate import estimate
from ioprism.write_time.commands.sample import import_, sample
from ioprism.write_time.commands.system import system
from ioprism.write_time.commands.train import evaluate, train
from ioprism.write_time.commands.tune import tune


@click.group("write-time")
def write_time() -> None:
    """Predict how long a file-per-process write takes, and choose a better configuration.

    First import runs or sample them, then train a model, then ask it: estimate, tune.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """


for command in (system, sample, import_, train, evaluate, estimate, tune):
    write_time.add_command(command)
