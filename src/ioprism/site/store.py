"""Keep what is known of every job of a centre, as Parquet tables that other tools open too.

A batch of jobs is one part: a file in each table's folder. The manifest lists the parts.
Whatever it does not list was interrupted, and is removed before anything else is added; what is
missing of them is reported. So a killed run loses at most the batch it worked on, nothing is ever
counted twice, and no file can vanish unnoticed. Small parts are merged, so that a store of a
million jobs has tens of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
VERSION = 3
MAX_PART = 10**8 - 1  # names have eight digits
MERGED_PARTS = 32  # small parts from which they are merged
SMALL_PART = 50_000  # jobs: a part that takes part in merging


@dataclass(frozen=True, slots=True)
class SiteStore:
    """A folder of site tables."""

    folder: Path

    def table(self, name: str) -> pl.DataFrame:
        """Return a whole table.

        Raises:
            BrokenTraceError: one of its files cannot be read.
        """
        parts = self._parts()
        try:
            return self._read(SITE_TABLES[name], parts)
        except BrokenTraceError:
            if (now := self._parts()) == parts:
                raise
            return self._read(SITE_TABLES[name], now)  # another process merged parts meanwhile

    def _read(self, schema: Table, parts: Sequence[int]) -> pl.DataFrame:
        return pl.concat([schema.empty(), *(self._part(schema, number) for number in parts)])

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
        parts = self._parts()
        self._write([*parts, self._next(parts)], tables)
        small = self._small_parts()
        if len(small) >= MERGED_PARTS:
            self._merge(small)

    def _write(self, parts: Sequence[int], tables: Mapping[str, pl.DataFrame]) -> None:
        """Write the last one of these parts, and the manifest that lists them all."""
        for name, schema in SITE_TABLES.items():
            with atomic_write(self._place(name, parts[-1]), replace=True) as temporary:
                write_checked(schema.conform(tables[name]), temporary)
        _write_manifest(self.folder, parts=parts)

    def _merge(self, small: Sequence[int]) -> None:
        """Make one part of several; the others keep their places."""
        parts = self._parts()
        tables = {name: self._read(schema, small) for name, schema in SITE_TABLES.items()}
        self._write([*(n for n in parts if n not in small), self._next(parts)], tables)
        self._remove_unlisted()

    def _small_parts(self) -> list[int]:
        places = ((number, self._place(SITE_JOBS.name, number)) for number in self._parts())
        return [number for number, place in places if _height(place) < SMALL_PART]

    def _next(self, parts: Sequence[int]) -> int:
        return 1 + max(parts, default=0)

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
            self._remove_unlisted()
            yield self

    def _place(self, name: str, number: int) -> Path:
        return self.folder / name / f"{number:08d}.parquet"

    def _parts(self) -> list[int]:
        """The parts that are whole."""
        parts = _manifest(self.folder).get("parts")
        if not isinstance(parts, list) or not all(map(_is_part, parts)):
            raise _broken(self.folder / MANIFEST, "it does not list its parts")
        return parts

    def _remove_unlisted(self) -> None:
        whole = set(self._parts())
        for name in SITE_TABLES:
            for place in (self.folder / name).glob("*.parquet"):
                if place.stem.isdecimal() and int(place.stem) not in whole:
                    place.unlink()


def _is_part(number: object) -> bool:
    return isinstance(number, int) and 0 < number <= MAX_PART


def _height(place: Path) -> int:
    """Rows of a table; a damaged one counts as large, so that it is left as it is."""
    try:
        return int(pl.scan_parquet(place, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        return SMALL_PART


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
    if version != VERSION:
        raise BrokenTraceError(
            f"this store has version {version}; this ioprism reads version {VERSION}.\n"
            "Hint: add the logs to a new store.",
            source=folder,
        )
    if not sound:
        raise _broken(folder / MANIFEST, "its content was changed")
    return manifest


def _write_manifest(folder: Path, *, parts: Sequence[int]) -> None:
    document = {"ioprism_site_store": VERSION, "parts": list(parts)}
    atomic_write_text(folder / MANIFEST, checked_text(document), replace=True)


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
    _write_manifest(folder, parts=[])
    return SiteStore(folder)


def _begun(inner: Path) -> bool:
    """Whether this is what a run that was killed while it made a store left."""
    return inner.name in SITE_TABLES and inner.is_dir() and not any(inner.iterdir())
