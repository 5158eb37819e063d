"""Let DuckDB read JSON lines from text that is made while it reads, into a polars table.

A file of DuckDB's own memory would copy the text three times; here it is handed over piece by
piece. Importing this module loads DuckDB, which other formats do not need.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import duckdb
import fsspec  # type: ignore[import-untyped]
import polars as pl

_ADDRESS = "pieces://text"


def read_lines(text: Iterable[bytes], columns: Mapping[str, str], *, longest: int) -> pl.DataFrame:
    """Read one row for every line that is not blank: of nulls if it is no JSON object.

    Args:
        text: pieces of it, none of which is empty.
        columns: types by name, as DuckDB writes them.
        longest: bytes of a line.
    """
    with _connected() as connection:
        connection.files.pieces = iter(text)
        relation = connection.database.read_json(
            _ADDRESS,
            columns=dict[str, Any](columns),
            format="newline_delimited",
            ignore_errors=True,
            maximum_object_size=longest,
        )
        return pl.DataFrame(_Rows(relation))


class _Relation(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class _Rows:
    """Hands a relation to polars, which keeps the class of what it is given until the end.

    DuckDB reports its own classes as leaked if they outlive it.
    """

    def __init__(self, relation: _Relation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


class _Text:
    """An open file, as far as DuckDB makes use of one that it reads from front to back."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        rest = self._rest or memoryview(next(self._pieces, b""))
        taken, self._rest = rest[:size], rest[size:]
        whole: bytes = taken.obj  # type: ignore[assignment]
        return whole if len(whole) == len(taken) else taken.tobytes()

    def seek(self, position: int) -> None:
        """Stay where it is: DuckDB only asks for the beginning."""

    def close(self) -> None:
        """There is nothing to close."""


class _Files(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The one file there is."""

    protocol = "pieces"
    cachable = False
    pieces: Iterator[bytes] = iter(())

    def open(self, *_: object, **__: object) -> _Text:
        return _Text(self.pieces)

    def glob(self, path: str, **_: object) -> list[str]:
        return [path]

    def size(self, *_: object) -> int:
        return 2**40  # more than there is

    def modified(self, *_: object) -> datetime:
        return datetime.fromtimestamp(0, UTC)


class _Connection:
    """A database of one thread, which reads one text at a time."""

    def __init__(self) -> None:
        self.files = _Files()
        self.database = duckdb.connect(config={"threads": 1})
        self.database.register_filesystem(self.files)

    def close(self) -> None:
        """Let go of the files, too."""
        self.database.unregister_filesystem(self.files.protocol)
        self.database.close()


_idle: list[_Connection] = []


@contextmanager
def _connected() -> Iterator[_Connection]:
    """Take a connection that no other thread uses: making one costs as much as a MiB of text."""
    try:
        connection = _idle.pop()
    except IndexError:
        connection = _Connection()
    try:
        yield connection
    finally:
        connection.files.pieces = iter(())
        _idle.append(connection)


@atexit.register
def _close() -> None:
    """DuckDB reports what is still open at the end as leaked."""
    while _idle:
        _idle.pop().close()
