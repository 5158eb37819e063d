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
from ioprism.model.schema import Column, Table
from ioprism.storage.atomic import atomic_write, atomic_write_text, held_alone, refuse_unless_text
from ioprism.storage.checked import (
    ChangedContentError,
    checked_text,
    read_checked,
    read_document,
    write_checked,
)
from ioprism.text import printable

_JOB = Column("job", pl.String(), "the log, by a digest of its content")

SITE_JOBS = Table(
    "jobs",
    "One row for every job.",
    (
        _JOB,
        Column("path", pl.String(), "where the log was"),
        Column("job_id", pl.String(), "the scheduler's number of the job", nullable=True),
        Column("user", pl.String(), "who ran it", nullable=True),
        Column("application", pl.String(), "the program, without its folder", nullable=True),
        Column("start", pl.Float64(), "when it started, since 1970", "s", nullable=True),
        Column("runtime", pl.Float64(), "how long it ran", "s"),
        Column("ranks", pl.Int64(), "MPI ranks or processes"),
        Column("nodes", pl.Int64(), "nodes that the log names", nullable=True),
        Column(
            "cores_per_node",
            pl.Int64(),
            "as `add --cores-per-node` said, to estimate nodes",
            nullable=True,
        ),
        Column("status", pl.String(), "cause, possible, none or cannot-judge"),
        Column("io_stall", pl.Float64(), "I/O stall time; null if not judged", "s", nullable=True),
        Column("first_cause", pl.String(), "the main cause; null if there is none", nullable=True),
        Column(
            "saving",
            pl.Float64(),
            "what removing all causes saves; null if not judged",
            "s",
            nullable=True,
        ),
        Column("bytes_read", pl.Int64(), "bytes read", "B"),
        Column("bytes_written", pl.Int64(), "bytes written", "B"),
        Column("operations", pl.Int64(), "reads and writes"),
        Column("metadata", pl.Int64(), "metadata calls"),
        Column("request_bytes", pl.Float64(), "mean size of a read or write", "B", nullable=True),
        Column("collective", pl.Float64(), "share of collective MPI-IO calls", nullable=True),
        Column("rate", pl.Float64(), "bytes over the time in calls", "B/s", nullable=True),
        Column("layers", pl.String(), "interfaces used, joined by +"),
        Column("files", pl.Int64(), "files touched"),
        Column("stripe_count", pl.Float64(), "mean stripe count of its files", nullable=True),
        Column("warnings", pl.Int64(), "what is missing from the log"),
        Column("pattern", pl.String(), "periodic, possible, slotted or none", nullable=True),
        Column("period", pl.Float64(), "distance of its I/O phases", "s", nullable=True),
        Column("period_of", pl.String(), "read, write or both", nullable=True),
        Column("duty_cycle", pl.Float64(), "share of a period with I/O", nullable=True),
        Column("phase_bytes", pl.Float64(), "bytes of a phase", "B", nullable=True),
        Column("period_confidence", pl.Float64(), "from 0 to 1", nullable=True),
    ),
)

SITE_CAUSES = Table(
    "causes",
    "One row for every cause of I/O stall time of a job.",
    (
        _JOB,
        Column("code", pl.String(), "the cause"),
        Column("subject", pl.String(), "the culprit, in words"),
        Column("culprit", pl.String(), "the culprit, as JSON"),
        Column("saving", pl.Float64(), "what removing it saves", "s"),
        Column("low", pl.Float64(), "lower end of the 90 % interval", "s"),
        Column("high", pl.Float64(), "upper end of the 90 % interval", "s"),
        Column("confidence", pl.Float64(), "from 0 to 1"),
        Column("title", pl.String(), "the cause in a sentence"),
        Column("advice", pl.String(), "what to do first", nullable=True),
    ),
)


_FILE_SYSTEM = Column("file_system", pl.String(), "mount point of the file system")


def _parts(name: str, key: str, meaning: str, *where: Column) -> Table:
    return Table(
        name,
        f"One row for every {meaning} that a job used.",
        (
            _JOB,
            Column("start", pl.Float64(), "when the job started, since 1970", "s", nullable=True),
            *where,
            Column(key, pl.String(), f"the {meaning}"),
            Column("operations", pl.Int64(), "reads and writes"),
            Column("bytes", pl.Int64(), "bytes moved", "B"),
            Column("seconds", pl.Float64(), "time in calls", "s"),
            Column("rate", pl.Float64(), "bytes over time", "B/s"),
            Column(
                "relative",
                pl.Float64(),
                "its rate over the median of the job's others; null where the log cannot tell",
                nullable=True,
            ),
        ),
    )


SITE_TARGETS = _parts("targets", "target", "storage target", _FILE_SYSTEM)
SITE_HOSTS = _parts("hosts", "host", "node")

SITE_FILES = Table(
    "files",
    "The files of a job that take longest, one row each, and the others by kind.",
    (
        _JOB,
        _FILE_SYSTEM,
        Column("pattern", pl.String(), "the path with every run of digits replaced by `#`"),
        Column("file", pl.String(), "the path; null for several files of a kind", nullable=True),
        Column("files", pl.Int64(), "files of this row"),
        Column("operations", pl.Int64(), "reads and writes"),
        Column("bytes_read", pl.Int64(), "bytes read", "B"),
        Column("bytes_written", pl.Int64(), "bytes written", "B"),
        Column("seconds", pl.Float64(), "time in calls", "s"),
    ),
)

SITE_RATES = Table(
    "rates",
    "One row for every way in which a job moved data, with the rate that it reached.",
    (
        _JOB,
        _FILE_SYSTEM,
        Column("operation", pl.String(), "read or write"),
        Column("size_class", pl.Int64(), "class of the mean request, 0 to 9 as Darshan's"),
        Column("shared", pl.Boolean(), "whether several ranks use each file"),
        Column("ranks", pl.Int64(), "ranks that move it"),
        Column("targets", pl.Int64(), "storage targets of its files", nullable=True),
        Column("requests", pl.Int64(), "reads or writes"),
        Column("bytes", pl.Int64(), "bytes moved", "B"),
        Column("seconds", pl.Float64(), "of the slowest rank, with syncs", "s"),
        Column("synced", pl.Boolean(), "whether written data was forced to storage"),
    ),
)

SITE_TABLES = {
    table.name: table
    for table in (SITE_JOBS, SITE_CAUSES, SITE_TARGETS, SITE_HOSTS, SITE_FILES, SITE_RATES)
}


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
        if not isinstance(parts, list) or not all(
            isinstance(n, int) and 0 < n <= MAX_PART for n in parts
        ):
            raise _broken(self.folder / MANIFEST, "it does not list its parts")
        return parts

    def _remove_unlisted(self) -> None:
        whole = set(self._parts())
        for name in SITE_TABLES:
            for place in (self.folder / name).glob("*.parquet"):
                if place.stem.isdecimal() and int(place.stem) not in whole:
                    place.unlink()


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
        OutputError: the folder holds something else, or its name is not UTF-8.
    """
    refuse_unless_text(folder)
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
