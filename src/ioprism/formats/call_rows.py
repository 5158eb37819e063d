"""Formats that are read call by call: from rows to a trace, in two passes.

The first pass learns which files there are and when the trace begins and ends; the second
one, whenever events are asked for, builds tables of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import polars as pl

from ioprism.model.layers import LARGEST_PLAUSIBLE
from ioprism.model.schema import EVENTS, Layer, Operation
from ioprism.model.trace import Warn

BATCH = 100_000  # rows in one table
IMPOSSIBLE = -1  # stands for a number that cannot be true


class Row(NamedTuple):
    """One call."""

    start: float  # seconds, on the source's own clock
    end: float
    process: int  # row of the process table
    path: str | None
    layer: int  # number in `schema.LAYERS`
    operation: int  # number in `schema.OPERATIONS`
    function: str | None
    offset: int | None = None
    bytes: int | None = None
    collective: bool | None = None
    nonblocking: bool | None = None


class RowSource(Protocol):
    """Something that can be read call by call, as often as needed; picklable."""

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls; processes are numbered in the same way every time."""
        ...


@dataclass(slots=True)
class Span:
    """What the first pass learns."""

    paths: dict[str, int] = field(default_factory=dict)  # row of the file table
    first: float | None = None
    last: float | None = None

    def see(self, row: Row) -> None:
        """Take note of one call."""
        self.first = row.start if self.first is None else min(self.first, row.start)
        self.last = row.end if self.last is None else max(self.last, row.end)
        if row.path is not None:
            self.paths.setdefault(row.path, len(self.paths))


@dataclass(frozen=True, slots=True, eq=False)
class RowPartition:
    """All calls of one source."""

    source: RowSource
    origin: float  # the source's clock when the trace begins
    paths: Mapping[str, int]
    ranks: Mapping[int, int]  # by row of the process table

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        held: list[Row] = []
        for row in self.source.rows(warn):
            held.append(row)
            if len(held) >= BATCH:
                yield self._frame(held).lazy()
                held = []
        if held:
            yield self._frame(held).lazy()

    def _frame(self, rows: list[Row]) -> pl.DataFrame:
        columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
        paths = [None if path is None else self.paths.get(path) for path in columns["path"]]
        ranks = [self.ranks.get(process, 0) for process in columns["process"]]
        return EVENTS.conform(
            pl.DataFrame(
                {
                    "start": pl.Series(columns["start"], dtype=pl.Float64) - self.origin,
                    "end": pl.Series(columns["end"], dtype=pl.Float64) - self.origin,
                    "rank": pl.Series(ranks, dtype=pl.Int32),
                    "process": pl.Series(columns["process"], dtype=pl.UInt32),
                    "file": pl.Series(paths, dtype=pl.UInt32),
                    "layer": pl.Series(columns["layer"], dtype=pl.UInt8).cat.to(Layer),
                    "operation": pl.Series(columns["operation"], dtype=pl.UInt8).cat.to(Operation),
                    "function": pl.Series(columns["function"], dtype=pl.String),
                    "offset": pl.Series(columns["offset"], dtype=pl.Int64),
                    "bytes": pl.Series(columns["bytes"], dtype=pl.Int64),
                    "collective": pl.Series(columns["collective"], dtype=pl.Boolean),
                    "nonblocking": pl.Series(columns["nonblocking"], dtype=pl.Boolean),
                }
            )
        )


def plausible(value: object) -> int | None:
    """Return a size or an offset; one that is given and cannot be is negative, and counted."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return IMPOSSIBLE
    try:
        number = int(value) if not isinstance(value, str) or len(value) < 20 else IMPOSSIBLE
    except (ValueError, OverflowError):
        return IMPOSSIBLE
    return number if 0 <= number < LARGEST_PLAUSIBLE else IMPOSSIBLE
