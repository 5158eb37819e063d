"""Parse DFTracer's JSON lines into columns, with DuckDB.

DuckDB answers a line that is no JSON object with a row of nulls, so that damage can be counted.
It is imported when the first piece is parsed: other formats do not need it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from threading import local
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

if TYPE_CHECKING:
    import duckdb

REQUIRED = ("name", "ts", "dur", "pid", "tid")
NUMBERS = ("ret", "count", "offset", "whence", "flags", "size")
EVENT, COUNTER, METADATA = ["X", "1"], ["C", "3"], ["M", "4"]

_TOP = {"name": "VARCHAR", "cat": "VARCHAR", "pid": "BIGINT", "tid": "BIGINT", "ts": "BIGINT",
        "dur": "BIGINT", "ph": "VARCHAR"}  # fmt: skip
_OF_CALLS = dict.fromkeys((*NUMBERS, "dft_cnt"), "BIGINT") | dict.fromkeys(
    ("fhash", "hostname", "fname"), "VARCHAR"
)
_OF_SUMS = dict.fromkeys(("dft_cnt", "ret_sum", "dur_sum", "ret", "dur"), "BIGINT")


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """The lines of one piece, in the order of the file."""

    calls: pl.DataFrame  # columns REQUIRED, cat, NUMBERS, fhash, hostname, fname
    counters: pl.DataFrame  # lines that are no calls: pid, tid, cat and dft_cnt
    damaged: int  # lines that are no JSON object, or lack what a call needs

    @property
    def sums(self) -> int:
        """Lines of the aggregated mode, each of which stands for several calls."""
        return self.counters.height - self.counters["dft_cnt"].null_count()


class _Relation(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class _Stream:
    """Hands a relation to polars, which keeps the class of what it is given until the end.

    DuckDB reports its own classes as leaked if they outlive it.
    """

    def __init__(self, relation: _Relation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def parse(piece: bytes) -> Parsed:
    """Read all lines of a text as calls."""
    rows = _rows(piece, _OF_CALLS)
    is_call = rows["ph"].is_in(EVENT).fill_null(False)
    for name in REQUIRED:
        is_call &= rows[name].is_not_null()
    calls = (rows if is_call.all() else rows.filter(is_call)).drop("ph", "dft_cnt")
    others = rows.filter(~is_call)
    counters = others.filter(others["ph"].is_in(COUNTER))
    damaged = others.height - int(others["ph"].is_in(COUNTER + METADATA).sum())
    return Parsed(
        calls.with_columns(pl.col("cat").fill_null("")),
        counters.select("pid", "tid", "cat", "dft_cnt"),
        damaged,
    )


def parse_sums(piece: bytes) -> pl.DataFrame:
    """Read all lines of a text as sums of the aggregated mode, without those that are none."""
    rows = _rows(piece, _OF_SUMS, renamed={"dur": "dur_one", "ret": "ret_one"})
    return rows.filter(pl.col("ph").is_in(COUNTER) & pl.col("dft_cnt").is_not_null())


def _rows(
    piece: bytes, arguments: Mapping[str, str], *, renamed: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """One row for every line that is not blank."""
    fields = ", ".join(f'"{name}" {kind}' for name, kind in arguments.items())
    columns: dict[str, Any] = {**_TOP, "args": f"STRUCT({fields})"}
    relation = _duckdb().read_json(
        io.BytesIO(_plain(piece)),
        columns=columns,
        format="newline_delimited",
        ignore_errors=True,
        maximum_object_size=max(LONGEST_OBJECT, len(piece)),
    )
    table = pl.DataFrame(_Stream(relation))
    inner = table["args"].struct.unnest().rename(renamed or {})
    return table.drop("args").hstack(inner)


HEAD = 65536  # bytes that show how lines end
_COMMA = re.compile(rb"\}[ ,]*,[ ,\r]*\n")
_ODD_BYTE = re.compile("[\udc80-\udcff]")  # as `surrogateescape` marks it
LONGEST_OBJECT = 2**24  # bytes, of which DuckDB makes its buffers


def _plain(piece: bytes) -> bytes:
    """The lines without what JSON lines do not have: brackets, commas between, odd bytes."""
    if piece.startswith(b"["):
        piece = piece[1:]
    if piece[-8:].rstrip().endswith(b"\n]"):
        piece = piece[: piece.rindex(b"]")]
    if _COMMA.search(piece, 0, HEAD):  # then all lines end so
        piece = _COMMA.sub(b"}\n", piece + b"\n")
    return piece if piece.isascii() else _valid(piece)


def _valid(piece: bytes) -> bytes:
    """The text with bytes that are no Unicode written out, as hexadecimal digits."""
    text = piece.decode("utf-8", "surrogateescape")
    return _ODD_BYTE.sub(lambda found: f"\\\\x{ord(found[0]) - 0xDC00:02x}", text).encode()


class _Connections(local):
    """A connection per thread: one would parse a single piece at a time."""

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})


def _duckdb() -> duckdb.DuckDBPyConnection:
    global _connections  # noqa: PLW0603 - made when it is first needed, to import DuckDB late
    if _connections is None:
        _connections = _Connections()
    return _connections.connection


_connections: _Connections | None = None
