"""Bring raw files of counters and jobs, in any order and any number of times, into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ioprism.errors import NoSuchTraceError, TraceError, UnknownFormatError
from ioprism.formats.files import check_readable, files_below
from ioprism.model.counters import JOBS, ReadingOptions, Tally
from ioprism.model.trace import Progress
from ioprism.servers.counter_formats.registry import (
    COUNTER_READERS,
    HINT,
    JOB_READERS,
    CounterReader,
    JobReader,
    find_counter_reader,
    find_job_reader,
)
from ioprism.servers.store import (
    CounterStore,
    Ingested,
    add_counters,
    add_jobs,
    enter_in_ledger,
    store_for_writing,
)

# About 300 MB: partitions are rewritten when this many samples have come together.
ROWS_HELD = 1_500_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one raw file."""

    path: Path
    format: str  # empty for a file of a folder that nobody recognises
    records: int
    known: bool  # its records were in the store already
    warnings: tuple[str, ...]


def ingest(
    sources: Sequence[Path],
    folder: Path,
    *,
    options: ReadingOptions,
    progress: Progress = lambda _: None,
) -> list[Outcome]:
    """Read raw files and folders of them into a store; what is there already is skipped.

    Raises:
        NoSuchTraceError: a source does not exist.
        UnknownFormatError: a file that was named is neither counters nor jobs.
        BrokenTraceError: a file is a pipe, or not for us to read.
        OutputError: the folder cannot be used as a store.
    """
    files = [_Raw.of(path, named=named) for path, named in _files(sources)]
    with store_for_writing(folder) as store:
        writer = _Writer(store, options, progress, store.ledger())
        outcomes = [writer.take(file) for file in files]
        writer.flush()
    return outcomes


def _files(sources: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    for source in sources:
        if not source.exists():
            raise NoSuchTraceError(source)
        if source.is_dir():
            yield from ((path, False) for path in files_below(source))
        else:
            yield source, True


@dataclass(frozen=True, slots=True)
class _Raw:
    """A raw file and who can read it."""

    path: Path
    reader: CounterReader | JobReader | None

    @classmethod
    def of(cls, path: Path, *, named: bool) -> _Raw:
        check_readable(path)
        reader = find_counter_reader(path) or find_job_reader(path)
        if reader is None and named:
            raise UnknownFormatError(path, tried=(*COUNTER_READERS, *JOB_READERS), hint=HINT)
        return cls(path, reader)

    def digest(self, options: ReadingOptions) -> str:
        """Name the content, and what else its records depend on."""
        with self.path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        given = f"{options.time_us}|{options.timezone}"
        return f"{content}-{hashlib.sha256(given.encode()).hexdigest()[:8]}"


@dataclass(slots=True)
class _Writer:
    """Holds samples until there are enough to be worth rewriting partitions."""

    store: CounterStore
    options: ReadingOptions
    progress: Progress
    known: dict[str, Ingested]
    samples: list[pl.DataFrame] = field(default_factory=list)
    jobs: list[pl.DataFrame] = field(default_factory=list)
    finished: dict[str, Ingested] = field(default_factory=dict)
    rows: int = 0
    read: int = 0

    def take(self, file: _Raw) -> Outcome:
        """Read one file, unless the ledger knows its content."""
        if file.reader is None:
            return Outcome(file.path, "", 0, False, ("neither counters nor jobs: skipped",))
        key = file.digest(self.options)
        known = self.finished.get(key) or self.known.get(key)
        if known is not None:
            return Outcome(file.path, known.format, known.records, True, known.warnings)
        tally = Tally()
        try:
            self._read(file, tally)
        except TraceError as error:
            self.flush()
            raise error
        entry = Ingested(file.path.name, file.reader.name, tally.records, tuple(tally.warnings()))
        self.finished[key] = entry
        return Outcome(file.path, entry.format, entry.records, False, entry.warnings)

    def _read(self, file: _Raw, tally: Tally) -> None:
        tables = file.reader.read(file.path, self.options, tally) if file.reader else ()
        if isinstance(tables, pl.DataFrame):
            self.jobs.append(tables)
            return
        for table in tables:
            self.samples.append(table)
            self.rows += table.height
            self.read += table.height
            self.progress(self.read)
            if self.rows >= ROWS_HELD:
                self.flush()

    def flush(self) -> None:
        """Bring everything held into the store, then say which files are there as a whole."""
        if self.samples:
            add_counters(self.store, pl.concat(self.samples))
        self.samples, self.rows = [], 0
        if self.jobs:
            add_jobs(self.store, pl.concat([JOBS.empty(), *self.jobs]))
        if self.finished:
            enter_in_ledger(self.store, self.finished)
        self.known |= self.finished
        self.jobs, self.finished = [], {}
