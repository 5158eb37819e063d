"""What the write-time commands read: systems, stores, models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ioprism.analyses.write_time.model import WriteTimeModel, from_dict
from ioprism.analyses.write_time.system import (
    System,
    bundled_system,
    bundled_systems,
    parse_system,
)
from ioprism.errors import TraceError
from ioprism.model.samples import Sample
from ioprism.reports import to_terminal
from ioprism.storage.run_store import RunStore, open_store
from ioprism.units import parse_bytes

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Size(click.ParamType[int]):
    """A size such as 512MB, in bytes."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the size."""
        del param, ctx
        return value if isinstance(value, int) else parse_bytes(str(value))


store: Decorator = click.option(
    "--store",
    "store_path",
    metavar="S.db",
    required=True,
    type=click.Path(path_type=Path),
    help="The file that keeps the runs.",
)
model: Decorator = click.option(
    "--model",
    "model_path",
    metavar="MODEL.json",
    required=True,
    type=click.Path(path_type=Path),
    help="The trained model.",
)


def load_system(name: str) -> System:
    """Return a bundled system, or the one that a file describes."""
    path = Path(name)
    if name in bundled_systems() or not path.exists():
        return bundled_system(name)
    return parse_system(_text(path), source=name)


def system_of(runs: RunStore) -> System:
    """Return the system whose runs a store keeps."""
    name, text = runs.system()
    return parse_system(text, source=f"{runs.path} ({name})")


def load_samples(path: Path) -> tuple[System, list[Sample]]:
    """Return a store's system and samples."""
    with open_store(path) as runs:
        return system_of(runs), runs.samples()


def load_model(path: Path) -> WriteTimeModel:
    """Read a model file."""
    if not path.exists():
        raise TraceError(
            "no such model.\nHint: `ioprism write-time train` writes one.", source=path
        )
    try:
        content = json.loads(_text(path))
    except (ValueError, RecursionError):
        content = None
    return from_dict(content, source=str(path))


def show_warnings(messages: Sequence[str]) -> None:
    """Print on standard error what a person should know beside the answer."""
    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, messages)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError("this is not a text file.\nHint: check the path.", source=path) from error
