"""``ioprism help``, ``completion``, ``mcp``, ``formats`` and ``convert``."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ioprism.command import options, output
from ioprism.command.options import PATH, Command, option
from ioprism.conversion import check_ending
from ioprism.conversion import convert as write
from ioprism.formats.registry import FACTS, Unavailable, readers
from ioprism.reports import to_json
from ioprism.reports.to_terminal import inspect

SHELLS = ("bash", "zsh", "fish")


@click.command(name="help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001 - the command's name
    """Show the help of a command, or of all.

    Example: ioprism help diagnose
    """
    shown = context.find_root()
    for word in words:
        group = shown.command
        command = group.get_command(shown, word) if isinstance(group, click.Group) else None
        if command is None:
            raise click.UsageError(f"No such command {word!r}.")
        shown = click.Context(command, info_name=word, parent=shown)
    click.echo(shown.get_help())


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Example: ioprism completion bash > ~/.local/share/bash-completion/completions/ioprism
    """
    kind = get_completion_class(shell)
    if kind is not None:
        root = context.find_root().command
        click.echo(kind(root, {}, "ioprism", "_IOPRISM_COMPLETE").source())


@click.command(cls=Command)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=PATH)
def mcp(folders: tuple[Path, ...]) -> None:
    """Serve the Model Context Protocol: tools that return the same JSON as the commands.

    Only traces inside the given folders (default: the current one) are read; nothing is written.

    Example: ioprism mcp /projects/me/traces
    """
    from ioprism.mcp import server

    server(folders or (Path(),)).run("stdio")


@click.command(cls=Command)
@options.as_json
def formats(as_json: bool) -> None:
    """List the trace formats ioprism reads, and what each of them records.

    Example: ioprism formats
    """
    known = list(readers())
    if as_json:
        entries = [
            {"name": r.name, "available": False, "missing": r.missing}
            if isinstance(r, Unavailable)
            else {"name": r.name, "available": True, "title": r.title, "tells": sorted(r.tells)}
            for r in known
        ]
        click.echo(to_json.plain_document({"formats": entries, "facts": FACTS}))
    else:
        inspect.show_formats(known, output.console())


@click.command(cls=Command)
@options.traces
@click.argument("target", metavar="OUT", type=PATH)
@options.format_name
@option("--counters", is_flag=True, help="Write counters to tables, even if there are events.")
@option("--force", is_flag=True, help="Replace OUT if it exists.")
@options.engine
@options.quiet
def convert(
    paths: tuple[Path, ...],
    target: Path,
    format_name: str | None,
    counters: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Keep traces as a Parquet store (OUT is a folder), or write their events or counters.

    OUT.csv or OUT.parquet is a table of events. Where only counters were recorded, or with
    --counters, each module has its own table, with Darshan's names: OUT-POSIX.csv, …
    OUT.json or OUT.json.gz opens in Perfetto (ui.perfetto.dev), with one track per rank and
    counters for bandwidth. OUT appears only when it is complete. With --engine dask, workers
    write the store; after an interruption, the same command resumes where it stopped.

    Example: ioprism convert run42.darshan run42.store
    """
    check_ending(target)
    trace = options.read_job(paths, format_name)
    with output.progress("writing events", quiet=quiet) as progress:
        engine = options.make_engine(progress)
        written = write(
            trace, target, replace=force, progress=progress, engine=engine, counters=counters
        )
    output.show_warnings(trace)
    output.say_written(*written, quiet=quiet)
