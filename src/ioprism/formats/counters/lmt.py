"""Read what the Lustre Monitoring Tool kept, from an SQLite copy of its database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.counters.counter_rows import ROWS_PER_TABLE, Rows
from ioprism.formats.counters.lines import DAMAGED
from ioprism.formats.local_time import epoch_us
from ioprism.model.counters import TARGET, ReadingOptions, Tally

MAGIC = b"SQLite format 3\x00"
STORAGE = """
    SELECT OST_INFO.OST_NAME, TIMESTAMP_INFO.TIMESTAMP, OST_DATA.READ_BYTES, OST_DATA.WRITE_BYTES
    FROM OST_DATA
    JOIN OST_INFO ON OST_INFO.OST_ID = OST_DATA.OST_ID
    JOIN TIMESTAMP_INFO ON TIMESTAMP_INFO.TS_ID = OST_DATA.TS_ID
"""
METADATA = """
    SELECT MDS_INFO.MDS_NAME, TIMESTAMP_INFO.TIMESTAMP,
           MAX(CASE OPERATION_INFO.OPERATION_NAME WHEN 'open' THEN MDS_OPS_DATA.SAMPLES END),
           MAX(CASE OPERATION_INFO.OPERATION_NAME WHEN 'close' THEN MDS_OPS_DATA.SAMPLES END)
    FROM MDS_OPS_DATA
    JOIN MDS_INFO ON MDS_INFO.MDS_ID = MDS_OPS_DATA.MDS_ID
    JOIN TIMESTAMP_INFO ON TIMESTAMP_INFO.TS_ID = MDS_OPS_DATA.TS_ID
    JOIN OPERATION_INFO ON OPERATION_INFO.OPERATION_ID = MDS_OPS_DATA.OPERATION_ID
    WHERE OPERATION_INFO.OPERATION_NAME IN ('open', 'close')
    GROUP BY MDS_INFO.MDS_NAME, TIMESTAMP_INFO.TIMESTAMP
"""
QUERIES = ((STORAGE, ("br", "bw")), (METADATA, ("oc", "cc")))


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
            with closing(_connect(source)) as database:
                return {"OST_DATA", "TIMESTAMP_INFO"} <= _tables(database)
        except (OSError, sqlite3.Error):
            return False

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples."""
        try:
            with closing(_connect(source)) as database:
                present = _tables(database)
                for query, values in QUERIES:
                    if values[0] == "br" or {"MDS_OPS_DATA", "MDS_INFO"} <= present:
                        yield from _samples(database, query, values, options, tally)
        except sqlite3.Error as error:
            raise BrokenTraceError(
                f"the database cannot be read ({error}).\nHint: make the copy again.",
                source=source,
            ) from error


def _connect(source: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)


def _tables(database: sqlite3.Connection) -> set[str]:
    return {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master")}


def _samples(
    database: sqlite3.Connection,
    query: str,
    values: tuple[str, str],
    options: ReadingOptions,
    tally: Tally,
) -> Iterator[pl.DataFrame]:
    zone = ZoneInfo(options.timezone)
    times: dict[object, int | None] = {}
    cursor = database.execute(query)
    while rows := cursor.fetchmany(ROWS_PER_TABLE):
        collected = Rows()
        for server, moment, first, second in rows:
            if moment not in times:
                times[moment] = epoch_us(str(moment), zone)
            time_us = times[moment]
            if time_us is None or not isinstance(first, int) or not isinstance(second, int):
                tally.leave_out(DAMAGED)
                continue
            sample = dict(zip(values, (first, second), strict=True))
            collected.add(
                tally, server=str(server), part="", source=TARGET, time_us=time_us, **sample
            )
        yield collected.table(tally)
