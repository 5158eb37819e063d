"""The calls of a text as numbers: most lines by templates, the others by the JSON parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from threading import Lock

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.dftracer.objects import is_definition
from ioprism.formats.dftracer.parse import LINE, NUMBERS, Parsed, parse
from ioprism.formats.dftracer.templates import (
    PADDING,
    Hashes,
    Places,
    Template,
    Text,
    template_of,
)
from ioprism.formats.file_pointer import UNKNOWN, Integers

UNDEFINED = -1  # a file whose hash nobody has defined; `UNKNOWN`: a call without file
FILE = "fhash"
PLAIN = ("pid", "tid", "ts", "dur", *NUMBERS)
FEW_TEMPLATES, MOST_TEMPLATES = 16, 64  # the first are of one thread each
FEW = 256  # a template is for one line in so many, or more
TRIES = 4  # lines that become no template until the others are left
SHORT = 8  # bytes of a line that may be a bracket


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Some calls in the order of the file, and what else there was."""

    kind: npt.NDArray[np.intp]  # row of `CallParser.kinds`
    file: Integers
    numbers: dict[str, Integers]  # PLAIN; `UNKNOWN` where a call does not have one
    damaged: int = 0  # lines
    sums: int = 0  # lines that stand for several calls
    undefined: int = 0  # calls with a hash that nobody has defined

    def only(self, wanted: npt.NDArray[np.bool_]) -> Calls:
        """Return some of the calls."""
        numbers = {key: column[wanted] for key, column in self.numbers.items()}
        return Calls(self.kind[wanted], self.file[wanted], numbers)


@dataclass(frozen=True, eq=False)
class Index:
    """How the trace numbers its files."""

    by_hash: Mapping[str, int]
    by_path: Mapping[str, int]  # of old versions, which write paths into every line

    @cached_property
    def hashes(self) -> Hashes:
        """The same for templates, made when the first is."""
        return Hashes(self.by_hash)


@dataclass(slots=True, eq=False)
class CallParser:
    """Reads the text of one file, and learns from it how its lines are written."""

    index: Index
    least: int = 2 * 2**20  # bytes of text for which templates are worth it
    kinds: dict[tuple[str, str], int] = field(default_factory=dict)  # by name and category
    _templates: list[Template] = field(default_factory=list)
    _repeats: bool = True  # whether most lines fit templates
    _lock: Lock = field(default_factory=Lock)

    def read(self, portion: Iterable[bytes]) -> Calls:
        """Read pieces of text, each of which has `PADDING` line ends behind it."""
        pieces = iter(portion)
        first = next(pieces)
        portion = chain((first,), pieces)
        small = len(first) - PADDING < self.least and not self._templates
        if small or not self._repeats or self.index.by_path:
            return self._parsed(self._parse(piece[:-PADDING] for piece in portion))
        tables: list[_Table] = []
        left: list[bytes] = []
        height = 0
        for piece in portion:
            text = Text(piece)
            tables.append(_Table(len(text.starts)))
            rest = self._by_templates(text, tables[-1])
            left.extend(_numbered(text, rest, height))
            height += len(text.starts)
        self._repeats = 2 * len(left) < height
        table = _Table.joined(tables)
        if not left:
            return table.calls()
        return self._with_rest(table, self._parse([b"".join(left)]))

    def _parse(self, text: Iterable[bytes]) -> Parsed:
        """Parse without what the survey has read already, or has seen that there is none of."""
        return parse(text, without=("hostname",) if self.index.by_path else ("hostname", "fname"))

    def _with_rest(self, table: _Table, parsed: Parsed) -> Calls:
        """Put calls that the JSON parser has read into their places."""
        rest = self._parsed(parsed)
        rows = parsed.calls[LINE].fill_null(UNDEFINED).to_numpy()
        placed = (rows >= 0) & (rows < len(table.kind))  # a line may hold anything
        table.put(rows[placed], rest.only(placed))
        damaged = rest.damaged + int(np.count_nonzero(~placed))
        return replace(table.calls(), damaged=damaged, sums=rest.sums, undefined=rest.undefined)

    def _by_templates(self, text: Text, table: _Table) -> Places:
        """Read what fits templates, known and new; return the lines that fit none."""
        rows = np.arange(len(text.starts))
        few = len(rows) // FEW
        hits: list[tuple[int, Template]] = []
        for template in self._templates:
            before = len(rows)
            rows = self._fitted(template, text, rows, table) if before > few else rows
            hits.append((before - len(rows), template))
        tries = TRIES
        while tries and len(rows) > few and len(hits) < MOST_TEMPLATES:
            line, before = text.line(int(rows[len(rows) * tries // (TRIES + 1)])), len(rows)
            one = template_of(
                line, NUMBERS, self.index.hashes, of_one_thread=len(hits) < FEW_TEMPLATES
            )
            rows = rows if one is None else self._fitted(one, text, rows, table)
            if one is not None and before - len(rows) > few:
                hits.append((before - len(rows), one))
            else:
                tries -= 1
        hits.sort(key=lambda hit: -hit[0])
        self._templates = [template for _, template in hits]
        return rows

    def _fitted(self, template: Template, text: Text, rows: Places, table: _Table) -> Places:
        fitting, values = template.fit(text, rows, self.index.hashes)
        if not len(fitting):
            return rows
        table.kind[fitting] = self.kind(template.name, template.category)
        for key, column in values.items():
            table.column(key)[fitting] = column
        for key, value in template.same.items():
            table.column(key)[fitting] = value
        left = np.zeros(len(table.kind), np.bool_)
        left[rows] = True
        left[fitting] = False
        return np.flatnonzero(left)

    def kind(self, name: str, category: str) -> int:
        """Return the number of a kind of call."""
        with self._lock:
            return self.kinds.setdefault((name, category), len(self.kinds))

    def _parsed(self, parsed: Parsed) -> Calls:
        """What the JSON parser has read, in numbers."""
        calls = parsed.calls
        (_, name), (some, category) = (_distinct(_codes(calls[key])) for key in ("name", "cat"))
        first, where = _distinct(name * len(some) + category)
        both = calls.select("name", "cat")[first].rows()
        kinds = np.array([self.kind(name, category or "") for name, category in both], np.intp)
        file = _looked_up(calls["fhash"], self.index.by_hash)
        undefined = int(np.count_nonzero(file == UNDEFINED))
        if self.index.by_path:
            by_path = _looked_up(calls["fname"], self.index.by_path)
            file = np.where((file < 0) & (by_path >= 0), by_path, file)
        numbers = {key: calls[key].fill_null(UNKNOWN).to_numpy() for key in PLAIN}
        return Calls(kinds[where], file, numbers, parsed.damaged, parsed.sums, undefined)


class _Table:
    """Columns of numbers, filled kind by kind."""

    def __init__(self, height: int) -> None:
        self.kind = np.full(height, UNDEFINED)
        self.columns: dict[str, Integers] = {}

    @classmethod
    def joined(cls, tables: Sequence[_Table]) -> _Table:
        """Put tables below each other."""
        whole = cls(0)
        whole.kind = np.concatenate([table.kind for table in tables]) if tables else whole.kind
        for key in {key for table in tables for key in table.columns}:
            parts = [table.column(key) for table in tables]
            whole.columns[key] = np.concatenate(parts)
            for table in tables:
                del table.columns[key]  # so that not all is held twice
        return whole

    def column(self, key: str) -> Integers:
        """Return a column to write into; it is `UNKNOWN` at first."""
        if key not in self.columns:
            self.columns[key] = np.full(len(self.kind), UNKNOWN)
        return self.columns[key]

    def put(self, rows: Places, calls: Calls) -> None:
        """Write calls into some rows."""
        self.kind[rows] = calls.kind
        self.column(FILE)[rows] = calls.file
        for key, column in calls.numbers.items():
            self.column(key)[rows] = column

    def calls(self) -> Calls:
        """Return the rows that were written."""
        numbers = {key: self.column(key) for key in PLAIN}
        every = Calls(self.kind, self.column(FILE), numbers)
        written = self.kind >= 0
        return every if written.all() else every.only(written)


def _numbered(text: Text, rows: Places, first: int) -> Iterator[bytes]:
    """Yield lines that tell their row; without brackets around all lines, and what is no call."""
    ends = {0: b"[", len(text.starts) - 1: b"]"}
    for row in rows.tolist():
        line = text.line(row)
        if is_definition(line):  # the survey has read it
            continue
        if len(line) > SHORT or line.strip() not in (b"", ends.get(row)):
            told = line.replace(b"{", b'{"%s":%d,' % (LINE.encode(), first + row), 1)
            yield told if row == 0 or not told.startswith(b"[") else b"\n" + told


def _codes(column: pl.Series) -> Integers:
    return column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _distinct(codes: Integers) -> tuple[Places, Places]:
    """Return a place of each distinct code, and which of them is where."""
    codes = codes + 1
    place = np.full(int(codes.max(initial=0)) + 1, -1)
    place[codes] = np.arange(len(codes))
    met = np.flatnonzero(place >= 0)
    number = np.empty(len(place), np.intp)
    number[met] = np.arange(len(met))
    return place[met], number[codes]


def _looked_up(names: pl.Series, files: Mapping[str, int]) -> Integers:
    """Row of the file table; `UNKNOWN` where there is no name."""
    first, where = _distinct(_codes(names))
    found = [UNKNOWN if one is None else files.get(one, UNDEFINED) for one in names[first]]
    return np.array(found, np.int64)[where]
