"""Every job of a centre into one store: each diagnosed once, on all cores.

Files of one run are one job, by the rule that all commands share (`formats/job_groups.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.diagnosis.steps import diagnose_observed
from ioprism.engine.base import Engine, LocalEngine, in_memory
from ioprism.engine.cluster import CRASHED, Session, map_in_processes
from ioprism.errors import (
    AnalysisError,
    IoprismError,
    NoSuchTraceError,
    UnknownFormatError,
    UsageError,
)
from ioprism.formats.reading import check_readable, files_below
from ioprism.formats.registry import find_jobs, group_paths, read_trace
from ioprism.model.machine import ServerLoads
from ioprism.model.result import pick
from ioprism.model.trace import Trace
from ioprism.periodicity.many import describe_job
from ioprism.periodicity.of_job import PeriodSettings
from ioprism.site.job_rows import Rows, anonymous, job_rows
from ioprism.site.limits import KNOWN
from ioprism.site.store import SITE_TABLES, SiteStore, open_site
from ioprism.site.summary import NEEDS, Chosen, SiteTables, with_hours

AT_ONCE = 200  # logs of one batch: what an interrupted run loses at most


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """How logs are taken in."""

    cores_per_node: int | None = None  # to estimate nodes; None: as other logs of the store show
    key: bytes | None = field(default=None, repr=False)  # names are hashed with it
    processes: int | None = None  # None: all cores


@dataclass(frozen=True, slots=True)
class Added:
    """What a run added to a store."""

    added: int
    known: int  # logs that were there already
    failed: tuple[str, ...]  # what could not be read, and why
    ignored: int = 0  # files in folders that are not traces

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism site add --json` says."""
        return pick(self, "added", "known", "failed", "ignored")


def add_logs(
    store: SiteStore,
    paths: Sequence[Path],
    *,
    options: SiteOptions | None = None,
    progress: Callable[[int], None] = lambda _: None,
    cluster: Session | None = None,
) -> Added:
    """Diagnose the logs that are new, and keep the results, batch by batch.

    The work is done by processes here, or on a cluster that sees the logs under the same paths.

    Raises:
        NoSuchTraceError: there is nothing at a path.
        OutputError: another process is adding to this store.
    """
    chosen = options or SiteOptions()
    logs = list(_logs(paths))
    with store.adding():
        failed: list[str] = []
        known = set(store.known())
        new: dict[str, Path] = {}
        for path in logs:
            try:
                digest = content_digest(path)
            except OSError as error:
                failed.append(f"{path}: {error.strerror}")
                continue
            if digest not in known:
                new.setdefault(digest, path)
        jobs = {digest: files for digest, files in _jobs(new) if digest not in known}
        files_known = len(logs) - len(failed) - sum(map(len, jobs.values()))
        added = ignored = 0
        named = frozenset(path for path in paths if path.is_file())
        work = partial(_describe_job, options=chosen, named=named)
        todo = list(jobs.items())
        results = (
            map_in_processes(
                work,
                todo,
                crashed=lambda entry: f"{entry[1][0]}: {CRASHED}",
                processes=chosen.processes,
            )
            if cluster is None
            else (
                rows
                for first in range(0, len(todo), AT_ONCE)
                for rows in cluster.map(work, todo[first : first + AT_ONCE])
            )
        )
        while batch := list(islice(results, AT_ONCE)):
            good = [rows for rows in batch if isinstance(rows, dict)]
            failed += [rows for rows in batch if isinstance(rows, str)]
            ignored += sum(rows is None for rows in batch)
            if good:
                store.add(_tables(good))
            added += len(good)
            progress(added + len(failed) + ignored)
    return Added(added, files_known, tuple(failed), ignored)


def follow_logs(
    store: SiteStore, folder: Path, *, options: SiteOptions, every: float
) -> Iterator[Added]:
    """Add logs that appear in a folder, until interrupted; unfinished ones are left for later."""
    seen: dict[Path, tuple[int, int]] = {}
    done: set[Path] = set()
    while True:
        now = dict(_stamps(folder))
        ready = [
            path for path, stamp in now.items() if seen.get(path) == stamp and path not in done
        ]
        if ready:
            done.update(ready)
            yield add_logs(store, ready, options=options)
        seen = now
        time.sleep(every)


def _stamps(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # it was moved away just now
            if path.is_file():
                status = path.stat()
                yield path, (status.st_size, status.st_mtime_ns)


def chosen_tables(
    folder: Path, which: Chosen, *, subject: str | None = None, servers: ServerLoads | None = None
) -> SiteTables:
    """Open a store and keep the jobs asked for; with the file system's counters, `others_rate`.

    That is the rate at which servers worked for others while a job ran. Only tables that the
    subject needs are read; the others are empty.
    """
    store = open_site(folder)
    names = ("jobs", "causes", "targets", "hosts", "files")
    needed = {"jobs", *NEEDS.get(subject or "", names), *(("files",) if which.mount else ())}
    read = (store.table(n) if n in needed else SITE_TABLES[n].empty() for n in names)
    tables = with_hours(SiteTables(*read)).chosen(which)
    return tables if servers is None else replace(tables, jobs=_beside_others(tables.jobs, servers))


def _beside_others(jobs: pl.DataFrame, servers: ServerLoads) -> pl.DataFrame:
    """Add what the servers moved for others while each job ran, null where too little is known."""
    timed = jobs.filter(pl.col("start").is_not_null() & (pl.col("runtime") > 0))
    start, runtime = timed["start"].to_numpy(), timed["runtime"].to_numpy()
    moved, known = servers.between(start, start + runtime)
    own = pl.col("bytes_read") + pl.col("bytes_written")
    loads = timed.select(
        "job",
        others_rate=pl.when(pl.Series(known) >= KNOWN).then(
            (pl.Series(moved) - own).clip(lower_bound=0) / pl.col("runtime")
        ),
    )
    return jobs.join(loads, on="job", how="left", maintain_order="left")


def parse_day(text: str | None) -> float | None:
    """Read a date such as 2026-11-15 as seconds since 1970, in UTC.

    Raises:
        UsageError: it is not a date.
    """
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise UsageError(f"{text!r} is not a date.\nHint: write it as 2026-11-15.") from error


def content_digest(path: Path) -> str:
    """Name a log by its content, so that a copy of it is the same job."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]


def _logs(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise NoSuchTraceError(path)
        if path.is_dir():
            yield from files_below(path)
        else:
            check_readable(path)
            yield path


def _jobs(logs: Mapping[str, Path]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Group logs by job; one of several files is named by the content of them all."""
    digests = {path: digest for digest, path in logs.items()}
    for files in group_paths(list(digests)):
        names = sorted(digests[path] for path in files)
        whole = hashlib.sha256("".join(names).encode()).hexdigest()[: len(names[0])]
        yield (names[0] if len(names) == 1 else whole), files


def _describe_job(
    entry: tuple[str, tuple[Path, ...]], *, options: SiteOptions, named: frozenset[Path]
) -> Rows | str | None:
    """One job as rows, or why it cannot be read; None for what lies beside the logs."""
    digest, files = entry
    path = files[0]
    try:
        one = len(files) == 1
        trace = read_trace(path) if one else find_jobs(files, grouping="one")[0].read()
        trace, engine = in_memory(trace), LocalEngine()
        verdict, observed = diagnose_observed(trace, engine=engine)
        cores = options.cores_per_node
        rows = job_rows(
            trace, verdict, observed, engine, digest=digest, path=path, cores_per_node=cores
        )
        rows["jobs"][0].update(_period_columns(trace, engine))
    except UnknownFormatError as error:
        return _why(path, error) if path in named else None
    except (IoprismError, OSError) as error:
        return _why(path, error)
    return rows if options.key is None else anonymous(rows, options.key)


def _period_columns(trace: Trace, engine: Engine) -> dict[str, Any]:
    """The period of a job; a log that keeps no times has none of them."""
    names = ("pattern", "period", "period_of", "duty_cycle", "phase_bytes", "period_confidence")
    try:
        found = describe_job(trace, engine, PeriodSettings())
    except AnalysisError:
        return dict.fromkeys(names)
    periodic = found.pattern == "periodic"
    pattern = "possible" if periodic and found.certainty == "maybe" else found.pattern
    values = (pattern, found.seconds, found.direction if periodic else None,
              found.duty_cycle, found.phase_bytes, found.confidence)  # fmt: skip
    return dict(zip(names, values, strict=True))


def _why(path: Path, error: Exception) -> str:
    return f"{path}: {str(error).partition(chr(10))[0].removeprefix(f'{path}: ')}"


def _tables(jobs: Sequence[Rows]) -> dict[str, Any]:
    return {
        name: pl.DataFrame(
            [row for rows in jobs for row in rows[name]], schema=schema.schema, orient="row"
        )
        for name, schema in SITE_TABLES.items()
    }
