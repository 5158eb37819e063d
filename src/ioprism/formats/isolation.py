"""Foreign files that may end the process or run code: tried in another one, or read as tables.

A database can hold views, triggers, virtual tables and computed columns: code that runs when it
is read, and that need not end. So only named columns of plain tables are read, each table by
itself and in the order in which it is stored, without sorting or joining. The file is opened
read-only and as unchanging, so that nothing is written next to it; an authorizer refuses everything
else, and the number of steps is bounded by the size of the file.
"""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.formats.reading import BASE, allowance
from ioprism.model.trace import Warn
from ioprism.text import printable


class IsolationError(Exception):
    """The other process failed; the message says how."""


LIBRARIES = 2**30  # bytes; importing polars and reading a small file take half of it
_LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_DATA, ({bytes}, {bytes}))\n"


def attempt(code: str, given: str, *, seconds: float, memory: int = BASE) -> str:
    """Run a piece of Python with `given` as its input; return what it prints.

    Args:
        code: the piece.
        given: its standard input.
        seconds: that it may take.
        memory: bytes that it may take beside what libraries need in any case.

    Raises:
        IsolationError: it raised, crashed, or took more than this.
    """
    limited = _LIMITED.format(bytes=LIBRARIES + memory) + code
    try:
        tried = subprocess.run(  # noqa: S603 - our own interpreter, our own code
            [sys.executable, "-P", "-c", limited],  # -P: nothing is imported from where the user is
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IsolationError(f"still running after {seconds:.0f} s") from error
    if tried.returncode and "memory allocation" in tried.stderr:
        raise IsolationError("it takes more memory than its size allows; see --reading-budget")
    if tried.returncode:
        said = [line for line in tried.stderr.splitlines() if line and not line.startswith(" ")]
        raise IsolationError(_why(tried.returncode, printable(said[-1]) if said else ""))
    return tried.stdout


def _why(code: int, last_words: str) -> str:
    if code > 0:
        return last_words or f"it ended with {code}"
    known = {number.value for number in signal.Signals}
    name = signal.Signals(-code).name if -code in known else f"signal {-code}"
    return f"reading it crashes the library ({': '.join(filter(None, (name, last_words)))})"


MAGIC = b"PAR1"
SECONDS = 60.0  # that any trial may take, and
PER_SECOND = 1_000_000  # bytes read in one more
_READ_ALL = """
import json, sys, polars
columns = []
for path in json.loads(sys.stdin.read()):
    columns.append(list(polars.scan_parquet(path, glob=False).collect_schema()))
    for batch in polars.scan_parquet(path, glob=False).collect_batches():
        pass
print(json.dumps(columns))
"""
# The trial finds what would end the process; polars may still give up on some columns alone.
UNREADABLE = (OSError, IsolationError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_Key = tuple[str, int, int]  # path, bytes, time of its last change


def is_parquet(path: Path) -> bool:
    """Whether the file begins like Parquet."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def columns_of(paths: Sequence[Path]) -> list[list[str]]:
    """Return each file's columns, once all of them could be read to their ends.

    Raises:
        IsolationError: one of them could not.
    """
    status = ((path, path.stat()) for path in paths)
    return _try_files(tuple((str(p.resolve()), s.st_size, s.st_mtime_ns) for p, s in status))


@lru_cache(maxsize=16)
def _try_files(files: tuple[_Key, ...]) -> list[list[str]]:
    limit = SECONDS + sum(size for _, size, _ in files) / PER_SECOND
    names = [name for name, _, _ in files]
    memory = max(allowance(Path(name)) for name in names)  # one after the other
    said = attempt(_READ_ALL, json.dumps(names), seconds=limit, memory=memory)
    columns: list[list[str]] = json.loads(said)
    return columns


def first_line(error: BaseException) -> str:
    """What went wrong, without the library's own context."""
    return str(error).partition("\n")[0]


def until_damage(tables: Iterator[pl.DataFrame], name: str, warn: Warn) -> Iterator[pl.DataFrame]:
    """Pass tables on until one cannot be read, and say so."""
    try:
        yield from tables
    except UNREADABLE as error:
        warn(f"{name}: it is damaged ({first_line(error)}); events are missing")


LARGEST_VALUE = 2**20  # bytes of a text or blob; windows of 32 KiB are the largest in use
LARGEST_PAGE = 65536  # bytes; its size does not fit into the header
STEPS_AT_ONCE = 10_000
LEAST_STEPS = 10**7
STEPS_PER_BYTE = 100  # a scan takes about one for each byte
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*")


class Tables:
    """The plain tables of an open database."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._is_truncated = _is_truncated(path)
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
        if self._is_truncated:  # SQLite itself may pass over missing pages
            raise sqlite3.DatabaseError("the file is truncated")
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
        yield Tables(connection, path)
    finally:
        connection.close()


def _is_truncated(path: Path) -> bool:
    """Whether a database is smaller than its header says."""
    with path.open("rb") as file:
        head = file.read(100)
    page, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
    counted = head[24:28] == head[92:96]  # by a version that counts the pages
    return counted and pages * (LARGEST_PAGE if page == 1 else page) > path.stat().st_size


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
