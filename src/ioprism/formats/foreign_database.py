"""Read plain tables of a foreign SQLite file, and run nothing that is in it.

A database can hold views, triggers, virtual tables and computed columns: code that runs when it
is read, and that need not end. So only named columns of plain tables are read, each table by
itself and in the order in which it is stored, without sorting or joining. The file is opened
read-only and as unchanging, so that nothing is written next to it; an authorizer refuses everything
else, and the number of steps is bounded by the size of the file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LARGEST_VALUE = 2**20  # bytes of a text or blob; windows of 32 KiB are the largest in use
STEPS_AT_ONCE = 10_000
LEAST_STEPS = 10**7
STEPS_PER_BYTE = 100  # a scan takes about one for each byte
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*")


class Tables:
    """The plain tables of an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        self._plain = {
            str(name)
            for kind, name, text in rows
            if kind == "table" and not VIRTUAL.match(str(text))
        }

    def __contains__(self, table: str) -> bool:
        return table in self._plain

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, row after row as they are stored.

        Raises:
            sqlite3.Error: it is not a plain table, cannot be read, or takes too long.
        """
        if table not in self:
            raise sqlite3.DatabaseError(f"{table} is not a plain table of the file")
        if not all(map(_NAME.fullmatch, (table, *columns))):
            raise ValueError("names of tables and columns are plain words")
        listed = ", ".join(f'"{column}"' for column in columns)
        yield from self._connection.execute(f'SELECT {listed} FROM "{table}"')  # noqa: S608


@contextmanager
def opened_tables(path: Path, *names: str) -> Iterator[Tables]:
    """Open a database for reading some of its tables.

    Args:
        path: the file.
        names: the tables that may be read, if they are there.

    Raises:
        sqlite3.Error: it is not a database, or its tables are not plain.
    """
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        _limit_steps(connection, path)
        for name in names:
            _check_columns(connection, name)
        connection.set_authorizer(_only({*names, "sqlite_master", "sqlite_schema"}))
        yield Tables(connection)
    finally:
        connection.close()


def _limit_steps(connection: sqlite3.Connection, path: Path) -> None:
    left = (LEAST_STEPS + STEPS_PER_BYTE * path.stat().st_size) // STEPS_AT_ONCE

    def count() -> int:
        nonlocal left
        left -= 1
        return int(left < 0)  # anything but 0 interrupts the query

    connection.set_progress_handler(count, STEPS_AT_ONCE)


def _check_columns(connection: sqlite3.Connection, table: str) -> None:
    """Refuse columns that are computed when they are read."""
    rows: Sequence[tuple[Any, ...]] = ()
    with suppress(sqlite3.OperationalError):  # a missing table is reported later
        rows = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", (table,)).fetchall()
    if any(hidden for (hidden,) in rows):
        raise sqlite3.DatabaseError(f"the table {table} has computed columns")


def _only(tables: set[str]) -> Any:  # noqa: ANN401 - sqlite3 calls it with five arguments
    def allow(action: int, table: str | None, _: object, __: object, source: object) -> int:
        """Allow reading the tables, but not for a view or trigger (the source)."""
        readable = action != sqlite3.SQLITE_READ or table in tables
        sound = action in ALLOWED and readable and source is None
        return sqlite3.SQLITE_OK if sound else sqlite3.SQLITE_DENY

    return allow
