"""Counters of one Darshan module as the columns that rules judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING, Any

from ioprism.formats.darshan.meaning import Module, Names
from ioprism.model.trace import LARGEST_IN_BIN, LARGEST_PLAUSIBLE, SIZE_BINS
from ioprism.model.usage import (
    DIRECTIONS,
    EVERYONE,
    ColumnarCounters,
    CounterColumns,
    Counts,
    Moves,
    RankSpread,
    Seconds,
    Usage,
)

if TYPE_CHECKING:
    import polars as pl


_MOST_COMMON = range(1, 5)
_OPEN_CLOSE = ("OPEN_START", "OPEN_END", "CLOSE_START", "CLOSE_END")


def columnar(counters: Mapping[str, pl.DataFrame]) -> ColumnarCounters:
    """Return a trace's counters as columns; those of a log that was just read need no tables."""
    if isinstance(counters, ColumnarCounters):
        return counters
    from ioprism.views.counters import TableCounters

    return TableCounters(counters)


def usage_of(
    records: CounterColumns,
    module: Module,
    *,
    small_bytes: float,
    without: frozenset[int],
    ranks: int,
) -> Usage:
    """Return a module's columns, leaving out the files `without` (console streams).

    Sizes are known in bins only, so `small_bytes` is rounded down to the end of a bin.
    """
    columns = _ModuleColumns(records, module, without)
    opened = columns.opens()
    exact = _exactly(columns, small_bytes) if module.sizes else None
    first = _first(opened, columns.ranks, ranks)
    return Usage(
        layer=module.layer,
        file=columns.files,
        rank=columns.ranks,
        moves={d: _moves(columns, d, small_bytes, exact, first) for d in DIRECTIONS},
        metadata_seconds=columns.seconds("F_META_TIME"),
        opens=opened,
        seeks=columns.sum(module.seeks),
        stats=columns.sum(module.stats),
        syncs=columns.sum(module.syncs),
        misaligned=columns.values("FILE_NOT_ALIGNED"),
        misaligned_memory=columns.values("MEM_NOT_ALIGNED"),
        alignment=columns.values("FILE_ALIGNMENT"),
        common_sizes=_common_sizes(columns) if module.sizes else (),
        spread=_spread(columns) if EVERYONE in columns.ranks else None,
        open_close=tuple(columns.seconds(f"F_{name}_TIMESTAMP") for name in _OPEN_CLOSE),
        extras={name: columns.sum((counter,)) for name, counter in module.extras.items()},
    )


class _ModuleColumns:
    """Cleaned columns of the records that are looked at."""

    def __init__(self, records: CounterColumns, module: Module, without: frozenset[int]) -> None:
        self.module = module
        self._records = records
        files = records.files
        self._kept = (
            [place for place, file in enumerate(files) if file not in without]
            if without and not without.isdisjoint(files)
            else None
        )
        self.files: Counts = self._select(files)
        self.ranks: Counts = self._select(records.ranks)

    def _select(self, values: list[Any]) -> list[Any]:
        return values if self._kept is None else [values[place] for place in self._kept]

    def values(self, name: str) -> list[Any] | None:
        """A counter without what cannot be true, or None where there is none."""
        values = self._records.column(self.module.counter_name(name))
        if values is None:
            return None
        values = self._select(values)
        if None in values:
            values = [0 if value is None else value for value in values]
        if not any(values):
            return values
        fine = math.isfinite(sum(values)) and (0 <= min(values) <= max(values) <= LARGEST_PLAUSIBLE)
        # Darshan says -1 for "not available"; what is negative or not a number is damage.
        return values if fine else [v if 0 <= v <= LARGEST_PLAUSIBLE else 0 for v in values]

    def tells(self, name: str) -> bool:
        """Whether any record has this counter: -1 says that it is not available."""
        values = self._records.column(self.module.counter_name(name))
        if values is None:
            return False
        return not values or any(value is not None and value >= 0 for value in values)

    def seconds(self, name: str) -> Seconds:
        return self.values(name) or [0.0] * len(self.files)

    def sum(self, names: tuple[str, ...]) -> Counts:
        columns = [self.values(name) for name in names]
        present = [values for values in columns if values is not None and any(values)]
        if not present:
            return [0] * len(self.files)
        total, *others = present
        for other in others:
            total = list(map(add, total, other))
        return total

    def opens(self) -> Counts:
        opens, others = self.sum(self.module.opens), self.sum(self.module.not_opens)
        return _less(opens, others) if any(others) else opens


def _less(values: Counts, others: Counts) -> Counts:
    """Subtract, but not below nothing."""
    return [v - o if v > o else 0 for v, o in zip(values, others, strict=True)]


def _first(opens: Counts, ranks: Counts, job_ranks: int) -> Counts:
    """How many accesses had none before them: one per open, and at least one per rank.

    Darshan forgets where the last access ended when a file is opened again.
    """
    return [
        opened or (job_ranks if rank == EVERYONE else 1)
        for opened, rank in zip(opens, ranks, strict=True)
    ]


def _moves(
    columns: _ModuleColumns, direction: str, small_bytes: float, exact: Counts | None, first: Counts
) -> Moves:
    module, name = columns.module, direction.upper()

    def kind(counters: Mapping[str, Names]) -> Counts | None:
        return columns.sum(counters[direction]) if counters else None

    moves = Moves(
        columns.sum(module.calls[direction]),
        columns.sum((f"BYTES_{_past(direction)}",)),
        columns.seconds(f"F_{name}_TIME"),
        small=_small(columns, direction, small_bytes, exact),
        collective=kind(module.collective),
        independent=kind(module.independent),
        nonblocking=kind(module.nonblocking),
        begin=columns.values(f"F_{name}_START_TIMESTAMP"),
        finish=columns.values(f"F_{name}_END_TIMESTAMP"),
        longest=columns.values(f"F_MAX_{name}_TIME"),
    )
    counted = module.sequences and columns.tells(f"SEQ_{name}S")
    return _with_sequences(moves, columns, direction, first) if counted else moves


def _past(direction: str) -> str:
    return "READ" if direction == "read" else "WRITTEN"


def _with_sequences(moves: Moves, columns: _ModuleColumns, direction: str, first: Counts) -> Moves:
    forward = columns.sum((f"SEQ_{direction.upper()}S",))
    highest = columns.sum((f"MAX_BYTE_{_past(direction)}",))
    backward = _less(moves.operations, forward)
    return replace(
        moves,
        forward=forward,
        consecutive=columns.sum((f"CONSEC_{direction.upper()}S",)),
        first=list(map(min, first, backward)),
        extent=[h + 1 if o else 0 for h, o in zip(highest, moves.operations, strict=True)],
    )


def _bin_column(columns: _ModuleColumns, direction: str, number: int) -> str:
    whole = columns.module.size_counter(direction, SIZE_BINS[number].counter)
    return whole.removeprefix(f"{columns.module.prefix}_")


def _common_sizes(columns: _ModuleColumns) -> list[tuple[Counts, Counts]]:
    """The request sizes that came up most, and how often each did."""
    moves = []
    for place in _MOST_COMMON:
        sizes = columns.values(f"ACCESS{place}_ACCESS")
        if sizes is not None:
            moves.append((sizes, columns.sum((f"ACCESS{place}_COUNT",))))
    return moves


def _exactly(columns: _ModuleColumns, size: float) -> Counts:
    """How many requests have exactly this size, as far as the most common sizes tell."""
    exact = [0] * len(columns.files)
    for sizes, counts in _common_sizes(columns):
        if size not in sizes:
            continue
        exact = [
            n + (count if one == size else 0)
            for n, one, count in zip(exact, sizes, counts, strict=True)
        ]
    return exact


def _small(
    columns: _ModuleColumns, direction: str, small_bytes: float, exact: Counts | None
) -> Counts | None:
    """Requests shorter than the limit: whole bins, without those that are exactly as long."""
    if exact is None:
        return None
    below = sum(1 for upper in LARGEST_IN_BIN if upper <= small_bytes)
    bins = tuple(_bin_column(columns, direction, number) for number in range(below))
    counted = columns.sum(bins)
    if not any(exact) or not below:
        return counted
    # The sizes are counted over both directions: share them as their bin is shared.
    own = columns.sum((bins[-1],))
    both = columns.sum(tuple(_bin_column(columns, d, below - 1) for d in DIRECTIONS))
    return [
        max(0, n - (round(e * o / b) if b else 0))
        for n, e, o, b in zip(counted, exact, own, both, strict=True)
    ]


def _spread(columns: _ModuleColumns) -> RankSpread:
    return RankSpread(
        slowest=columns.sum(("SLOWEST_RANK",)),
        slowest_seconds=columns.seconds("F_SLOWEST_RANK_TIME"),
        slowest_bytes=columns.sum(("SLOWEST_RANK_BYTES",)),
        fastest=columns.sum(("FASTEST_RANK",)),
        fastest_seconds=columns.seconds("F_FASTEST_RANK_TIME"),
        deviation_bytes=[math.sqrt(v) for v in columns.seconds("F_VARIANCE_RANK_BYTES")],
    )
