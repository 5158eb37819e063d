"""Where commands print: results to standard output, progress and warnings to standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ioprism.model.trace import Progress, Trace
from ioprism.text import harmless

if TYPE_CHECKING:  # JSON is printed without it; it takes as long to load as a small log to judge
    from rich.console import Console

PATIENCE = 1.0  # seconds before progress is shown
WIDTH = 100


def console() -> Console:
    """Return the terminal for results; plain text when it is not one, unless --color asks."""
    from rich.console import Console

    class Results(Console):
        """A console whose reader may leave early, as `head` does."""

        def on_broken_pipe(self) -> None:
            """Let the command end without an error."""
            raise BrokenPipeError

    context = click.get_current_context(silent=True)
    color = None if context is None else context.find_root().color
    return Results(
        highlight=False,
        emoji=False,
        markup=False,
        width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH,
        force_terminal=color,
        no_color=True if color is False else None,
    )


def show_warnings(said: Trace | Iterable[str]) -> None:
    """Print what is missing from the answer on standard error."""
    from rich.console import Console

    from ioprism.reports import to_terminal

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
    from rich.console import Console

    started = time.monotonic()
    stderr = Console(stderr=True)
    with stderr.status("", spinner="dots") as status:
        status.stop()

        def report(done: int) -> None:
            if time.monotonic() - started > PATIENCE:
                status.start()
                status.update(f"{what}: {done} pieces")

        yield report
