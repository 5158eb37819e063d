"""``ioprism write-time import``: take over runs measured elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.analyses.write_time.parameters import check_pattern
from ioprism.analyses.write_time.system import System
from ioprism.cli import options
from ioprism.cli.write_time import inputs
from ioprism.errors import AnalysisError, UsageError
from ioprism.formats.samples.runs import RunFile, read_runs
from ioprism.reports.to_json import write_time as json_form
from ioprism.storage.run_store import open_store
from ioprism.text import printable


@click.command("import")
@click.argument("path", metavar="RUNS", type=click.Path(path_type=Path))
@click.option("--system", "system_name", metavar="NAME|FILE.toml", help="Where they ran.")
@inputs.store
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out instead of refusing all.")
@options.as_json
@options.quiet
def import_(
    path: Path,
    system_name: str | None,
    store_path: Path,
    skip_bad: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add runs from a CSV table, or from IOR's results as JSON or text.

    All runs of the file are added, or none. A new store needs --system.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """
    if system_name is None and not store_path.exists():
        raise UsageError("a new store needs --system.\nHint: name one, or a description's file.")
    system = inputs.load_system(system_name) if system_name else None
    found = read_runs(path, skip_bad=skip_bad)
    if system is None:
        with open_store(store_path) as runs:
            system = inputs.system_of(runs)
    _check(found, system, path)
    with open_store(store_path, create_for=(system.name, system.text)) as runs:
        runs.add_runs(found.runs, origin=str(path), content=found.content)
        samples = len(runs.samples())
    if as_json:
        body = {"imported": {"runs": len(found.runs), "samples_in_store": samples}}
        click.echo(
            json_form.document(
                body, paths=[path], format_name=found.format, warnings=found.warnings
            )
        )
        return
    inputs.show_warnings(found.warnings)
    if not quiet:
        click.echo(f"{len(found.runs)} runs added; the store has {samples} samples", err=True)


def _check(found: RunFile, system: System, path: Path) -> None:
    for pattern in dict.fromkeys(run.pattern for run in found.runs):
        try:
            check_pattern(pattern, system)
        except AnalysisError as error:
            raise AnalysisError(
                f"{printable(str(path))}: pattern {printable(pattern.label) or '(unnamed)'}, "
                f"nothing was imported: {error}"
            ) from error
