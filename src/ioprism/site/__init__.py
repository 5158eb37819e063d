"""`ioprism site` as functions: what all jobs of a centre lose, to which cause, since when.

>>> from ioprism import site
>>> site.add("/darshan-logs/2026/11", store="site.store").added        # doctest: +SKIP
>>> site.applications("site.store", since="2026-11-01").to_frame()     # doctest: +SKIP
>>> site.files("site.store", mount="/scratch", by="file", top=10)      # doctest: +SKIP
>>> site.report("site.store").events                                   # doctest: +SKIP

All but `add` and `history` take the keywords of `JobChoice`. Table libraries are loaded when a
function is called: importing this package is cheap.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    from ioprism.model.machine import ServerLoads
    from ioprism.site.history import SiteHistory
    from ioprism.site.steps import Added
    from ioprism.site.summary import SiteStory, SiteTable, SiteTables

__all__ = [
    "JobChoice",
    "add",
    "applications",
    "causes",
    "files",
    "history",
    "hosts",
    "jobs",
    "periods",
    "report",
    "targets",
    "users",
]


class JobChoice(TypedDict, total=False):
    """Which jobs of a store are looked at; all of them by default."""

    since: str | None  # that started on this day or later, such as 2026-11-15
    until: str | None  # that started before this day
    application: str | None  # of this program
    user: str | None  # of this user
    mount: str | None  # on this file system, by its mount point
    servers: ServerLoads | None  # counters of the servers, to see which jobs suffered from others


def add(
    *logs: str | Path,
    store: str | Path,
    cores_per_node: int | None = None,
    anonymise: str | Path | None = None,
    processes: int | None = None,
) -> Added:
    """Diagnose logs and add them to a store; logs it already has are skipped.

    Args:
        logs: files, or folders of them.
        store: folder of the store, made if it is not there.
        cores_per_node: to estimate nodes if a log names none; None: as other logs show.
        anonymise: file with the key that names are hashed with.
        processes: to work with; None: one for each core.
    """
    from ioprism.model.pseudonyms import read_key
    from ioprism.site.steps import SiteOptions, add_logs
    from ioprism.site.store import make_site

    key = None if anonymise is None else read_key(Path(anonymise))
    options = SiteOptions(cores_per_node, key, processes)
    return add_logs(make_site(Path(store)), [*map(Path, logs)], options=options)


def jobs(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return the jobs that lose most to I/O, with their causes; `top` of them, or all."""
    return _table(store, "jobs", top, choice)


def applications(
    store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]
) -> SiteTable:
    """Return applications by the node-hours they lose to I/O."""
    return _table(store, "applications", top, choice)


def users(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return users by the node-hours their jobs lose to I/O."""
    return _table(store, "users", top, choice)


def targets(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return storage targets, those with the slowest worst tenth of jobs first."""
    return _table(store, "targets", top, choice)


def hosts(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return nodes, those with the slowest worst tenth of jobs first."""
    return _table(store, "hosts", top, choice)


def causes(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return causes by the node-hours that removing them would save."""
    return _table(store, "causes", top, choice)


def periods(store: str | Path, *, top: int | None = None, **choice: Unpack[JobChoice]) -> SiteTable:
    """Return applications with periodic I/O, by their node-hours."""
    return _table(store, "periods", top, choice)


def files(
    store: str | Path,
    *,
    by: Literal["pattern", "file"] = "pattern",
    top: int | None = None,
    **choice: Unpack[JobChoice],
) -> SiteTable:
    """Return kinds of files, or single files, by the time that jobs spend in them."""
    return _table(store, "files", top, choice, by)


def report(store: str | Path, **choice: Unpack[JobChoice]) -> SiteStory:
    """Return everything that the page of `ioprism site report` shows."""
    from ioprism.site.summary import site_story

    return site_story(select_tables(store, choice))


def history(store: str | Path) -> SiteHistory:
    """Open a store to judge jobs by it, as `ioprism.diagnose(trace, site=...)` does."""
    from ioprism.site.history import open_history

    return open_history(Path(store))


def select_tables(store: str | Path, choice: JobChoice, subject: str | None = None) -> SiteTables:
    """Return the tables of a store that a subject needs, of the jobs asked for."""
    from ioprism.site.steps import chosen_tables, parse_day
    from ioprism.site.summary import Chosen

    which = Chosen(
        parse_day(choice.get("since")),
        parse_day(choice.get("until")),
        choice.get("application"),
        choice.get("user"),
        choice.get("mount"),
    )
    return chosen_tables(Path(store), which, subject=subject, servers=choice.get("servers"))


def _table(
    store: str | Path,
    subject: str,
    top: int | None,
    choice: JobChoice,
    by: Literal["pattern", "file"] = "pattern",
) -> SiteTable:
    from ioprism.site.summary import site_table

    return site_table(select_tables(store, choice, subject), subject, top=top, by=by)
