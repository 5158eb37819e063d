"""``ioprism write-time import``: take over runs measured elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.cli import options, output
from ioprism.cli.options import PATH, option
from ioprism.cli.write_time import inputs
from ioprism.pipeline import write_time
from ioprism.reports import to_json


@click.command("import")
@click.argument("path", metavar="RUNS", type=PATH)
@option("--system", "system_name", metavar="NAME|FILE.toml", help="System the runs are from.")
@inputs.store
@option("--skip-bad", is_flag=True, help="Skip bad rows instead of rejecting the file.")
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
    """Add runs from a CSV table, or from IOR results as JSON or text.

    Either all runs of the file are added or none. A new store needs --system.

    Example: ioprism write-time import runs.csv --system titan --store runs.db
    """
    imported = write_time.import_runs(path, store_path, system=system_name, skip_bad=skip_bad)
    runs, samples, warnings = (
        len(imported.file.runs),
        imported.samples_in_store,
        imported.file.warnings,
    )
    if as_json:
        body = {"imported": {"runs": runs, "samples_in_store": samples}}
        click.echo(
            to_json.document_of(
                body, paths=[path], format_name=imported.file.format, warnings=warnings
            )
        )
        return
    output.show_warnings(warnings)
    if not quiet:
        output.say(f"{runs} runs added; the store has {samples} samples")
