"""Keep what is known of every job of a centre, as Parquet tables that other tools open too.

A batch of jobs is one file in each table's folder, and the manifest says how many batches
there are. Whatever is beyond them was interrupted, and is removed before anything else is added;
what is missing of them is said. So a killed run loses at most the batch it worked on, nothing
is ever counted twice, and no file can vanish unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.errors import BrokenTraceError, OutputError
from ioprism.model.schema import Table
from ioprism.site.columns import SITE_JOBS, SITE_TABLES
from ioprism.storage.atomic import atomic_write, atomic_write_text, held_alone
from ioprism.storage.checked import (
    ChangedContentError,
    checked_text,
    read_checked,
    read_document,
    write_checked,
)
from ioprism.text import printable

MANIFEST = "ioprism-site.json"
LOCK = ".lock"
VERSION = 2
MOST_BATCHES = 10**8 - 1  # names have eight digits
UNCOUNTED = 1  # the version whose manifest does not count batches


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
        batches = range(1, self._batches() + 1)
        return pl.concat([schema.empty(), *(self._part(schema, number) for number in batches)])

    def _part(self, schema: Table, number: int) -> pl.DataFrame:
        place = self._place(schema.name, number)
        try:
            return schema.conform(read_checked(place))
        except (ChangedContentError, pl.exceptions.PolarsError) as error:
            why = str(error) if place.exists() else "it is missing"
            raise _broken(place, why) from error

    def known(self) -> frozenset[str]:
        """Return the jobs that are here, by the digest of their logs."""
        return frozenset(self.table(SITE_JOBS.name)["job"])

    def add(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Add a batch; whoever adds holds the lock."""
        number = 1 + self._batches()
        for name, schema in SITE_TABLES.items():
            with atomic_write(self._place(name, number), replace=True) as temporary:
                write_checked(schema.conform(tables[name]), temporary)
        _write_manifest(self.folder, batches=number)

    @contextmanager
    def adding(self) -> Iterator[SiteStore]:
        """Hold the store alone, and clear away what an interrupted run left.

        Raises:
            OutputError: another process is adding.
        """
        taken = (
            f"{self.folder}: another process is adding jobs to this store.\n"
            "Hint: wait until it ends; logs given to both are added once."
        )
        with held_alone(self.folder / LOCK, otherwise=taken):
            self._remove_interrupted()
            yield self

    def _place(self, name: str, number: int) -> Path:
        return self.folder / name / f"{number:08d}.parquet"

    def _batches(self) -> int:
        """How many batches are whole; whatever is beyond them was interrupted."""
        manifest = _manifest(self.folder)
        if manifest["ioprism_site_store"] != UNCOUNTED:
            batches = manifest.get("batches")
            if not isinstance(batches, int) or not 0 <= batches <= MOST_BATCHES:
                raise _broken(self.folder / MANIFEST, "it does not count its batches")
            return batches
        jobs = (self.folder / SITE_JOBS.name).glob("*.parquet")
        return max((_number(path) for path in jobs), default=0)

    def _remove_interrupted(self) -> None:
        whole = self._batches()
        for name in SITE_TABLES:
            for part in (self.folder / name).glob("*.parquet"):
                if _number(part) > whole:
                    part.unlink()


def open_site(folder: Path) -> SiteStore:
    """Open a store for reading.

    Raises:
        BrokenTraceError: the folder is not a site store, or one of another version.
    """
    if not (folder / MANIFEST).is_file():
        raise BrokenTraceError(
            "this is not a site store.\n"
            f"Hint: make one with `ioprism site add LOG... --store {printable(str(folder))}`.",
            source=folder,
        )
    _manifest(folder)
    return SiteStore(folder)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest, sound = read_document(folder / MANIFEST)
    except ChangedContentError as error:
        raise _broken(folder / MANIFEST, str(error)) from error
    version = manifest.get("ioprism_site_store")
    if version not in (UNCOUNTED, VERSION):
        raise BrokenTraceError(
            f"this store has version {version}; this ioprism reads version {VERSION}.\n"
            "Hint: add the logs to a new store.",
            source=folder,
        )
    if not sound and manifest != {"ioprism_site_store": UNCOUNTED}:
        raise _broken(folder / MANIFEST, "its content was changed")
    return manifest


def _write_manifest(folder: Path, *, batches: int) -> None:
    document = {"ioprism_site_store": VERSION, "batches": batches}
    atomic_write_text(folder / MANIFEST, checked_text(document), replace=True)


def _number(part: Path) -> int:
    """The number of a batch; 0 for a file that is none of ours."""
    return int(part.stem) if part.stem.isdecimal() else 0


def _broken(place: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"the store is damaged: {why}.\nHint: add the logs to a new store.", source=place
    )


def make_site(folder: Path) -> SiteStore:
    """Open a store, or make one in a folder that is empty or not there.

    Raises:
        OutputError: the folder holds something else.
    """
    if (folder / MANIFEST).is_file():
        return open_site(folder)
    if folder.exists() and (not folder.is_dir() or not all(map(_begun, folder.iterdir()))):
        raise OutputError(
            f"{printable(str(folder))} already exists and is not a site store.\n"
            "Hint: choose another name."
        )
    for name in SITE_TABLES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write_manifest(folder, batches=0)
    return SiteStore(folder)


def _begun(inner: Path) -> bool:
    """Whether this is what a run that was killed while it made a store left."""
    return inner.name in SITE_TABLES and inner.is_dir() and not any(inner.iterdir())
