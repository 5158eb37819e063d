"""Record a block of a script or a notebook: `with ioprism.record(…):`, and `%%ioprism`."""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ioprism.api import analyse
from ioprism.command.output import say, say_written
from ioprism.comparison.steps import compare_sides, read_side
from ioprism.errors import BrokenTraceError, UnknownFormatError, UsageError
from ioprism.recording.block import trace_block
from ioprism.recording.steps import PAGE, make_folder, read_run
from ioprism.reports.to_notebook import display
from ioprism.reports.to_terminal.compare import show_comparison, show_end
from ioprism.reports.to_terminal.report import show_report
from ioprism.storage.recordings import RecordedRun, Recording, write_recording

if TYPE_CHECKING:
    from ioprism.comparison.changes import Comparison
    from ioprism.reports.report import Report


@dataclass(slots=True, eq=False)
class RecordedBlock:
    """A block that runs or ran: what it did is known when it has ended."""

    folder: Path
    report: Report | None = None  # None: it runs, or did no I/O
    comparison: Comparison | None = None  # with what `against` named
    missed: tuple[str, ...] = ()  # that the tracer saw only in part


@contextmanager
def record(
    folder: str | Path | None = None,
    *,
    tracer: str = "auto",
    against: str | Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Iterator[RecordedBlock]:
    """Record the I/O of a block, and report on it: in a notebook's cell, or on standard error.

    Args:
        folder: for the trace and the page; by default record-block-1, -2, …
        tracer: strace, which is attached to this process; python, which times Python's own files;
            auto takes strace where it is permitted.
        against: an earlier recording to compare with.
        force: whether an earlier recording in the folder is replaced.
        quiet: whether to show nothing.

    Raises:
        UsageError: the tracer cannot be used.
        OutputError: the folder cannot be used.
    """
    place = make_folder(None if folder is None else Path(folder), "block", overwrite=force)
    block, traces, exit_code = RecordedBlock(place), place / "run-1", 1
    traces.mkdir()
    with ExitStack() as stack:
        version, missed = stack.enter_context(trace_block(traces / "block.strace", tracer))
        started, clock = time.time(), time.monotonic()
        try:
            yield block
            exit_code = 0
        finally:
            run = RecordedRun(traces.name, time.monotonic() - clock, exit_code, None, started)
            stack.close()
            recording = Recording(place, (sys.executable, *sys.argv), version, (run,))
            write_recording(recording)
            block.missed = tuple(missed)
            _report(block, recording, against)
            if not quiet:
                _show(block, recording)


def _report(block: RecordedBlock, recording: Recording, against: str | Path | None) -> None:
    try:
        block.report = analyse(read_run(recording, recording.runs[0]))
    except (UnknownFormatError, BrokenTraceError):  # no call on a file
        return
    block.report.write(block.folder / PAGE)
    if against is not None:
        block.comparison = compare_sides(read_side((Path(against),)), read_side((block.folder,)))


def _show(block: RecordedBlock, recording: Recording) -> None:
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    if block.report is None:
        say("No I/O was recorded.")
    elif not display(block.report):
        show_end(recording, recording.runs[0], None, console)
        show_report(block.report.document, console)
    if block.comparison is not None and not display(block.comparison):
        show_comparison(block.comparison, console)
    for one in block.missed:
        say(f"warning: {recording.tracer} did not see {one}")
    say_written(block.folder)


def cell_magic(shell: Any) -> Any:  # noqa: ANN401 - IPython has no types
    """Return the magic `%%ioprism` for a shell of IPython."""

    def ioprism(line: str, cell: str) -> object:
        """Record a cell: %%ioprism [-o DIR] [--tracer NAME] [--against DIR] [--force]."""
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument("--output", "-o", dest="folder")
        parser.add_argument("--tracer", default="auto")
        parser.add_argument("--against")
        parser.add_argument("--force", action="store_true")
        parser.error = _refuse  # type: ignore[method-assign,assignment]
        options = vars(parser.parse_args(shlex.split(line)))
        tree = ast.parse(shell.transform_cell(cell), "<ioprism>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = compile(tree, "<ioprism>", "exec")
        with record(**options):
            exec(body, shell.user_ns)  # noqa: S102 - the user's cell
            if isinstance(last, ast.Expr):
                value = ast.Expression(last.value)
                return eval(compile(value, "<ioprism>", "eval"), shell.user_ns)  # noqa: S307
        return None

    return ioprism


def _refuse(message: str) -> None:
    raise UsageError(f"%%ioprism: {message}.\nHint: %%ioprism -o DIR --against BEFORE")
