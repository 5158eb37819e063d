"""``ioprism site``: what all jobs of a centre lose, to which cause, and since when."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ioprism.api import analyse
from ioprism.cli.diagnose import open_servers
from ioprism.command import options, output
from ioprism.command.options import (
    PAGE,
    PATH,
    Decorator,
    NumberRange,
    option,
    stack_decorators,
    when_given,
)
from ioprism.errors import IoprismError
from ioprism.formats.registry import read_trace
from ioprism.model.pseudonyms import read_key
from ioprism.reports import to_json
from ioprism.reports.to_html import site as html_form
from ioprism.reports.to_terminal.site import show_site
from ioprism.site import JobChoice, select_tables
from ioprism.site.steps import SiteOptions, add_logs, follow_logs
from ioprism.site.store import make_site
from ioprism.site.summary import site_story, site_table
from ioprism.storage.atomic import atomic_write_text, refuse_unless_file
from ioprism.units import format_counted

if TYPE_CHECKING:
    from ioprism.site.summary import SiteStory, SiteTables

store_option = option(
    "--store",
    type=PATH,
    required=True,
    envvar=options.SITE_VARIABLE,
    show_envvar=True,
    help="Folder of the store.",
)


@click.group()
def site() -> None:
    """Summarise all jobs of a centre: what they lose to I/O, why, and since when.

    First `add` logs to a store, whenever there are new ones; then ask for one table, or for
    everything on one page with `report`.

    Example: ioprism site add /darshan-logs/2026/11 --store site.store
    """


@site.command()
@click.argument("paths", metavar="LOG...", nargs=-1, type=PATH)
@store_option
@option(
    "--follow",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Keep adding the logs that appear in this folder until Ctrl-C.",
)
@option("--every", type=NumberRange(min=1.0), default=60.0,
        help="Seconds between checks of the folder to follow.")  # fmt: skip
@option("--cores-per-node", type=click.IntRange(min=1),
        help="Used to estimate nodes if a log names none; default: as others show.")  # fmt: skip
@option("--anonymise", "key", metavar="KEYFILE", callback=when_given(read_key),
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Hash users, paths and programs with the key in this file.")  # fmt: skip
@options.engine
@options.as_json
@options.quiet
def add(
    paths: tuple[Path, ...],
    store: Path,
    follow: Path | None,
    every: float,
    cores_per_node: int | None,
    key: bytes | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Diagnose logs and add them to a store; logs it already has are skipped.

    Example: ioprism site add /darshan-logs/2026/11/15 --store site.store
    """
    if not paths and follow is None:
        raise click.UsageError("Missing argument 'LOG...' or --follow.")
    chosen = SiteOptions(cores_per_node, key)
    kept = make_site(store)
    with output.progress("diagnosing logs", quiet=quiet) as progress:
        added = add_logs(
            kept, paths, options=chosen, progress=progress, cluster=options.cluster_session()
        )
    for message in added.failed:
        output.say(f"skipped {message}")
    if as_json:
        click.echo(to_json.plain_document(added.to_dict()))
    else:
        click.echo(
            f"{format_counted(added.added, 'log')} added, {added.known:,} known already, "
            f"{len(added.failed):,} skipped"
        )
    if follow is not None:
        for more in follow_logs(kept, follow, options=chosen, every=every):
            output.say(f"{format_counted(more.added, 'log')} added")


def choosing(subject: str | None = None) -> Decorator:
    """Add the store, and the options that say which of its jobs to look at.

    They reach the command as one argument, `tables`: those that the subject needs.
    """
    declared = [
        store_option,
        option("--since", metavar="DATE", help="Only jobs that started on this day or later."),
        option("--until", metavar="DATE", help="Only jobs that started before this day."),
        option("--application", help="Only jobs of this program."),
        option("--user", help="Only jobs of this user."),
        option("--mount", metavar="PATH", help="Only this file system, by its mount point."),
        option(
            "--servers",
            metavar="STORE",
            type=click.Path(path_type=Path, exists=True),
            callback=when_given(open_servers),
            help="Also use the file system's counters to see which jobs suffered from others.",
        ),
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_tables(*, store: Path, **given: Any) -> None:  # noqa: ANN401 - as declared
            choice = {name: given.pop(name) for name in JobChoice.__annotations__}
            tables = select_tables(store, cast("JobChoice", choice), subject)
            command(tables=tables, **given)

        return stack_decorators(*declared)(with_tables)

    return decorate


by_option: Decorator = option(
    "--by", type=click.Choice(["pattern", "file"]), default="pattern",
    help="One row for each kind of path, digits replaced by #, or for each file.",
)  # fmt: skip


def _table(subject: str, what: str, example: str = "--json", *own: Decorator) -> click.Command:
    @click.command(subject, help=f"{what}\n\nExample: ioprism site {subject} --store S {example}")
    @choosing(subject)
    @stack_decorators(*own)
    @option("--top", type=click.IntRange(min=0), default=20,
            help="Number of rows to show; 0 shows all.")  # fmt: skip
    @options.as_json
    def command(tables: SiteTables, top: int, as_json: bool, by: str = "pattern") -> None:
        table = site_table(tables, subject, top=top or None, by=by)
        if as_json:
            click.echo(to_json.plain_document(table.to_dict()))
        else:
            show_site(table, output.console())

    return command


for _subject, _what in (
    ("jobs", "List the jobs that lose most to I/O, with their causes."),
    ("applications", "List applications by the node-hours they lose to I/O."),
    ("users", "List users by the node-hours their jobs lose to I/O."),
    ("targets", "List storage targets, those with the slowest worst tenth of jobs first."),
    ("hosts", "List nodes, those with the slowest worst tenth of jobs first."),
    ("causes", "List causes by the node-hours that removing them would save."),
    ("periods", "List applications with periodic I/O, by their node-hours."),
):
    site.add_command(_table(_subject, _what))
_files = "List files, or kinds of files, by the time that jobs spend in them."
site.add_command(_table("files", _files, "--mount /scratch --by file", by_option))


@site.command()
@choosing()
@option("--output", "-o", "page", type=PAGE, required=True,
        help="HTML page to write.")  # fmt: skip
@option("--force", is_flag=True, help="Replace the page if it exists.")
@option("--reports", type=click.Path(path_type=Path, file_okay=False),
        help="Folder for the report of an example job for each advice.")  # fmt: skip
@options.as_json
def report(
    tables: SiteTables, page: Path, force: bool, reports: Path | None, as_json: bool
) -> None:
    """Write one page about all jobs: savings, slow targets, changes, advice.

    Example: ioprism site report --store site.store -o site.html
    """
    story = site_story(tables)
    refuse_unless_file(page, replace=force)
    links = {} if reports is None else _write_reports(story, reports, page.parent, force)
    atomic_write_text(page, html_form.page(story, links), replace=force)
    if as_json:
        click.echo(to_json.plain_document(story.to_dict()))
    else:
        output.say(f"wrote {page}")


def _write_reports(story: SiteStory, folder: Path, beside: Path, force: bool) -> dict[str, str]:
    """Write a page for the worst log of each advice; return the links by log."""
    links: dict[str, str] = {}
    places = [folder / f"job-{number:02d}.html" for number in range(1, 1 + len(story.advice))]
    for place in places:
        refuse_unless_file(place, replace=force)
    for row, place in zip(story.advice, places, strict=True):
        log = str(row["worst_log"])
        try:
            report_of_log = analyse(read_trace(Path(log)))
        except (IoprismError, OSError) as error:
            output.say(f"no report of {log}: {str(error).partition(chr(10))[0]}")
        else:
            report_of_log.to_html(place, replace=force)
            links[log] = relpath(place, beside)
    return links
