"""Darshan's counters in the shape of event totals, so that analyses need not tell them apart.

One row per file, rank, layer and operation: operations, bytes, seconds. Darshan gives one
time for all metadata calls of a file: it stands in the row of operation `metadata`, and the
rows of single kinds (open, stat, …) have no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.darshan.meaning import MODULES, Module, Names
from ioprism.model.layers import LARGEST_PLAUSIBLE, LAYERS, SIZE_BINS
from ioprism.model.schema import OPERATIONS, Layer, Operation
from ioprism.model.trace import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNKNOWN = -1
# Operations with a separate time; that of all metadata calls is in the row `metadata`.
TIMED = ("read", "write", "metadata")

_LAYERS = pl.Series("layer", LAYERS, dtype=Layer)
_OPERATIONS = pl.Series("operation", OPERATIONS, dtype=Operation)

_NO_TOTALS = pl.DataFrame(
    schema={
        "file": pl.UInt32(),
        "rank": pl.Int32(),
        "layer": Layer,
        "operation": Operation,
        "operations": pl.Int64(),
        "bytes": pl.Int64(),
        "seconds": pl.Float64(),
    }
)
_NO_SIZES = pl.DataFrame(
    schema={
        "file": pl.UInt32(),
        "layer": Layer,
        "operation": Operation,
        "bin": pl.UInt8(),
        "count": pl.Int64(),
    }
)


@lru_cache(maxsize=1)  # several analyses of a log ask one after the other
def counter_totals(trace: Trace) -> pl.DataFrame:
    """Return operations, bytes and seconds by file, rank (-1: shared), layer and operation."""
    tables = [_NO_TOTALS]
    for name, module in MODULES.items():
        if name in trace.counters:
            tables.append(_module_totals(trace.counters[name], module))
    return pl.concat(tables)


def _module_totals(table: pl.DataFrame, module: Module) -> pl.DataFrame:
    """Sum in arrays: thousands of small logs pass here, and a query costs more than they hold."""
    read = Values(table)
    counts = _counts(read, module)
    unknown = np.full(table.height, UNKNOWN, np.int64)
    moved = [
        read.counter(module.bytes(kind)) if kind in module.calls else unknown for kind in counts
    ]
    took = [
        read.seconds(module.seconds(kind)) if kind in TIMED else np.full(table.height, np.nan)
        for kind in counts
    ]
    operations, seconds = np.stack(list(counts.values())), np.stack(took)
    kind, row = np.nonzero((operations > 0) | (seconds > 0))
    return pl.DataFrame(
        [
            table["file"][row],
            table["rank"][row],
            *_labels(module, list(counts), kind),
            pl.Series("operations", operations[kind, row], dtype=pl.Int64),
            _nullable("bytes", np.stack(moved)[kind, row]),
            pl.Series("seconds", seconds[kind, row], nan_to_null=True),
        ]
    )


@dataclass(frozen=True, slots=True)
class Values:
    """A module's counters as arrays."""

    table: pl.DataFrame

    def counter(self, name: str) -> Ints:
        """A counter's values; UNKNOWN where Darshan says -1, or it cannot be true."""
        column = self.table[name]
        values = (column.fill_null(UNKNOWN) if column.null_count() else column).to_numpy()
        return np.where((values >= 0) & (values <= LARGEST_PLAUSIBLE), values, UNKNOWN)

    def seconds(self, name: str) -> Floats:
        """A time's values; not a number where it is unknown."""
        values = self.table[name].to_numpy()
        return np.where((values >= 0) & (values <= LARGEST_PLAUSIBLE), values, np.nan)

    def total(self, module: Module, names: Names) -> Ints:
        """The sum of counters, where they are known."""
        counts = np.zeros(self.table.height, np.int64)
        for name in names:
            counts += self.counter(module.counter_name(name)).clip(0)
        return counts


def _counts(read: Values, module: Module) -> dict[str, Ints]:
    """How often each kind of call was made."""
    kinds = {
        "open": module.opens, "seek": module.seeks, "stat": module.stats, "sync": module.syncs,
        "metadata": module.other_metadata,
    }  # fmt: skip
    counts = {kind: read.total(module, names) for kind, names in {**module.calls, **kinds}.items()}
    opened = counts["open"] - read.total(module, module.not_opens)
    return counts | {"open": opened.clip(0)}


def _labels(module: Module, kinds: Sequence[str], kind: Ints) -> tuple[pl.Series, pl.Series]:
    """The layer and the operation of rows of these kinds."""
    layer = np.full(len(kind), LAYERS.index(module.layer))
    operation = np.array([OPERATIONS.index(name) for name in kinds], np.int64)
    return _LAYERS[layer], _OPERATIONS[operation[kind]]


def _nullable(name: str, values: Ints) -> pl.Series:
    """Values with null for UNKNOWN."""
    series = pl.Series(name, values, dtype=pl.Int64)
    return series.zip_with(pl.Series(values >= 0), pl.Series([None], dtype=pl.Int64))


def slowest_ranks(trace: Trace) -> pl.DataFrame:
    """Return the slowest rank of each shared file and layer, and its seconds there."""
    tables = [_NO_TOTALS.select("file", "rank", "layer", "seconds")]
    for name, module in MODULES.items():
        seconds, rank = (
            module.counter_name("F_SLOWEST_RANK_TIME"),
            module.counter_name("SLOWEST_RANK"),
        )
        if name in trace.counters and {seconds, rank} <= set(trace.counters[name].columns):
            tables.append(
                trace.counters[name]
                .filter(pl.col("rank") < 0, pl.col(seconds).is_between(0, LARGEST_PLAUSIBLE))
                .select(
                    pl.col("file").cast(pl.UInt32),
                    pl.col(rank).cast(pl.Int32).alias("rank"),
                    pl.lit(module.layer).cast(Layer).alias("layer"),
                    pl.col(seconds).cast(pl.Float64).alias("seconds"),
                )
            )
    return pl.concat(tables)


def counter_sizes(trace: Trace) -> pl.DataFrame:
    """Return how many reads and writes fall into each size bin, by file and layer."""
    tables = [_NO_SIZES]
    for name, module in MODULES.items():
        if name in trace.counters and module.sizes is not None:
            tables.append(_module_sizes(trace.counters[name], module))
    return pl.concat(tables)


def _module_sizes(table: pl.DataFrame, module: Module) -> pl.DataFrame:
    read = Values(table)
    names = [
        module.size_counter(direction, size.counter)
        for direction in module.calls
        for size in SIZE_BINS
    ]
    counts = np.stack([read.counter(name) for name in names])
    place, row = np.nonzero(counts > 0)
    kind, number = np.divmod(place, len(SIZE_BINS))
    return pl.DataFrame(
        [
            table["file"][row],
            *_labels(module, list(module.calls), kind),
            pl.Series("bin", number.astype(np.uint8)),
            pl.Series("count", counts[place, row]),
        ]
    )
