"""``ioprism write-time system``: the machines that can be described."""

from __future__ import annotations

from pathlib import Path

import click

from ioprism.command import options, output
from ioprism.command.options import PATH, option
from ioprism.reports import to_json
from ioprism.reports.to_terminal import heading, table
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import harmless, printable
from ioprism.write_time import steps as write_time
from ioprism.write_time.campaign.machine import draft, look_around
from ioprism.write_time.features import features
from ioprism.write_time.system import bundled_systems, parse_system


@click.group()
def system() -> None:
    """Show or draft the description of a machine's write path.

    Example: ioprism write-time system show titan
    """


@system.command("list")
@options.as_json
def list_systems(as_json: bool) -> None:
    """List the systems that come with ioprism.

    Example: ioprism write-time system list
    """
    known = [write_time.load_system(name) for name in bundled_systems()]
    if as_json:
        body = {"systems": [{"name": s.name, "title": s.title, "nodes": s.nodes} for s in known]}
        click.echo(to_json.document_of(body, paths=(), format_name="system"))
        return
    for system in known:
        click.echo(printable(f"{system.name}: {system.title}, {system.nodes} nodes"))


@system.command()
@click.argument("name", metavar="NAME|FILE.toml")
@option("--features", "with_features", is_flag=True, help="List the features instead.")
@option("--variant", default="full", help="Feature set: full, paper or strict41.")
@options.as_json
def show(name: str, with_features: bool, variant: str, as_json: bool) -> None:
    """Print a description, or the features that a model of it may use.

    Example: ioprism write-time system show titan --features
    """
    description = write_time.load_system(name)
    chosen = features(description, variant=variant)
    if as_json:
        body = {
            "system": {
                "name": description.name,
                "title": description.title,
                "description": description.text,
            },
            "features": [
                {"name": f.name, "stage": f.stage, "unit": f.unit, "kind": f.kind} for f in chosen
            ],
        }
        click.echo(to_json.document_of(body, paths=(), format_name="system"))
    elif with_features:
        console = output.console()
        heading(console, f"{len(chosen)} features of {description.title}, set {variant}")
        rows = [(f.name, f.unit, f.stage, f.kind) for f in chosen]
        table(console, ("feature", "unit", "stage", "kind"), rows)
    else:
        click.echo(harmless(description.text), nl=False)


@system.command()
@option(
    "-o",
    "--output",
    "target",
    metavar="FILE.toml",
    type=PATH,
    help="File to write; by default standard output.",
)
@option(
    "--directory",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder on the file system to describe.",
)
@option("--force", is_flag=True, help="Replace the file if it exists.")
def init(target: Path | None, directory: Path, force: bool) -> None:
    """Draft a description of this machine, using Slurm, Lustre and GPFS tools if present.

    Example: ioprism write-time system init --directory /scratch -o machine.toml
    """
    text = draft(look_around(directory))
    parse_system(text, source="draft")
    if target is None:
        click.echo(harmless(text), nl=False)
        return
    atomic_write_text(target, text, replace=force)
    output.say(f"wrote {target}: check the lines marked `check`")
