"""`-o` and `--figure`: the page of a command, or one figure of its result for a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ioprism.command.options import PATH, Decorator, NumberRange, option, stack_decorators
from ioprism.errors import EndingError, UsageError
from ioprism.reports.figures.catalogue import (
    CATALOGUE,
    COLUMN_WIDTH,
    ENDINGS,
    MAX_WIDTH,
    MIN_WIDTH,
    draw_figure,
    require_matplotlib,
)
from ioprism.text import printable


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """The figure that was asked for, and where to write it."""

    command: str
    name: str
    path: Path
    width: float  # inches
    replace: bool

    def write(self, subject: object) -> None:
        """Draw the figure of a result and write it."""
        figure = draw_figure(self.command, self.name, subject, width=self.width)
        figure.save(self.path, replace=self.replace)


def page_or_figure(
    command: str,
    *,
    what: str = "pages",
    page_endings: Callable[[], Sequence[str]] = lambda: (".html", ".htm"),
) -> Decorator:
    """Add `-o`, `--figure` and `--width`; they come as `page` and `figure`, one of them None.

    Args:
        command: a key of the catalogue of figures.
        what: the command writes without `--figure`.
        page_endings: of the files it then writes.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_figure(
            *args: Any,  # noqa: ANN401
            output_file: Path | None,
            figure: str | None,
            width: float,
            force: bool,
            **others: Any,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401 - whatever the command takes and returns
            page, request = output_file, None
            if figure is None:
                _check_page(output_file, command, what, page_endings())
            else:
                target = _checked_target(output_file)
                page, request = None, FigureRequest(command, figure, target, width, force)
            return function(*args, page=page, figure=request, force=force, **others)

        return stack_decorators(*_figure_options(command))(with_figure)

    return decorate


def _figure_options(command: str) -> list[Decorator]:
    return [
        option("--output", "-o", "output_file", metavar="FILE", type=PATH,
               help="HTML page to write; with --figure, an .svg, .png or .pdf file."),
        option("--force", is_flag=True, help="Replace files that exist."),
        option("--figure", metavar="NAME", type=click.Choice(list(CATALOGUE[command])),
               help=f"Write this figure instead of a page: {', '.join(CATALOGUE[command])}."),
        option("--width", default=COLUMN_WIDTH, type=NumberRange(MIN_WIDTH, MAX_WIDTH),
               help="Width of the figure, in inches."),
    ]  # fmt: skip


def _checked_target(path: Path | None) -> Path:
    """Refuse what cannot be written before any work is done."""
    if path is None:
        raise UsageError("--figure needs a file to write.\nHint: add -o figure.svg.")
    if path.suffix.lower() not in ENDINGS:
        raise EndingError(path, what="figures", known=ENDINGS)
    require_matplotlib()
    return path


def _check_page(path: Path | None, command: str, what: str, known: Sequence[str]) -> None:
    if path is None or not path.suffix or path.suffix.lower() in known:
        return
    if path.suffix.lower() in ENDINGS:
        raise UsageError(
            f"{printable(path.name)} is a figure, but none was chosen.\n"
            f"Hint: add --figure {'|'.join(CATALOGUE[command])}."
        )
    raise EndingError(path, what=what, known=known)
