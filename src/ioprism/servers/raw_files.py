"""Bring raw files of counters and jobs, in any order and any number of times, into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import polars as pl

from ioprism.errors import NoSuchTraceError, TraceError, UnknownFormatError, UsageError
from ioprism.formats.files import check_file, check_readable, files_below
from ioprism.model.counters import (
    EARLIEST,
    JOBS,
    LATEST,
    SECOND,
    ReadingOptions,
    Tally,
    each_run_once,
)
from ioprism.model.trace import Progress
from ioprism.plugins import declared, load
from ioprism.servers.store import (
    CounterStore,
    LedgerEntry,
    add_counters,
    add_jobs,
    enter_in_ledger,
    store_for_writing,
)

HINT = "`ioprism servers ingest --help` lists what can be read."
# Loaded only when tried: a reader may need an optional library.
COUNTER_READERS = {
    "mmpmon": "ioprism.servers.formats.gpfs:MmpmonReader",
    "mmpmon-text": "ioprism.servers.formats.gpfs:MmpmonTextReader",
    "lustre": "ioprism.servers.formats.lustre:LustreReader",
    "prometheus": "ioprism.servers.formats.lustre:PrometheusReader",
    "lmt": "ioprism.servers.formats.monitoring:LmtReader",
    "tokio": "ioprism.servers.formats.monitoring:TokioReader",
    "mmperfmon": "ioprism.servers.formats.monitoring:MmperfmonReader",
    "ldms": "ioprism.servers.formats.tables:LdmsReader",
    "collectd": "ioprism.servers.formats.tables:CollectdReader",
    "counter-table": "ioprism.servers.formats.tables:CounterTableReader",
}
JOB_READERS = {
    "slurm": "ioprism.servers.formats.schedulers:SlurmReader",
    "pbs": "ioprism.servers.formats.schedulers:PbsReader",
    "lsf": "ioprism.servers.formats.lsf:LsfReader",
    "lsf-text": "ioprism.servers.formats.lsf:LsfTextReader",
    "loadleveler": "ioprism.servers.formats.schedulers:LoadLevelerReader",
    "job-table": "ioprism.servers.formats.tables:JobTableReader",
}
MAX_ROWS_HELD = 1_500_000  # measured: about 300 MB; then partitions are rewritten


class RawReader(Protocol):
    """What every reader can do."""

    name: str
    title: str

    def recognises(self, source: Path) -> bool:
        """Whether the content, not the file name, is this format. Never raises."""
        ...


class CounterReader(RawReader, Protocol):
    """Turns one format into samples of counters."""

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables with the columns of COUNTERS; count what is left out."""
        ...


class JobReader(RawReader, Protocol):
    """Turns one format into jobs."""

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return a table with the columns of JOBS; count what is left out."""
        ...


def counter_readers() -> Iterator[CounterReader]:
    """Every reader of counters, those of plug-ins last."""
    yield from _readers(COUNTER_READERS, "ioprism.counter_readers")


def job_readers() -> Iterator[JobReader]:
    """Every reader of jobs, those of plug-ins last."""
    yield from _readers(JOB_READERS, "ioprism.job_readers")


def _readers(built_in: Mapping[str, str], group: str) -> Iterator[Any]:
    for path in built_in.values():
        yield resolve_name(path)()
    for plugin in declared(group):
        yield load(plugin)()


def find_counter_reader(source: Path) -> CounterReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in counter_readers() if reader.recognises(source)), None)


def find_job_reader(source: Path) -> JobReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in job_readers() if reader.recognises(source)), None)


def read_jobs(source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
    """Read jobs of any known format, each run once.

    Raises:
        NoSuchTraceError: the file does not exist.
        UnknownFormatError: no reader recognises the content.
    """
    check_file(source)
    reader = find_job_reader(source)
    if reader is None:
        raise UnknownFormatError(source, tried=tuple(JOB_READERS), hint=HINT)
    return each_run_once(reader.read(source, options, tally))


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """What became of one raw file."""

    path: Path
    format: str  # empty for a file of a folder that no reader recognises
    records: int
    known: bool  # its records were in the store already
    warnings: tuple[str, ...]


def ingest(
    *sources: str | Path,
    store: str | Path,
    time: float | None = None,
    timezone: str = "UTC",
    progress: Progress = lambda _: None,
) -> list[IngestedFile]:
    """Bring raw counters and job lists into a store; files already there are skipped.

    Args:
        sources: files and folders.
        store: the folder of the store, created if needed.
        time: when a scrape without time stamps was taken, in seconds since 1970.
        timezone: of local times without a zone.
        progress: is called with the number of records read so far.

    Raises:
        NoSuchTraceError: a source does not exist.
        UnknownFormatError: a file that was named is neither counters nor jobs.
        BrokenTraceError: a file is a pipe, or cannot be read.
        OutputError: the folder cannot be used as a store.
    """
    options = ReadingOptions(None if time is None else _time_us(time), timezone)
    files = [_RawFile.of(path, named=named) for path, named in _files(map(Path, sources))]
    with store_for_writing(Path(store)) as writable:
        writer = _Writer(writable, options, progress, writable.ledger())
        outcomes = [writer.take(file) for file in files]
        writer.flush()
    return outcomes


def _time_us(time: float) -> int:
    time_us = round(time * SECOND) if abs(time) * SECOND <= LATEST else LATEST + 1
    if not EARLIEST <= time_us <= LATEST:
        raise UsageError(f"--time {time} is not a time.\nHint: give seconds since 1970.")
    return time_us


def _files(sources: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    for source in sources:
        if not source.exists():
            raise NoSuchTraceError(source)
        if source.is_dir():
            yield from ((path, False) for path in files_below(source))
        else:
            yield source, True


@dataclass(frozen=True, slots=True)
class _RawFile:
    """A raw file and its reader."""

    path: Path
    reader: CounterReader | JobReader | None

    @classmethod
    def of(cls, path: Path, *, named: bool) -> _RawFile:
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
    known: dict[str, LedgerEntry]
    samples: list[pl.DataFrame] = field(default_factory=list)
    jobs: list[pl.DataFrame] = field(default_factory=list)
    finished: dict[str, LedgerEntry] = field(default_factory=dict)
    rows: int = 0
    read: int = 0

    def take(self, file: _RawFile) -> IngestedFile:
        """Read one file, unless the ledger knows its content."""
        if file.reader is None:
            return IngestedFile(file.path, "", 0, False, ("neither counters nor jobs: skipped",))
        key = file.digest(self.options)
        known = self.finished.get(key) or self.known.get(key)
        if known is not None:
            return IngestedFile(file.path, known.format, known.records, True, known.warnings)
        tally = Tally()
        try:
            self._read(file, tally)
        except TraceError as error:
            self.flush()
            raise error
        entry = LedgerEntry(
            file.path.name, file.reader.name, tally.records, tuple(tally.warnings())
        )
        self.finished[key] = entry
        return IngestedFile(file.path, entry.format, entry.records, False, entry.warnings)

    def _read(self, file: _RawFile, tally: Tally) -> None:
        tables = file.reader.read(file.path, self.options, tally) if file.reader else ()
        if isinstance(tables, pl.DataFrame):
            self.jobs.append(tables)
            return
        for table in tables:
            self.samples.append(table)
            self.rows += table.height
            self.read += table.height
            self.progress(self.read)
            if self.rows >= MAX_ROWS_HELD:
                self.flush()

    def flush(self) -> None:
        """Bring everything held into the store, then note which files are complete."""
        if self.samples:
            add_counters(self.store, pl.concat(self.samples))
        self.samples, self.rows = [], 0
        if self.jobs:
            add_jobs(self.store, pl.concat([JOBS.empty(), *self.jobs]))
        if self.finished:
            enter_in_ledger(self.store, self.finished)
        self.known |= self.finished
        self.jobs, self.finished = [], {}
