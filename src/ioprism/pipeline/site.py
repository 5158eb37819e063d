"""Every job of a centre into one store: each log diagnosed once, on all cores."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ioprism.errors import IoprismError, NoSuchTraceError, UsageError
from ioprism.storage.site_store import SiteStore

AT_ONCE = 200  # logs of one batch: what an interrupted run loses at most
CHUNK = 4  # logs that a process takes at a time
FEW = 8  # so few logs are not worth starting processes for
NAMES = ("user", "application", "path", "job_id", "pattern", "subject", "culprit", "title", "host")

Rows = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """How logs are taken in."""

    cores_per_node: int = 1
    key: bytes | None = field(default=None, repr=False)  # names are hashed with it
    processes: int | None = None  # None: all cores


@dataclass(frozen=True, slots=True)
class Added:
    """What a run added to a store."""

    added: int
    known: int  # logs that were there already
    failed: tuple[str, ...]  # what could not be read, and why


def add_logs(
    store: SiteStore,
    paths: Sequence[Path],
    *,
    options: SiteOptions | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Added:
    """Diagnose the logs that are new, and keep the results, batch by batch.

    Raises:
        NoSuchTraceError: there is nothing at a path.
        OutputError: another process is adding to this store.
    """
    chosen = options or SiteOptions()
    logs = list(_logs(paths))
    with store.adding():
        known = set(store.known())
        new: dict[str, Path] = {}
        for path in logs:
            digest = content_digest(path)
            if digest not in known:
                new.setdefault(digest, path)
        failed: list[str] = []
        added = 0
        work = partial(_described, options=chosen)
        results = _mapped(work, list(new.items()), chosen.processes)
        while batch := list(islice(results, AT_ONCE)):
            good = [rows for rows in batch if not isinstance(rows, str)]
            failed += [rows for rows in batch if isinstance(rows, str)]
            if good:
                store.add(_tables(good))
            added += len(good)
            progress(added + len(failed))
    return Added(added, len(logs) - len(new), tuple(failed))


def content_digest(path: Path) -> str:
    """Name a log by its content, so that a copy of it is the same job."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]


def _logs(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise NoSuchTraceError(path)
        if path.is_file():
            yield path
        else:
            yield from sorted(inner for inner in path.rglob("*") if inner.is_file())


def _described(entry: tuple[str, Path], *, options: SiteOptions) -> Rows | str:
    """One log as rows, or why it cannot be read."""
    from ioprism.analyses.site.job_rows import JobFacts, job_rows
    from ioprism.engine.local import LocalEngine
    from ioprism.formats.registry import read_trace
    from ioprism.pipeline.diagnosis import diagnose

    digest, path = entry
    try:
        trace = read_trace(path)
        diagnosis = diagnose(trace)
        rows = job_rows(
            trace, diagnosis, LocalEngine(), JobFacts(digest, path, options.cores_per_node)
        )
    except (IoprismError, OSError) as error:
        return f"{path}: {str(error).partition(chr(10))[0]}"
    return rows if options.key is None else _anonymous(rows, options.key)


def _anonymous(rows: Rows, key: bytes) -> Rows:
    """Replace names by digests: the same name gives the same digest under the same key."""

    def hidden(name: str, value: Any) -> Any:  # noqa: ANN401 - cells are of any kind
        if name not in NAMES or not isinstance(value, str):
            return value
        return f"{name}-{hmac.new(key, value.encode(), 'sha256').hexdigest()[:12]}"

    return {
        table: [{name: hidden(name, value) for name, value in row.items()} for row in lines]
        for table, lines in rows.items()
    }


def _tables(jobs: Sequence[Rows]) -> dict[str, Any]:
    import polars as pl

    from ioprism.model.site import SITE_TABLES

    return {
        name: pl.DataFrame(
            [row for rows in jobs for row in rows[name]], schema=schema.schema, orient="row"
        )
        for name, schema in SITE_TABLES.items()
    }


def _mapped(
    work: Callable[[tuple[str, Path]], Rows | str],
    logs: Sequence[tuple[str, Path]],
    processes: int | None,
) -> Iterator[Rows | str]:
    cores = processes or len(os.sched_getaffinity(0))
    if len(logs) <= FEW or cores < 2:
        yield from map(work, logs)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # A table library's threads do not survive a fork, so processes start afresh.
    context = multiprocessing.get_context("spawn")
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        yield from pool.map(work, logs, chunksize=CHUNK)


def read_key(path: Path) -> bytes:
    """Read the key that names are hashed with.

    Raises:
        UsageError: the file is too short to keep a secret.
    """
    key = path.read_bytes().strip()
    if len(key) < 16:
        raise UsageError(
            f"{path}: a key needs at least 16 bytes.\n"
            "Hint: head -c 32 /dev/urandom > KEYFILE makes one; keep it secret."
        )
    return key


def with_key(options: SiteOptions, path: Path | None) -> SiteOptions:
    """Return the options with the key of a file, if one is named."""
    return options if path is None else replace(options, key=read_key(path))
