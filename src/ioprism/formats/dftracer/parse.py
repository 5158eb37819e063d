"""Parse DFTracer's JSON lines into columns, with DuckDB unless they are few.

DuckDB answers a line that is no JSON object with a row of nulls, so that damage can be counted.
It is imported when the first piece is parsed that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from operator import or_

import polars as pl

from ioprism.formats.dftracer.few_lines import read_few_lines
from ioprism.formats.dftracer.lines import CHUNK, LONGEST_LINE

REQUIRED = ("name", "ts", "dur", "pid", "tid")
LINE = "ioprism:line"  # which line it is, where somebody has written that into it
NUMBERS = ("ret", "count", "offset", "whence", "flags", "size")
EVENT, COUNTER, METADATA = ["X", "1"], ["C", "3"], ["M", "4"]

CODED_TEXT = pl.Categorical(pl.Categories("dftracer", "ioprism"))  # forgotten with the trace
_TOP = {"name": "VARCHAR", "cat": "VARCHAR", "pid": "BIGINT", "tid": "BIGINT", "ts": "BIGINT",
        "dur": "BIGINT", "ph": "VARCHAR", LINE: "BIGINT"}  # fmt: skip
_OF_CALLS = dict.fromkeys((*NUMBERS, "dft_cnt"), "BIGINT") | dict.fromkeys(
    ("fhash", "hostname", "fname"), "VARCHAR"
)
_CODED = dict.fromkeys(("name", "cat", "ph"), pl.Categorical()) | dict.fromkeys(
    ("fhash", "fname"), CODED_TEXT
)
_OF_SUMS = dict.fromkeys(("dft_cnt", "ret_sum", "dur_sum", "ret", "dur"), "BIGINT")


@dataclass(frozen=True, eq=False)
class Parsed:
    """The lines of a text, in the order of the file."""

    rows: pl.DataFrame  # columns REQUIRED, cat, NUMBERS, fhash, hostname, fname, ph, dft_cnt

    @cached_property
    def is_call(self) -> pl.Series:
        """Which rows are calls, and have all that a call needs."""
        phase = self.rows["ph"]
        calls = reduce(or_, (phase == one for one in EVENT)).fill_null(False)
        for name in set(REQUIRED).intersection(self.rows.columns):
            if self.rows[name].null_count():
                calls &= self.rows[name].is_not_null()
        return calls

    @cached_property
    def calls(self) -> pl.DataFrame:
        """The calls alone."""
        return self.rows if self.is_call.all() else self.rows.filter(self.is_call)

    @cached_property
    def others(self) -> pl.DataFrame:
        """Lines that are no calls."""
        rest = self.rows.clear() if self.is_call.all() else self.rows.filter(~self.is_call)
        return rest.cast({"ph": pl.String})

    @property
    def counters(self) -> pl.DataFrame:
        """Lines with values that were counted instead of calls."""
        return self.others.filter(pl.col("ph").is_in(COUNTER))

    @property
    def damaged(self) -> int:
        """Lines that are no JSON object, or lack what a call needs."""
        return self.others.height - int(self.others["ph"].is_in(COUNTER + METADATA).sum())

    @property
    def sums(self) -> int:
        """Lines of the aggregated mode, each of which stands for several calls."""
        return int(self.counters["dft_cnt"].is_not_null().sum())


def parse(text: Iterable[bytes], *, without: Collection[str] = ()) -> Parsed:
    """Read all lines of pieces of text as calls, without some of the columns."""
    return Parsed(_rows(text, _OF_CALLS, without=without))


def parse_sums(text: Iterable[bytes]) -> pl.DataFrame:
    """Read all lines of a text as sums of the aggregated mode, without those that are none."""
    rows = _rows(text, _OF_SUMS, renamed={"dur": "dur_one", "ret": "ret_one"})
    return rows.filter(pl.col("ph").cast(pl.String).is_in(COUNTER), pl.col("dft_cnt").is_not_null())


def _rows(
    text: Iterable[bytes],
    arguments: Mapping[str, str],
    *,
    without: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """One row for every line that is not blank."""
    top = {key: kind for key, kind in _TOP.items() if key not in without}
    inner = {key: kind for key, kind in arguments.items() if key not in without}
    pieces = filter(None, map(_plain, text))
    first, second = next(pieces, b""), next(pieces, b"")
    table = None if second else read_few_lines(first, top, inner)
    if table is None:
        table = _by_duckdb(chain(filter(None, (first, second)), pieces), top, inner)
    rows = table.drop("args").hstack(table["args"].struct.unnest().rename(renamed or {}))
    return rows.cast({key: kind for key, kind in _CODED.items() if key in rows.columns})


def _by_duckdb(
    text: Iterable[bytes], top: Mapping[str, str], arguments: Mapping[str, str]
) -> pl.DataFrame:
    from ioprism.formats.dftracer.json_lines import read_lines

    inner = ", ".join(f'"{key}" {kind}' for key, kind in arguments.items())
    return read_lines(text, {**top, "args": f"STRUCT({inner})"}, longest=LONGEST_OBJECT)


HEAD = 65536  # bytes that show how lines end
_COMMA = re.compile(rb"\}[ ,]*,[ ,\r]*\n")
_ODD_BYTES = {
    0xDC00 + byte: f"\\\\x{byte:02x}" for byte in range(128, 256)
}  # as `surrogateescape` marks them
LONGEST_OBJECT = LONGEST_LINE + 2 * CHUNK  # bytes


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
    written = text.translate(_ODD_BYTES).encode()
    if len(written) > LONGEST_OBJECT and max(map(len, written.split(b"\n"))) > LONGEST_OBJECT:
        return text.encode("utf-8", "replace")  # a line that DuckDB would refuse, and all others
    return written
