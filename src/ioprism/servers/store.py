"""Keep counters and jobs as Parquet, by server and month: each record once, nothing half-written.

A partition is a sorted set of records, so it is the same file whatever order its records came
in. It is written to a temporary file and renamed; a raw file is entered in the ledger only after
its records are in place. A run that is killed leaves at most a temporary file, which the next run
removes, and raw files that are not in the ledger, which the next run reads again.

`servers watch` adds a small file for every round to `watched/`; a killed run loses at most the
round it was in. Small files are merged into larger ones, and readers take both places together.

Every file carries a digest of its content and the manifest names every partition, so that
neither a changed byte nor a missing file changes an answer unnoticed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

import polars as pl
from msgspec import Meta, ValidationError, convert

from ioprism.errors import BrokenTraceError, OutputError
from ioprism.model.counters import COUNTERS, JOBS, RECORD_KEY, VALUES, each_run_once
from ioprism.servers.limits import ROWS_PER_TABLE
from ioprism.servers.series import sampling_interval_us
from ioprism.storage.atomic import atomic_write, held_alone, refuse_unless_text
from ioprism.storage.checked import (
    UNREADABLE,
    ChangedContentError,
    check,
    checked_text,
    read_checked,
    read_document,
    write_checked,
)
from ioprism.text import printable

VERSION = 2
MANIFEST = "ioprism-servers.json"
LEDGER = "ledger.json"
JOBS_FILE = "jobs.parquet"
PER_SERVER = "counters.parquet"
PER_JOB = "job_counters.parquet"
LONGEST_NAME = 120
# How much of a store is read to learn its sampling interval.
SERVERS_ASKED, MONTHS_ASKED, SAMPLES_ASKED = 40, 3, 2_000
# Files of `servers watch`: this many are merged into one, up to the rows of a table.
WATCHED_AT_ONCE = 4
READERS_SECONDS = 600.0  # that merged files stay, for commands that read the store meanwhile
# A manifest must not point outside its store.
Partition = Annotated[str, Meta(pattern=r"^server=[^/\0]+/month=[^/\0]+/[^/\0]+\.parquet\Z")]
WatchedFile = Annotated[str, Meta(pattern=r"^\d+-\d+-\d+\.parquet\Z")]


@dataclass(slots=True)
class WatchIndex:
    """What `servers watch` has stored."""

    files: dict[WatchedFile, tuple[int, int, int]] = field(default_factory=dict)  # see `Manifest`
    servers: list[str] = field(default_factory=list)
    per_job: list[str] = field(default_factory=list)  # servers with counters for each job


@dataclass(slots=True)
class Manifest:
    """What a store holds; a watched file has a number of rows, a first and a last time."""

    partitions: list[Partition]
    jobs: bool
    watched: WatchIndex
    ioprism_server_store: int = VERSION


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A raw file whose records are all in the store."""

    name: str
    format: str
    records: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CounterStore:
    """The folder of a store, as a source of counters and jobs."""

    folder: Path

    def servers(self) -> list[str]:
        """Name every server, sorted."""
        return sorted(
            {*filter(None, map(_server_of, self._folders())), *self._watch_index().servers}
        )

    def _folders(self) -> Iterator[Path]:
        return (self.folder / "counters").glob("server=*")

    def per_job_servers(self) -> list[str]:
        """Name the servers that keep counters for each job, sorted."""
        keep = [path for path in self._folders() if next(path.glob(f"month=*/{PER_JOB}"), None)]
        return sorted({*filter(None, map(_server_of, keep)), *self._watch_index().per_job})

    def _watch_index(self) -> WatchIndex:
        return _read_manifest(self.folder).watched

    def months(self, server: str, *, per_job: bool = False) -> list[tuple[str, Path]]:
        """Return the months of a server and their files, in order."""
        place = self.folder / "counters" / f"server={file_name(server)}"
        return sorted(
            (path.parent.name.removeprefix("month="), path)
            for path in place.glob(f"month=*/{PER_JOB if per_job else PER_SERVER}")
        )

    def span(self) -> tuple[int, int] | None:
        """Return when the first and the last sample of any server was taken, if there are any."""
        partitions = (self.folder / "counters").glob("server=*/month=*/*.parquet")
        files = sorted(path for path in partitions if path.is_file())
        months = sorted({path.parent.name for path in files})
        ends = [path for path in files if path.parent.name in (*months[:1], *months[-1:])]
        watched = [limit for file in self._watch_index().files.values() for limit in file[1:]]
        if not ends:
            return (min(watched), max(watched)) if watched else None
        time = pl.col("time_us")
        try:
            samples = pl.scan_parquet(ends, hive_partitioning=False, glob=False)
            first, last = samples.select(time.min(), time.max().alias("last")).collect().row(0)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _damaged_of(ends) from error
        limits = [*watched, *(limit for limit in (first, last) if limit is not None)]
        return (min(limits), max(limits)) if limits else None

    def counters(
        self, server: str, *, start_us: int, end_us: int, per_job: bool = False
    ) -> pl.DataFrame:
        """Return the samples of a server in this span, with the columns of COUNTERS."""
        first, last = month_of(start_us), month_of(end_us)
        files = [
            path for month, path in self.months(server, per_job=per_job) if first <= month <= last
        ]
        known = self._watch_index()
        watched = [
            self.folder / "watched" / name
            for name, (_, first_us, last_us) in known.files.items()
            if first_us <= end_us and last_us >= start_us
        ] if server in (known.per_job if per_job else known.servers) else []  # fmt: skip
        if not files and not watched:
            return COUNTERS.empty()
        wanted = pl.col("time_us").is_between(start_us, end_us)
        theirs = (pl.col("server") == server) & (pl.col("job").is_not_null() == per_job)
        try:
            for path in (*files, *watched):
                check(path)
            parts = [
                pl.scan_parquet(paths, hive_partitioning=False, glob=False).filter(chosen)
                for paths, chosen in ((files, wanted), (watched, wanted & theirs))
                if paths
            ]
            samples = pl.concat(parts).collect()
        except (*UNREADABLE, ChangedContentError) as error:
            raise _damaged_of([*files, *watched]) from error
        return each_record_once(samples) if watched else samples

    def jobs(self) -> pl.DataFrame:
        """Return the jobs that were ingested."""
        path = self.folder / JOBS_FILE
        return read_table(path) if path.is_file() else JOBS.empty()

    def ledger(self) -> dict[str, LedgerEntry]:
        """Return the raw files whose records are all here, by the digest of their content."""
        path = self.folder / LEDGER
        if not path.is_file():
            return {}
        try:
            return convert(_read_json(path), dict[str, LedgerEntry])
        except ValidationError as error:
            raise _broken(path, f"its ledger is incomplete ({error})") from error


def open_store(folder: Path) -> CounterStore:
    """Open a store for reading.

    Raises:
        BrokenTraceError: the folder is not a store, or one of another version.
    """
    if not (folder / MANIFEST).is_file():
        raise BrokenTraceError(
            "this is not a store of server counters.\n"
            f"Hint: make one with `ioprism servers ingest RAW... --store {folder}`.",
            source=folder,
        )
    version = _read_json(folder / MANIFEST).get("ioprism_server_store")
    if version != VERSION:
        raise BrokenTraceError(
            f"this store has version {version}; this ioprism reads version {VERSION}.\n"
            "Hint: ingest the raw files into a new store.",
            source=folder,
        )
    manifest = _read_manifest(folder)
    inside = [f"counters/{name}" for name in manifest.partitions]
    inside += [f"watched/{name}" for name in manifest.watched.files]
    for name in [*([JOBS_FILE] if manifest.jobs else []), *inside]:
        if not (folder / name).is_file():
            raise _broken(folder, f"{printable(name)} is missing")
    return CounterStore(folder)


def _read_manifest(folder: Path) -> Manifest:
    try:
        return convert(_read_json(folder / MANIFEST), Manifest)
    except ValidationError as error:
        raise _broken(folder, f"its manifest is incomplete ({error})") from error


@contextmanager
def store_for_writing(folder: Path) -> Iterator[CounterStore]:
    """Open a store for writing, created if needed; other writers are locked out.

    Raises:
        OutputError: the folder holds something else, or another run is writing.
    """
    refuse_unless_text(folder)
    if folder.exists() and not (folder / MANIFEST).is_file() and _foreign(folder):
        raise OutputError(
            f"{folder} contains something other than a store of server counters.\n"
            "Hint: choose another folder for --store."
        )
    taken = f"another run is writing to {folder}.\nHint: wait until it has finished."
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(held_alone(folder / ".lock", otherwise=taken))
        except OSError as error:
            raise OutputError(
                f"{folder} cannot be written to ({error.strerror}).\n"
                "Hint: choose another folder for --store."
            ) from error
        for leftover in folder.rglob(".*.new"):
            leftover.unlink(missing_ok=True)
        if not (folder / MANIFEST).is_file():
            _write_manifest(folder)
        yield open_store(folder)


def _foreign(folder: Path) -> bool:
    """Whether the folder holds more than a first run that was killed may have left."""
    return not folder.is_dir() or any(
        path.name != ".lock" and not path.name.endswith(".new") for path in folder.iterdir()
    )


def add_counters(store: CounterStore, samples: pl.DataFrame) -> None:
    """Add samples to their partitions; those that are there already change nothing."""
    month = pl.from_epoch("time_us", time_unit="us").dt.strftime("%Y-%m").alias("month")
    kind = pl.when(pl.col("job").is_null()).then(pl.lit(PER_SERVER)).otherwise(pl.lit(PER_JOB))
    marked = samples.with_columns(month, kind=kind)
    by_partition = marked.partition_by("server", "month", "kind", as_dict=True)
    for (server, name, file), rows in sorted(by_partition.items()):
        place = store.folder / "counters" / f"server={file_name(str(server))}" / f"month={name}"
        path = place / str(file)
        known = read_table(path) if path.is_file() else COUNTERS.empty()
        merged = each_record_once(pl.concat([known, COUNTERS.conform(rows)]))
        if not merged.equals(known):
            _write_table(merged, path)
    _write_manifest(store.folder)


def add_watched(store: CounterStore, samples: pl.DataFrame) -> None:
    """Add the samples of one round of `servers watch`, and merge small files of earlier rounds."""
    watched = store._watch_index()
    once = each_record_once(COUNTERS.conform(samples))
    _add_watched_file(store.folder, watched.files, once, level=0)
    named = once.group_by("server").agg(of_jobs=pl.col("job").is_not_null().any())
    watched.servers = sorted({*watched.servers, *named["server"]})
    watched.per_job = sorted({*watched.per_job, *named.filter("of_jobs")["server"]})
    _merge_watched_files(store.folder, watched.files)
    _write_manifest(store.folder, watched=watched)
    for path in (store.folder / "watched").glob("*.parquet"):
        forgotten = path.name not in watched.files
        if forgotten and time.time() - path.stat().st_mtime > READERS_SECONDS:
            path.unlink(missing_ok=True)


def _merge_watched_files(folder: Path, files: dict[str, tuple[int, int, int]]) -> None:
    """Merge small files; readers sort what they take, so only what is the same twice goes."""
    for level in range(len(files)):
        small = [
            name
            for name, (rows, *_) in files.items()
            if name.startswith(f"{level}-") and rows * WATCHED_AT_ONCE <= ROWS_PER_TABLE
        ]
        if len(small) < WATCHED_AT_ONCE:
            break
        merged = pl.concat(read_table(folder / "watched" / name) for name in small)
        _add_watched_file(folder, files, merged.unique(maintain_order=True), level=level + 1)
        for name in small:
            del files[name]


def _add_watched_file(
    folder: Path, files: dict[str, tuple[int, int, int]], samples: pl.DataFrame, *, level: int
) -> None:
    if not samples.height:
        return
    first, last = samples.select(pl.col("time_us").min(), pl.col("time_us").max().alias("l")).row(0)
    number = 1 + max((int(name.split("-")[2].split(".")[0]) for name in files), default=0)
    name = f"{level}-{max(0, first)}-{number}.parquet"
    _write_table(samples, folder / "watched" / name)
    files[name] = (samples.height, first, last)


def _write_manifest(folder: Path, *, watched: WatchIndex | None = None) -> None:
    if watched is None:
        known = (folder / MANIFEST).is_file()
        watched = _read_manifest(folder).watched if known else WatchIndex()
    place = folder / "counters"
    names = sorted(
        str(path.relative_to(place)) for path in place.glob("server=*/month=*/*.parquet")
    )
    manifest = Manifest(names, (folder / JOBS_FILE).is_file(), watched)
    _write_json(asdict(manifest), folder / MANIFEST)


def each_record_once(samples: pl.DataFrame) -> pl.DataFrame:
    """Sort records; of two that contradict each other the larger one is kept."""
    ordered = samples.sort(*RECORD_KEY, *VALUES, nulls_last=False)
    return ordered.unique(RECORD_KEY, keep="last", maintain_order=True)


def add_jobs(store: CounterStore, jobs: pl.DataFrame) -> None:
    """Add jobs; runs that are there already change nothing."""
    merged = each_run_once(pl.concat([store.jobs(), JOBS.conform(jobs)]))
    _write_table(merged, store.folder / JOBS_FILE)
    _write_manifest(store.folder)


def enter_in_ledger(store: CounterStore, entries: Mapping[str, LedgerEntry]) -> None:
    """Remember that every record of these raw files is in the store."""
    merged = {**store.ledger(), **entries}
    document = {key: asdict(merged[key]) for key in sorted(merged)}
    _write_json(document, store.folder / LEDGER)


def file_name(server: str) -> str:
    """Return a server's name as one that is safe as a folder's name, and no other server's."""
    safe = quote(server, safe="").replace("~", "%7E")
    if safe.startswith("."):
        safe = f"%2E{safe[1:]}"
    if len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[:60]}~{hashlib.sha256(server.encode()).hexdigest()[:32]}"


def _server_of(folder: Path) -> str | None:
    """Return whose folder it is; a long name stands in the tables only."""
    name = folder.name.removeprefix("server=")
    table = next(folder.glob("month=*/*.parquet"), None)
    if table is None:
        return None
    return str(read_table(table)["server"][0]) if "~" in name else unquote(name)


def month_of(time_us: int) -> str:
    """Return the month of a time as partitions name it: `2026-10`."""
    return (datetime(1970, 1, 1) + timedelta(microseconds=time_us)).strftime("%Y-%m")


def read_table(path: Path) -> pl.DataFrame:
    """Read one Parquet file of the store.

    Raises:
        BrokenTraceError: it cannot be read.
    """
    wanted = JOBS if path.name == JOBS_FILE else COUNTERS
    try:
        return wanted.conform(read_checked(path))
    except (ChangedContentError, pl.exceptions.PolarsError) as error:
        raise _broken(path, str(error)) from error


def sampling_interval(store: CounterStore) -> int:
    """Return how often a store's servers were sampled, in microseconds."""
    names = store.servers()
    asked = names[:: max(1, len(names) // SERVERS_ASKED)]
    for per_job in (False, True):
        tables = [_first_samples(store, name, per_job=per_job) for name in asked]
        if per_job or any(table.height > 1 for table in tables):
            break
    return sampling_interval_us(tables, per_job=per_job)


def _first_samples(store: CounterStore, server: str, *, per_job: bool) -> pl.DataFrame:
    """Return the beginning of some months: the first may have a single sample."""
    months = store.months(server, per_job=per_job)[:MONTHS_ASKED]
    if not months and (span := store.span()) is not None:
        rows = store.counters(server, start_us=span[0], end_us=span[1], per_job=per_job)
        return rows.head(SAMPLES_ASKED)
    files = [path for _, path in months]
    return pl.concat([COUNTERS.empty(), *(read_table(path).head(SAMPLES_ASKED) for path in files)])


def _damaged_of(files: Sequence[Path]) -> BrokenTraceError:
    """Return the error that names the one of several files that cannot be read."""
    for path in files:
        try:
            read_table(path)
        except BrokenTraceError as error:
            return error
    return _broken(files[0].parent, "its files do not belong together")


@contextmanager
def _writing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; a disk that is full or refuses is one message."""
    try:
        with atomic_write(path, replace=True) as temporary:
            yield temporary
    except (OSError, pl.exceptions.PolarsError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise OutputError(
            f"{path}: cannot be written ({why}).\n"
            "Hint: free some space, then run the same command again: what is complete is kept."
        ) from error


def _write_table(table: pl.DataFrame, path: Path) -> None:
    with _writing(path) as temporary:
        write_checked(table, temporary)


def _write_json(document: Mapping[str, Any], path: Path) -> None:
    with _writing(path) as temporary:
        temporary.write_text(checked_text(document), encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document, sound = read_document(path)
    except ChangedContentError as error:
        raise _broken(path, str(error)) from error
    old = document.get("ioprism_server_store", VERSION) != VERSION  # reported by open_store
    if not sound and not old:
        raise _broken(path, "its content was changed")
    return document


def _broken(path: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"the store is damaged: {why}.\nHint: ingest the raw files into a new store.", source=path
    )
