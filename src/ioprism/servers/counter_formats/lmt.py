"""Read what the Lustre Monitoring Tool kept, from an SQLite copy of its database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.budget import Budget
from ioprism.formats.foreign_database import Tables, opened_tables
from ioprism.formats.local_time import epoch_us
from ioprism.model.counters import TARGET, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import ROWS_PER_TABLE, Rows
from ioprism.servers.counter_formats.lines import DAMAGED

MAGIC = b"SQLite format 3\x00"
TABLES = ("OST_INFO", "OST_DATA", "TIMESTAMP_INFO", "MDS_INFO", "MDS_OPS_DATA", "OPERATION_INFO")
METADATA_TABLES = {"MDS_OPS_DATA", "MDS_INFO", "OPERATION_INFO"}
COUNTED = {"open": "oc", "close": "cc"}
BYTES_OF_PAIR = 400  # of memory for the opens and closes of a server at one time
Samples = Iterator[tuple[object, object, dict[str, object]]]  # server, timestamp, values


class LmtReader:
    """Reads bytes of storage targets, opens and closes of metadata servers: no more is kept."""

    name = "lmt"
    title = "Lustre Monitoring Tool: SQLite copy of its database"

    def recognises(self, source: Path) -> bool:
        """Whether it is an SQLite file with LMT's tables. Never raises."""
        try:
            with source.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    return False
            with opened_tables(source, *TABLES) as tables:
                return "OST_DATA" in tables and "TIMESTAMP_INFO" in tables
        except (OSError, sqlite3.Error):
            return False

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples."""
        try:
            with opened_tables(source, *TABLES) as tables:
                times = _times(tables, ZoneInfo(options.timezone))
                yield from _collected(_storage(tables), times, tally)
                if all(name in tables for name in METADATA_TABLES):
                    yield from _collected(_metadata(tables, source), times, tally)
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise BrokenTraceError(
                f"the database cannot be read ({error}).\nHint: make the copy again.",
                source=source,
            ) from error


def _times(tables: Tables, zone: ZoneInfo) -> dict[object, int | None]:
    rows = tables.rows("TIMESTAMP_INFO", "TS_ID", "TIMESTAMP")
    return {number: epoch_us(str(moment), zone) for number, moment in rows}


def _storage(tables: Tables) -> Samples:
    names = dict(tables.rows("OST_INFO", "OST_ID", "OST_NAME"))
    for number, moment, read, written in tables.rows(
        "OST_DATA", "OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"
    ):
        if number in names:
            yield names[number], moment, {"br": read, "bw": written}


def _metadata(tables: Tables, source: Path) -> Samples:
    """Bring opens and closes of a server together; each is a row of its own."""
    names = dict(tables.rows("MDS_INFO", "MDS_ID", "MDS_NAME"))
    operations = tables.rows("OPERATION_INFO", "OPERATION_ID", "OPERATION_NAME")
    counters = {number: COUNTED[name] for number, name in operations if name in COUNTED}
    pairs: dict[tuple[object, object], dict[str, object]] = {}
    budget = Budget(source)
    for number, moment, operation, samples in tables.rows(
        "MDS_OPS_DATA", "MDS_ID", "TS_ID", "OPERATION_ID", "SAMPLES"
    ):
        if number in names and operation in counters:
            if (number, moment) not in pairs:
                budget.take(BYTES_OF_PAIR, "the metadata operations")
            pairs.setdefault((number, moment), {})[counters[operation]] = samples
    for (number, moment), values in pairs.items():
        yield names[number], moment, values


def _collected(
    samples: Samples, times: Mapping[object, int | None], tally: Tally
) -> Iterator[pl.DataFrame]:
    while some := list(islice(samples, ROWS_PER_TABLE)):
        collected = Rows()
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
