"""Read what monitoring tools archive: Lustre Monitoring Tool (SQLite), TOKIO (HDF5), mmperfmon.

In a TOKIO time series and in the answer to `mmperfmon query` each column is a server or target
and each row holds the bytes of one interval; their sum is a counter that starts from 0 with the
file. Negative zero marks an interval that was not measured in TOKIO, `null` in mmperfmon.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from ioprism.errors import BrokenTraceError, ReaderUnavailableError
from ioprism.formats.isolation import Tables, opened_tables
from ioprism.formats.reading import Budget
from ioprism.formats.text import epoch_us
from ioprism.model.counters import (
    COUNTERS,
    EARLIEST,
    FILE_SYSTEM,
    LATEST,
    NODE_TOTAL,
    SECOND,
    TARGET,
    ReadingOptions,
    Tally,
)
from ioprism.servers.formats.records import (
    BYTES_OF_NAME,
    BYTES_OF_RECORD,
    DAMAGED,
    CounterRows,
    MarkedReader,
    check_rows,
    text_lines,
)
from ioprism.servers.limits import ROWS_IN_MEMORY, ROWS_PER_TABLE
from ioprism.units import LARGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

SQLITE_MAGIC = b"SQLite format 3\x00"
TABLES = ("OST_INFO", "OST_DATA", "TIMESTAMP_INFO", "MDS_INFO", "MDS_OPS_DATA", "OPERATION_INFO")
METADATA_TABLES = {"MDS_OPS_DATA", "MDS_INFO", "OPERATION_INFO"}
COUNTER_OF_OPERATION = {"open": "oc", "close": "cc"}
Samples = Iterator[tuple[object, object, dict[str, object]]]  # server, timestamp, values
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# Group -> data set -> counter; rates are bytes per second and become bytes of their interval.
DATA_SETS = {
    "readbytes": "br", "writebytes": "bw", "readrates": "br", "writerates": "bw",
    "reads": "rdc", "writes": "wc", "opens": "oc", "closes": "cc",
}  # fmt: skip
LEGEND = re.compile(r"\s*(\d{1,6}):\s+([^|\s]+)\|(.+)\|(gpfs_\w+)\s*")
PERFMON_ROW = re.compile(r"\s*\d+\s+(\d{4}-\d\d-\d\d)-(\d\d:\d\d:\d\d)\s+(.*)")
# Metric -> counter; the API's bytes would count those of the file system twice.
PERFMON_COUNTERS = {
    "bytes_read": "br", "bytes_written": "bw", "read_ops": "rdc", "write_ops": "wc",
    "open_calls": "oc", "close_calls": "cc",
}  # fmt: skip
PERFMON_METRIC = re.compile(
    r"gpfs_(?:(?:fs|ns|nsdds)_(bytes_read|bytes_written|read_ops|write_ops)"
    r"|fis_(open_calls|close_calls))"
)
TARGET_GROUPS = ("datatargets", "mdtargets")
SERVER_GROUPS = ("dataservers", "mdservers")


def _begins_with(source: Path, magic: bytes) -> bool:
    """Whether the file, which is not unpacked, begins with these bytes. Never raises."""
    try:
        with source.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


class LmtReader:
    """Reads bytes of storage targets, and opens and closes of metadata servers."""

    name = "lmt"
    title = "Lustre Monitoring Tool: SQLite copy of its database"

    def recognises(self, source: Path) -> bool:
        """Whether it is an SQLite file with LMT's tables. Never raises."""
        if not _begins_with(source, SQLITE_MAGIC):
            return False
        try:
            with opened_tables(source, *TABLES) as tables:
                return "OST_DATA" in tables and "TIMESTAMP_INFO" in tables
        except (OSError, sqlite3.Error, UnicodeDecodeError):
            return False

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples."""
        try:
            with opened_tables(source, *TABLES) as tables:
                zone = ZoneInfo(options.timezone)
                moments = tables.rows("TIMESTAMP_INFO", "TS_ID", "TIMESTAMP")
                times = {number: epoch_us(str(moment), zone) for number, moment in moments}
                yield from _counter_tables(_storage_samples(tables), times, tally)
                if all(name in tables for name in METADATA_TABLES):
                    yield from _counter_tables(_metadata_samples(tables, source), times, tally)
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise BrokenTraceError(
                f"the database cannot be read ({error}).\nHint: make the copy again.", source=source
            ) from error


def _storage_samples(tables: Tables) -> Samples:
    names = dict(tables.rows("OST_INFO", "OST_ID", "OST_NAME"))
    for number, moment, read, written in tables.rows(
        "OST_DATA", "OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"
    ):
        if number in names:
            yield names[number], moment, {"br": read, "bw": written}


def _metadata_samples(tables: Tables, source: Path) -> Samples:
    """Join the opens and closes of a server, which are separate rows."""
    names = dict(tables.rows("MDS_INFO", "MDS_ID", "MDS_NAME"))
    operations = tables.rows("OPERATION_INFO", "OPERATION_ID", "OPERATION_NAME")
    counters = {
        number: COUNTER_OF_OPERATION[name]
        for number, name in operations
        if name in COUNTER_OF_OPERATION
    }
    pairs: dict[tuple[object, object], dict[str, object]] = {}
    budget = Budget(source)
    for number, moment, operation, samples in tables.rows(
        "MDS_OPS_DATA", "MDS_ID", "TS_ID", "OPERATION_ID", "SAMPLES"
    ):
        if number in names and operation in counters:
            if (number, moment) not in pairs:
                budget.take(BYTES_OF_RECORD, "the metadata operations")
            pairs.setdefault((number, moment), {})[counters[operation]] = samples
    for (number, moment), values in pairs.items():
        yield names[number], moment, values


def _counter_tables(
    samples: Samples, times: Mapping[object, int | None], tally: Tally
) -> Iterator[pl.DataFrame]:
    while some := list(islice(samples, ROWS_PER_TABLE)):
        collected = CounterRows()
        for server, moment, values in some:
            time_us = times.get(moment)
            sound = len(values) == 2 and all(isinstance(value, int) for value in values.values())
            if time_us is None or not sound:
                tally.leave_out(DAMAGED)
                continue
            sample = {name: value for name, value in values.items() if isinstance(value, int)}
            collected.add(
                tally, server=str(server), part="", source=TARGET, time_us=time_us, **sample
            )
        yield collected.table(tally)


class TokioReader:
    """Reads TOKIO time series of version 1."""

    name = "tokio"
    title = "TOKIO time series: HDF5 (needs h5py)"

    def recognises(self, source: Path) -> bool:
        """Whether it is HDF5; reading it tells whether it is TOKIO's. Never raises."""
        return _begins_with(source, HDF5_MAGIC)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples.

        Raises:
            ReaderUnavailableError: the package h5py is not installed.
            BrokenTraceError: it is HDF5, but no time series.
        """
        try:
            h5py = import_module("h5py")
        except ImportError as error:
            raise ReaderUnavailableError(
                source, reader="tokio", missing="h5py", install="'ioprism[tokio]'"
            ) from error
        try:
            with h5py.File(source, "r") as file:
                groups = [name for name in TARGET_GROUPS if name in file] or [
                    name for name in SERVER_GROUPS if name in file
                ]
                if not groups:
                    raise _unreadable(source, "it has none of the groups of a TOKIO time series")
                budget = Budget(source)
                for group in groups:
                    inner = _member(file, group, h5py)
                    _check_group(inner, source, budget, h5py)
                    yield from _group_samples(inner, source, tally)
        except (OSError, LookupError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            raise _unreadable(source, str(error)) from error


def _member(group: Any, name: str, h5py: Any) -> Any:  # noqa: ANN401
    """Return a member of a group; links may lead to other files, and are not followed."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link")
    return group[name]


def _check_group(group: Any, source: Path, budget: Budget, h5py: Any) -> None:  # noqa: ANN401
    """Refuse data that are stored in other files, or larger than the file.

    Raises:
        BrokenTraceError: a data set is not plain numbers of this file.
        OverBudgetError: it needs more memory than a file of this size may take.
    """
    for name in ("timestamps", *DATA_SETS):
        if name not in group:
            continue
        data = _member(group, name, h5py)
        if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "iuf":
            raise _unreadable(source, f"{name} are not numbers")
        if data.external or data.is_virtual:
            raise _unreadable(source, f"{name} are stored in another file")
        chunk = math.prod(data.chunks or ()) * data.dtype.itemsize
        budget.take(data.size * data.dtype.itemsize + chunk, name)
        if "columns" in data.attrs:
            titles = data.attrs.get_id("columns")
            # Names of variable length may all be the same long one, which is in the file once.
            width = source.stat().st_size if titles.dtype.kind == "O" else titles.dtype.itemsize
            budget.take(math.prod(titles.shape) * width, "the names of columns")


def _group_samples(group: Any, source: Path, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ANN401
    if "timestamps" not in group:
        raise _unreadable(source, f"the group {group.name} has no timestamps")
    starts = np.asarray(group["timestamps"][:], dtype=np.int64)
    present = [name for name in DATA_SETS if name in group]
    if any(group[name].shape[0] != len(starts) for name in present):
        raise _unreadable(source, f"the data of {group.name} do not fit its timestamps")
    if len(starts) < 2 or not present:
        return
    step = int(np.median(np.diff(starts)))
    if step <= 0 or np.any(np.diff(starts) <= 0):
        raise _unreadable(source, f"the timestamps of {group.name} do not increase")
    if starts[0] < EARLIEST // SECOND or starts[-1] > LATEST // SECOND:
        raise _unreadable(source, f"the timestamps of {group.name} are not times since 1970")
    columns = [
        name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)
        for name in group[present[0]].attrs["columns"]
    ]
    at_once = max(1, ROWS_IN_MEMORY // len(starts))
    for first in range(0, len(columns), at_once):
        chosen = slice(first, min(first + at_once, len(columns)))
        blocks = {
            DATA_SETS[name]: np.asarray(group[name][:, chosen], dtype=np.float64)
            * (step if name.endswith("rates") else 1)
            for name in present
        }
        for number, server in enumerate(columns[chosen]):
            amounts = {counter: block[:, number] for counter, block in blocks.items()}
            yield check_rows(_counter_table(server, amounts, starts, step), tally)


def _counter_table(
    server: str,
    amounts: dict[str, NDArray[np.float64]],
    starts: NDArray[np.int64],
    step: int,
    *,
    part: str = "",
    source: str = TARGET,
) -> pl.DataFrame:
    """Add intervals up; a sample is taken at the end of each interval that was measured."""
    missing = np.zeros(len(starts), dtype=bool)
    for amount in amounts.values():
        missing |= ~np.isfinite(amount) | np.signbit(amount)
    ends = np.concatenate([starts[:1], starts[~missing] + step])
    sums = {
        counter: np.concatenate([[0.0], np.cumsum(amount[~missing])])
        for counter, amount in amounts.items()
    }
    counted = {
        name: np.rint(np.minimum(total, LARGEST // 2)).astype(np.int64)
        for name, total in sums.items()
    }
    table = pl.DataFrame({"time_us": ends * SECOND, **counted}).with_columns(
        server=pl.lit(server),
        part=pl.lit(part),
        source=pl.lit(source),
        since_us=pl.lit(int(starts[0]) * SECOND, dtype=pl.Int64),
    )
    return COUNTERS.conform(table)


def _unreadable(source: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"this TOKIO time series cannot be read: {why}.\n"
        "Hint: version 1 of the format is read; older .h5lmt files are not.",
        source=source,
    )


class MmperfmonReader(MarkedReader):
    """Reads the table that `mmperfmon query` prints, with its legend."""

    name = "mmperfmon"
    title = "GPFS performance collector: mmperfmon query"
    marker = re.compile(rb"^Legend:[ \t]*\r?\n[ \t]*1:[ \t]+[^|\s]+\|", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples; a text may hold the answers to several queries."""
        zone, budget = ZoneInfo(options.timezone), Budget(source)
        legend: dict[int, tuple[tuple[str, str, str], str]] = {}
        rows: list[tuple[int, list[str]]] = []
        for line in text_lines(source, tally):
            entry, row = LEGEND.fullmatch(line), PERFMON_ROW.fullmatch(line)
            if line.startswith("Legend:"):
                yield from _perfmon_tables(legend, rows, tally)
                legend, rows = {}, []
            elif entry is not None:
                metric = PERFMON_METRIC.fullmatch(entry[4])
                if metric is not None:
                    counter = PERFMON_COUNTERS[metric[1] or metric[2]]
                    legend[int(entry[1])] = (_perfmon_series(entry[2], entry[3]), counter)
            elif row is not None:
                moment = epoch_us(f"{row[1]}T{row[2]}", zone)
                # `31371.0 MB` is one value, but no counter has a unit.
                words = re.sub(r"(?<=\d) (?=[kKMGT]?B\b)", "", row[3]).split()
                budget.take(BYTES_OF_NAME * len(words), "the table")
                if moment is None:
                    tally.leave_out(DAMAGED)
                else:
                    rows.append((moment // SECOND, words))
        yield from _perfmon_tables(legend, rows, tally)


def _perfmon_series(host: str, place: str) -> tuple[str, str, str]:
    """Return server, part and kind of a column: a file system of a node, a node, or a disk."""
    sensor, *names = place.split("|")
    if sensor == "GPFSNSDDisk" and names:
        return names[-1], "", TARGET
    if len(names) >= 2:
        return host, "/".join(names[:2]), FILE_SYSTEM
    return host, "", NODE_TOTAL


def _perfmon_tables(
    legend: Mapping[int, tuple[tuple[str, str, str], str]],
    rows: list[tuple[int, list[str]]],
    tally: Tally,
) -> Iterator[pl.DataFrame]:
    whole = [row for row in rows if len(row[1]) >= max(legend, default=0)]
    tally.leave_out(DAMAGED, count=len(rows) - len(whole))
    ordered = dict(sorted(whole))  # of a row that comes twice the last is kept
    starts = np.array(list(ordered), dtype=np.int64)
    if not legend or len(starts) < 2:
        tally.leave_out("table of a single row", count=len(starts))
        return
    step = int(np.median(np.diff(starts)))
    series: dict[tuple[str, str, str], dict[str, NDArray[np.float64]]] = {}
    for number, (place, counter) in legend.items():
        values = [_interval_value(words[number - 1]) for words in ordered.values()]
        series.setdefault(place, {})[counter] = np.array(values)
    for (server, part, kind), amounts in series.items():
        table = _counter_table(server, amounts, starts, step, part=part, source=kind)
        yield check_rows(table, tally)


def _interval_value(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # null, or a value with a unit
        return math.nan
