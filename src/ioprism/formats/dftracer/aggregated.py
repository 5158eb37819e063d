"""DFTracer's aggregated mode: sums per function and second instead of calls.

The sums become the counters and the heat map that Darshan would have written: calls, bytes
and seconds per process, and bytes per second. Files are not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import polars as pl

from ioprism.formats.calls import classify
from ioprism.formats.darshan.records import POSIX
from ioprism.formats.dftracer.decode import Line, decode_text, whole_number
from ioprism.formats.dftracer.lines import LARGE_PIECE, Trouble, chunks, pieces
from ioprism.model.layers import LARGEST_PLAUSIBLE
from ioprism.model.schema import Layer
from ioprism.model.trace import Warn
from ioprism.units import format_counted

MOST_SECONDS = 10_000_000
UNKNOWN = -1  # as Darshan writes what it does not know
_COUNTS = {"read": "POSIX_READS", "write": "POSIX_WRITES", "open": "POSIX_OPENS",
           "seek": "POSIX_SEEKS", "stat": "POSIX_STATS", "sync": "POSIX_FSYNCS",
           "metadata": "POSIX_MMAPS"}  # fmt: skip
_BYTES = {"read": "POSIX_BYTES_READ", "write": "POSIX_BYTES_WRITTEN"}
# Darshan counts the time of a sync as time of writing.
_TIMES = {"read": "POSIX_F_READ_TIME", "write": "POSIX_F_WRITE_TIME", "sync": "POSIX_F_WRITE_TIME"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The calls of one function in one second of one process."""

    pid: int
    second: int  # since the trace began
    operation: str
    count: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Aggregates:
    """All sums of a trace, read when they are first needed."""

    paths: Sequence[Path]
    rank_of: Mapping[int, int]  # by pid
    origin: int  # seconds since 1970
    per_second: int  # clock ticks
    warn: Warn = field(repr=False)

    def tables(self) -> dict[str, Callable[[], pl.DataFrame]]:
        """The loaders of the counter tables."""
        return {"POSIX": self.counters, "HEATMAP": self.heatmap} if self.paths else {}

    @cached_property
    def rows(self) -> list[Aggregate]:
        """Every sum in the files."""
        return [one for path in self.paths for one in self._read(path)]

    def _read(self, path: Path) -> Iterator[Aggregate]:
        trouble, damaged = Trouble(), 0
        for portion in pieces(chunks(path, trouble), trouble, size=LARGE_PIECE):
            for line in filter(attrgetter("is_sum"), decode_text(portion).lines):
                aggregate = self._aggregate(line)
                damaged += aggregate is None
                if aggregate is not None:
                    yield aggregate
        if damaged:
            self.warn(f"{path.name}: {format_counted(damaged, 'damaged sum')} left out")

    def _aggregate(self, line: Line) -> Aggregate | None:
        pid, ts, count = map(whole_number, (line.pid, line.ts, line.arguments.dft_cnt))
        if not isinstance(line.name, str) or pid is None or ts is None or count is None:
            return None
        second = ts // self.per_second - self.origin
        if not (0 <= second < MOST_SECONDS and 0 <= count < LARGEST_PLAUSIBLE):
            return None
        operation = classify(line.name).operation
        # The value of a single call has the plain key.
        moved = _plausible(line.arguments.ret_sum, line.arguments.ret)
        ticks = _plausible(line.arguments.dur_sum, line.arguments.dur)
        data = operation in _BYTES
        return Aggregate(
            pid, second, operation, count, max(0, moved) if data else 0, ticks / self.per_second
        )

    def counters(self) -> pl.DataFrame:
        """One row per process, with the columns of Darshan's POSIX module."""
        ranks: dict[int, dict[str, float]] = {}
        for one in self.rows:
            row = ranks.setdefault(self.rank_of.get(one.pid, 0), {})
            _add(row, _COUNTS.get(one.operation), one.count)
            _add(row, _BYTES.get(one.operation), one.bytes)
            if one.operation in _COUNTS:
                _add(row, _TIMES.get(one.operation, "POSIX_F_META_TIME"), one.seconds)
        rows = [
            {"file": None, "rank": rank}
            | {name: int(sums.get(name, UNKNOWN)) for name in POSIX.counters}
            | {name: float(sums.get(name, 0.0)) for name in POSIX.times}
            for rank, sums in sorted(ranks.items())
        ]
        schema = {"file": pl.UInt32(), "rank": pl.Int32()}
        schema |= dict.fromkeys(POSIX.counters, pl.Int64())
        return pl.DataFrame(rows, schema=schema | dict.fromkeys(POSIX.times, pl.Float64()))

    def heatmap(self) -> pl.DataFrame:
        """Bytes per second and process."""
        last = max((one.second for one in self.rows), default=0)
        bins: dict[int, dict[str, list[int]]] = {}
        for one in self.rows:
            if one.bytes and one.operation in _BYTES:
                rank = self.rank_of.get(one.pid, 0)
                if rank not in bins:
                    bins[rank] = {direction: [0] * (last + 1) for direction in _BYTES}
                bins[rank][one.operation][one.second] += one.bytes
        return pl.DataFrame(
            {
                "layer": pl.Series(["posix"] * len(bins), dtype=Layer),
                "rank": pl.Series(list(bins), dtype=pl.Int32),
                "bin_width": pl.Series([1.0] * len(bins), dtype=pl.Float64),
                "write": pl.Series([b["write"] for b in bins.values()], dtype=pl.List(pl.Int64)),
                "read": pl.Series([b["read"] for b in bins.values()], dtype=pl.List(pl.Int64)),
            }
        )


def _plausible(*values: object) -> int:
    """Return the first value that is a number, if it is plausible; 0 otherwise."""
    number = next((n for n in map(whole_number, values) if n is not None), 0)
    return number if abs(number) < LARGEST_PLAUSIBLE else 0


def _add(row: dict[str, float], name: str | None, amount: float) -> None:
    if name is not None:
        row[name] = row.get(name, 0) + amount
