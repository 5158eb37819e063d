"""A trace kept as a folder of Parquet files, opened again in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from isal import isal_zlib

from ioprism.errors import BrokenTraceError, TraceError
from ioprism.model.schema import EVENTS, FILES, PROCESSES, Table, join_small
from ioprism.model.trace import (
    LATEST,
    MOST_RANKS,
    Completeness,
    Job,
    LazyTables,
    Mount,
    Progress,
    Trace,
    Warn,
)
from ioprism.storage.atomic import atomic_folder
from ioprism.storage.recordings import at_hand, is_file
from ioprism.text import address_of, open_plain

VERSION = 2
MANIFEST = "ioprism-trace.json"
EVENTS_PER_FILE = 1_000_000  # a partition each: a quarter of a gigabyte while it is sorted
EVENTS_PER_ROW_GROUP = 262_144
MANIFEST_BYTES = 64 * 2**20
WINDOW = 2**20  # bytes of one read


@dataclass(frozen=True, slots=True)
class ParquetPartition:
    """The events of one Parquet file."""

    path: Path
    checksum: int

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:  # noqa: ARG002 - nothing is lost
        """Yield the file once, lazily: polars reads only what is asked for."""
        with at_hand(self.path) as path:
            _verify(path, self.checksum, self.path)
            events = pl.scan_parquet(path, glob=False)
            if events.collect_schema() != EVENTS.schema:
                raise _broken(self.path, "its columns are not those of events")
            yield events


def write_store(
    trace: Trace, folder: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write a trace as a store; the folder appears only when it is complete.

    Raises:
        OutputError: the folder exists and is not to be replaced, or is not a store.
    """
    with atomic_folder(folder, marker=MANIFEST, replace=replace) as temporary:
        events = write_events(trace.batches(), temporary, "events", progress)
        write_tables(trace, temporary, events)


def write_events(
    batches: Iterable[pl.LazyFrame], folder: Path, name: str, progress: Progress | None = None
) -> list[str]:
    """Write events as Parquet files of bounded size, and return their names."""
    return [
        _write_parquet(table.sort("start"), folder / f"{name}-{number:05d}.parquet")
        for number, table in enumerate(join_small(_tables(batches, progress), EVENTS_PER_FILE))
    ]


def write_tables(trace: Trace, folder: Path, events: Sequence[str]) -> None:
    """Write everything but the events, and the manifest, which makes the folder a store."""
    counters = {
        name: _write_parquet(table, folder / f"counters-{number:02d}.parquet")
        for number, (name, table) in enumerate(trace.counters.items())
    }
    _write_parquet(trace.files, folder / "files.parquet")
    _write_parquet(trace.processes, folder / "processes.parquet")
    manifest = {
        "ioprism_store": VERSION,
        "format": trace.format,
        "paths": [str(path) for path in trace.paths],
        "job": asdict(trace.job),
        "warnings": trace.completeness.warnings,
        "events": list(events),
        "counters": counters,
        "checksums": {path.name: _checksum(path) for path in sorted(folder.glob("*.parquet"))},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _tables(batches: Iterable[pl.LazyFrame], progress: Progress | None) -> Iterator[pl.DataFrame]:
    for number, batch in enumerate(batches, start=1):
        yield batch.collect()
        if progress is not None:
            progress(number)


def _write_parquet(table: pl.DataFrame, path: Path) -> str:
    table.write_parquet(path, compression="zstd", row_group_size=EVENTS_PER_ROW_GROUP)
    return path.name


def _checksum(path: Path) -> int:
    checksum = 0
    with open_plain(path) as file:
        while window := file.read(WINDOW):
            checksum = isal_zlib.crc32(window, checksum)
    return checksum


def _verify(copy: Path, checksum: int, path: Path) -> None:
    """Parquet files do not notice a changed byte, and would tell wrong numbers."""
    try:
        sound = _checksum(copy) == checksum
    except OSError as error:
        raise _broken(path, f"it cannot be read ({error.strerror})") from error
    if not sound:
        raise _broken(path, "its content was changed")


class StoreReader:
    """Reads the folders that `ioprism convert` writes."""

    name = "store"
    title = "ioprism's own Parquet store (a folder)"
    tells = frozenset(
        {"calls", "metadata", "offsets", "ranks", "threads", "hosts", "files", "counters",
         "heatmap", "targets", "collective", "layers"}
    )  # fmt: skip

    def recognises(self, source: Path) -> bool:
        """Whether the folder has a store's manifest. Never raises."""
        try:
            return is_file(source / MANIFEST)
        except (OSError, TraceError):
            return False

    def read(self, source: Path) -> Trace:
        """Read the manifest; tables are read when asked for."""
        manifest = _manifest(source)
        completeness = Completeness()
        try:
            sums: dict[str, int] = manifest["checksums"]
            files, processes = (
                partial(_read_table, source / name, sums[name])
                for name in ("files.parquet", "processes.parquet")
            )
            for message in manifest["warnings"]:
                completeness.warn(str(message))
            return Trace(
                format=str(manifest["format"]),
                paths=(source,),
                job=job_of(manifest["job"]),
                partitions=tuple(
                    ParquetPartition(_inside(source, name), sums[name])
                    for name in manifest["events"]
                ),
                counters=LazyTables(
                    {
                        name: partial(_read_table, _inside(source, file), sums[file])
                        for name, file in manifest["counters"].items()
                    }
                ),
                load_files=lambda: _conform(FILES, files, source),
                load_processes=lambda: _conform(PROCESSES, processes, source),
                completeness=completeness,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise _broken(source, f"its manifest is incomplete ({error})") from error


def _manifest(source: Path) -> dict[str, Any]:
    try:
        with at_hand(source / MANIFEST) as path:
            if path.stat().st_size > MANIFEST_BYTES:
                raise _broken(source, "its manifest is implausibly large")
            manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["ioprism_store"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _broken(source, f"its manifest cannot be read ({error})") from error
    if version != VERSION:
        raise BrokenTraceError(
            f"this store has version {version}; this ioprism reads version {VERSION}.\n"
            "Hint: convert the original trace again.",
            source=source,
        )
    return dict(manifest)


def job_of(facts: dict[str, Any]) -> Job:
    """Return stored facts of a job, each of the kind that it has to be.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: one of them is not.
    """
    return Job(
        ranks=_whole(facts["ranks"], "ranks", most=MOST_RANKS),
        start_time=_seconds(facts["start_time"], "start_time"),
        end_time=_seconds(facts["end_time"], "end_time"),
        runtime=_seconds(facts["runtime"], "runtime"),
        executable=None if facts["executable"] is None else str(facts["executable"]),
        user=_whole(facts["user"], "user", most=2**63),
        job_id=None if facts["job_id"] is None else str(facts["job_id"]),
        mounts=tuple(Mount(str(m["path"]), str(m["filesystem"])) for m in facts["mounts"]),
        metadata={str(key): str(value) for key, value in facts["metadata"].items()},
    )


def _whole(value: object, name: str, *, most: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= most:
        raise ValueError(f"{name} is not a plausible number")
    return value


def _seconds(value: object, name: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not abs(value) < LATEST:  # also NaN
        raise ValueError(f"{name} is not a plausible time")
    return float(value)


def _inside(folder: Path, name: str) -> Path:
    """Return a file of this folder; a manifest must not point elsewhere."""
    if Path(name).name != name:
        raise ValueError(f"{name!r} is not a plain file name")
    path = folder / name
    # Asking object storage for each of thousands of files takes long; reading one will tell.
    if address_of(path) is None and not path.is_file():
        raise _broken(folder, f"{name} is missing")
    return path


def _read_table(path: Path, checksum: int) -> pl.DataFrame:
    try:
        with at_hand(path) as copy:
            _verify(copy, checksum, path)
            return pl.read_parquet(copy, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _broken(path, "it is not a readable Parquet file") from error


def _conform(schema: Table, load: Callable[[], pl.DataFrame], source: Path) -> pl.DataFrame:
    """Return a table with all its columns, whose first one names each row once."""
    table = load()
    if not set(schema.names) <= set(table.columns):
        raise _broken(source, f"its table of {schema.name} has other columns")
    try:
        table = schema.conform(table)
    except pl.exceptions.PolarsError as error:
        raise _broken(source, f"its table of {schema.name} has other columns") from error
    needed = [column.name for column in schema.columns if not column.nullable]
    if table[needed[0]].is_duplicated().any() or any(table[name].null_count() for name in needed):
        raise _broken(source, f"its table of {schema.name} does not name every row")
    return table


def _broken(source: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"the store is damaged: {why}.\nHint: convert the original trace again.", source=source
    )
