"""Where counters and jobs come from: raw files for a store, and sources that are asked now.

Files come in any order and any number of times. An answer of a command, a file or a Prometheus
endpoint, each with a time-out, is kept in a file, so that every reader of raw counters can read
it, and a large one takes no memory.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import shlex
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from io import BufferedIOBase
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol
from urllib.parse import urlsplit

import polars as pl

from ioprism.errors import NoSuchTraceError, TraceError, UnknownFormatError, UsageError
from ioprism.formats.reading import check_file, check_readable, files_below
from ioprism.formats.text import is_gzip
from ioprism.model.counters import (
    EARLIEST,
    JOBS,
    LATEST,
    SECOND,
    ReadingOptions,
    Tally,
    each_run_once,
)
from ioprism.model.trace import MIB, Progress
from ioprism.plugins import declared, load
from ioprism.servers.formats.tables import missing_columns
from ioprism.servers.limits import ROWS_IN_MEMORY
from ioprism.servers.store import (
    CounterStore,
    LedgerEntry,
    add_counters,
    add_jobs,
    enter_in_ledger,
    store_for_writing,
)

MAX_ANSWER = 2 * 2**30  # bytes; 10,000 jobs on every one of 60 targets are about 700 MB
MAX_COMPLAINT = 200  # characters of a failed command's message that are shown
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # as Prometheus asks


class NoAnswerError(Exception):
    """A source did not answer; the message says why."""


# Sources that can be polled have a name for messages, and say whether an answer holds only what
# is new. Their `fetch` writes an answer to a file and returns whether there is one; it raises
# NoAnswerError where none came in time.


@dataclass(slots=True)
class CommandSource:
    """Runs a command; without a shell unless that is asked for."""

    name: str
    shell: bool = False
    follows: bool = False

    def fetch(self, target: Path, timeout: float) -> bool:
        """Run the command with its output in a file; end it and its children when it is late."""
        complaints = target.with_suffix(".err")
        try:
            words = self.name if self.shell else shlex.split(self.name)
            with target.open("wb") as output, complaints.open("wb") as errors:
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    words,
                    shell=self.shell,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
        except ValueError as error:
            raise NoAnswerError(f"not a command ({error})") from error
        except OSError as error:
            raise NoAnswerError(f"cannot be run ({error.strerror})") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"no answer within {timeout:g} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status:
            with complaints.open("rb") as file:
                text = file.read(MAX_COMPLAINT).decode("utf-8", "replace").strip()
            raise NoAnswerError(f"exit code {status}{': ' if text else ''}{text}")
        return True


@dataclass(slots=True)
class FileSource:
    """Reads a whole file again in every round, such as one below /proc or /sys."""

    path: Path
    follows: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    def fetch(self, target: Path, timeout: float) -> bool:  # noqa: ARG002 - files answer immediately
        """Copy the file: its size may be unknown until it is read."""
        try:
            with self.path.open("rb") as file:
                _copy(file, target)
        except OSError as error:
            raise NoAnswerError(error.strerror or "cannot be read") from error
        return True


@dataclass(slots=True)
class FollowedFile(FileSource):
    """Reads what was appended to a file of one record per line since the last round."""

    follows: bool = True
    place: int = 0
    inode: int = 0
    heading: bytes = field(default=b"", repr=False)

    def fetch(self, target: Path, timeout: float) -> bool:  # noqa: ARG002 - files answer immediately
        """Copy the new whole lines below the heading; a file that was replaced is begun again."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self.inode or status.st_size < self.place:
                    self.place, self.inode = 0, status.st_ino
                    self.heading = file.readline(MIB)
                file.seek(self.place)
                new = file.read(MAX_ANSWER // 16)  # the rest follows in the next round
        except OSError as error:
            raise NoAnswerError(error.strerror or "cannot be read") from error
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return False
        table = self.heading.count(b",") and not self.heading[:1].isdigit()
        target.write_bytes((self.heading if table and self.place else b"") + whole)
        self.place += len(whole)
        return True


@dataclass(slots=True)
class EndpointSource:
    """Asks a Prometheus endpoint."""

    name: str
    follows: bool = False

    def __post_init__(self) -> None:
        address = urlsplit(self.name)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(
                f"{self.name} is not the address of a Prometheus endpoint.\n"
                "Hint: give one such as http://127.0.0.1:9169/metrics."
            )

    def fetch(self, target: Path, timeout: float) -> bool:
        """Ask for the text format; an answer that is late or cut is none, as its numbers may be."""
        request = urllib.request.Request(self.name, headers={"Accept": "text/plain"})  # noqa: S310
        deadline = time.monotonic() + timeout
        try:
            with DIRECTLY.open(request, timeout=timeout) as reply:
                _copy(reply, target, deadline)
                missing = reply.length
        except (OSError, ValueError, HTTPException) as error:
            raise NoAnswerError(str(getattr(error, "reason", error)) or "no answer") from error
        if missing or not (is_gzip(target) or _ends_with_a_line(target)):
            raise NoAnswerError("the answer is truncated")
        return True


PolledSource = CommandSource | FileSource | EndpointSource


def _copy(source: BufferedIOBase, target: Path, deadline: float = math.inf) -> None:
    left = MAX_ANSWER
    with target.open("wb") as file:
        while data := source.read1(MIB):
            left -= len(data)
            if left < 0:
                raise OSError(errno.EFBIG, "the answer is implausibly long")
            if time.monotonic() > deadline:
                raise TimeoutError("the answer was not complete in time")
            file.write(data)


def _ends_with_a_line(path: Path) -> bool:
    """Whether the last line is whole, as the text format demands."""
    with path.open("rb") as file:
        file.seek(-min(1, path.stat().st_size), os.SEEK_END)
        return file.read() in (b"", b"\n")


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
    "lsf": "ioprism.servers.formats.schedulers:LsfReader",
    "lsf-text": "ioprism.servers.formats.schedulers:LsfTextReader",
    "loadleveler": "ioprism.servers.formats.schedulers:LoadLevelerReader",
    "job-table": "ioprism.servers.formats.tables:JobTableReader",
}


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
        raise _unknown_format(source, tuple(JOB_READERS))
    return each_run_once(reader.read(source, options, tally))


def _unknown_format(source: Path, tried: tuple[str, ...]) -> UnknownFormatError:
    return UnknownFormatError(source, tried=tried, problem=missing_columns(source), hint=HINT)


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
    if time is not None and not EARLIEST <= time * SECOND <= LATEST:
        raise UsageError(f"--time {time} is not a time.\nHint: give seconds since 1970.")
    options = ReadingOptions(None if time is None else round(time * SECOND), timezone)
    files = list(_readers_of(map(Path, sources)))
    with store_for_writing(Path(store)) as writable:
        writer = _Writer(writable, options, progress, writable.ledger())
        outcomes = [writer.take(path, reader) for path, reader in files]
        writer.flush()
    return outcomes


def _readers_of(sources: Iterable[Path]) -> Iterator[tuple[Path, CounterReader | JobReader | None]]:
    """Yield every file with its reader; only a file below a folder may have none."""
    for source in sources:
        if not source.exists():
            raise NoSuchTraceError(source)
        below = source.is_dir()
        for path in files_below(source) if below else (source,):
            check_readable(path)
            reader = find_counter_reader(path) or find_job_reader(path)
            if reader is None and not below:
                raise _unknown_format(path, (*COUNTER_READERS, *JOB_READERS))
            yield path, reader


def _digest(path: Path, options: ReadingOptions) -> str:
    """Name the content, and what else its records depend on."""
    with path.open("rb") as file:
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
    rows: int = 0  # of these samples
    read: int = 0  # samples in total

    def take(self, path: Path, reader: CounterReader | JobReader | None) -> IngestedFile:
        """Read one file, unless the ledger knows its content."""
        if reader is None:
            return IngestedFile(path, "", 0, False, ("neither counters nor jobs: skipped",))
        key = _digest(path, self.options)
        entry = self.finished.get(key) or self.known.get(key)
        known = entry is not None
        if entry is None:
            tally = Tally()
            try:
                tables = reader.read(path, self.options, tally)
                if isinstance(tables, pl.DataFrame):
                    self.jobs.append(tables)
                else:
                    self._hold(tables)
            except TraceError:
                self.flush()
                raise
            entry = LedgerEntry(path.name, reader.name, tally.records, tuple(tally.warnings()))
            self.finished[key] = entry
        return IngestedFile(path, entry.format, entry.records, known, entry.warnings)

    def _hold(self, tables: Iterable[pl.DataFrame]) -> None:
        for table in tables:
            self.samples.append(table)
            self.rows += table.height
            self.read += table.height
            self.progress(self.read)
            if self.rows >= ROWS_IN_MEMORY:
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
