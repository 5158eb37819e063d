"""Where commands print: results to standard output, progress and warnings to standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from ioprism.model.trace import Progress, Trace
from ioprism.reports import to_terminal
from ioprism.text import harmless

PATIENCE = 1.0  # seconds before progress is shown
WIDTH = 100


def console() -> Console:
    """Return the terminal for results; plain text when it is not one."""
    return Console(highlight=False, emoji=False, markup=False, width=_width(sys.stdout.isatty()))


def _width(terminal: bool) -> int | None:
    return None if terminal else WIDTH


def show_warnings(said: Trace | Iterable[str]) -> None:
    """Print what is missing from the answer on standard error."""
    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, said.completeness.warnings if isinstance(said, Trace) else said)


def say(text: str) -> None:
    """Print a remark on standard error; names in it cannot steer the terminal."""
    click.echo(harmless(text), err=True)


def say_written(*targets: Path | None, quiet: bool = False) -> None:
    """Name the files that were asked for and written."""
    for target in targets:
        if target is not None and not quiet:
            say(f"wrote {target}")


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Progress]:
    """Show on a terminal's standard error how far long work has come."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    started = time.monotonic()
    stderr = Console(stderr=True)
    with stderr.status("", spinner="dots") as status:
        status.stop()

        def report(done: int) -> None:
            if time.monotonic() - started > PATIENCE:
                status.start()
                status.update(f"{what}: {done} pieces")

        yield report
