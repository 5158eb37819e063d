"""``ioprism demo``: a sample log, and what ioprism says about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ioprism.api import analyse, sample_log
from ioprism.command import options, output
from ioprism.command.options import Command, option
from ioprism.formats.registry import read_trace
from ioprism.reports import to_json
from ioprism.reports.to_terminal import report as terminal_form
from ioprism.storage.atomic import atomic_write, atomic_write_text

PAGE = "report.html"


@click.command(cls=Command)
@option(
    "--output",
    "-o",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ioprism-demo"),
    help="Folder for a copy of the sample log and the results.",
)
@options.quiet
def demo(folder: Path, quiet: bool) -> None:
    """Analyse the sample log of a checkpointing MPI job.

    The job writes small pieces to a shared file at every checkpoint, one of its ranks is a
    straggler, and it opens thousands of files when it starts.

    Example: ioprism demo --output demo
    """
    sample = sample_log()
    log = folder / sample.name
    ours = log.exists()  # what an earlier demo left may be replaced, other files may not
    if not ours:
        with atomic_write(log) as target:
            shutil.copyfile(sample, target)
    trace = read_trace(log)
    analysis = analyse(trace)
    described = analysis.document.characteristics.to_dict()
    documents = {
        "characteristics.json": to_json.document(trace, described),
        "report.json": analysis.to_json(),
    }
    for name, text in documents.items():
        atomic_write_text(folder / name, text, replace=ours)
    analysis.to_html(folder / PAGE, replace=ours)
    terminal_form.show(analysis.document, output.console())
    output.show_warnings(trace)
    if not quiet:
        output.say(f"\nThe sample log and the results are in {folder}.")
        output.say(f"Open {folder / PAGE} in a browser.")
