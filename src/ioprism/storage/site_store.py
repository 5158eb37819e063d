"""Keep what is known of every job of a centre, as Parquet tables that other tools open too.

A batch of jobs is one file in each table's folder. The file of `jobs` appears last: a batch
whose jobs are not there was interrupted, and is removed before anything else is added. So a
killed run loses at most the batch it worked on, and nothing is ever counted twice.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError, OutputError
from ioprism.model.site import SITE_JOBS, SITE_TABLES
from ioprism.storage.atomic import atomic_write
from ioprism.storage.checked_parquet import ChangedContentError, read_checked, write_checked

MANIFEST = "ioprism-site.json"
LOCK = ".lock"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SiteStore:
    """A folder of site tables."""

    folder: Path

    def table(self, name: str) -> pl.DataFrame:
        """Return a whole table.

        Raises:
            BrokenTraceError: one of its files cannot be read.
        """
        schema = SITE_TABLES[name]
        parts = sorted((self.folder / name).glob("*.parquet"))
        whole = set(self._batches("jobs"))
        kept = [part for part in parts if part.name in whole]
        if not kept:
            return schema.empty()
        try:
            return pl.concat([schema.conform(read_checked(part)) for part in kept])
        except (ChangedContentError, pl.exceptions.PolarsError) as error:
            raise BrokenTraceError(
                "the table cannot be read, or is damaged.\nHint: add the logs to a new store.",
                source=self.folder / name,
            ) from error

    def known(self) -> frozenset[str]:
        """Return the jobs that are here, by the digest of their logs."""
        return frozenset(self.table(SITE_JOBS.name)["job"])

    def add(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Add a batch; whoever adds holds the lock."""
        names = self._batches("jobs")
        number = 1 + max((int(name.partition(".")[0]) for name in names), default=0)
        order = [name for name in SITE_TABLES if name != SITE_JOBS.name]
        for name in (*order, SITE_JOBS.name):
            table = SITE_TABLES[name].conform(tables[name])
            place = self.folder / name / f"{number:08d}.parquet"
            with atomic_write(place, replace=True) as aside:
                write_checked(table, aside)

    @contextmanager
    def adding(self) -> Iterator[SiteStore]:
        """Hold the store alone, and clear away what an interrupted run left.

        Raises:
            OutputError: another process is adding.
        """
        with (self.folder / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OutputError(
                    f"{self.folder}: another process is adding jobs to this store.\n"
                    "Hint: wait until it ends; logs given to both are added once."
                ) from error
            self._remove_interrupted()
            yield self

    def _batches(self, name: str) -> list[str]:
        return [path.name for path in (self.folder / name).glob("*.parquet")]

    def _remove_interrupted(self) -> None:
        whole = set(self._batches(SITE_JOBS.name))
        for name in SITE_TABLES:
            for part in (self.folder / name).glob("*.parquet"):
                if part.name not in whole:
                    part.unlink()


def open_site(folder: Path) -> SiteStore:
    """Open a store for reading.

    Raises:
        BrokenTraceError: the folder is no site store, or one of another version.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise BrokenTraceError(
            "this is not a site store.\n"
            f"Hint: make one with `ioprism site add LOG... --store {folder}`.",
            source=folder,
        )
    try:
        version = json.loads(manifest.read_text(encoding="utf-8")).get("ioprism_site_store")
    except (OSError, ValueError, AttributeError) as error:
        raise BrokenTraceError(
            f"its manifest cannot be read ({error}).\nHint: add the logs to a new store.",
            source=manifest,
        ) from error
    if version != VERSION:
        raise BrokenTraceError(
            f"this store has version {version}; this ioprism reads version {VERSION}.\n"
            "Hint: add the logs to a new store.",
            source=folder,
        )
    return SiteStore(folder)


def make_site(folder: Path) -> SiteStore:
    """Open a store, or make one in a folder that is empty or not there.

    Raises:
        OutputError: the folder holds something else.
    """
    if (folder / MANIFEST).is_file():
        return open_site(folder)
    if folder.exists() and (not folder.is_dir() or not all(map(_begun, folder.iterdir()))):
        raise OutputError(
            f"{folder} already exists and is not a site store.\nHint: choose another name."
        )
    for name in SITE_TABLES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / MANIFEST) as aside:
        aside.write_text(json.dumps({"ioprism_site_store": VERSION}), encoding="utf-8")
    return SiteStore(folder)


def _begun(inner: Path) -> bool:
    """Whether this is what a run that was killed while it made a store left."""
    return inner.name in SITE_TABLES and inner.is_dir() and not any(inner.iterdir())
