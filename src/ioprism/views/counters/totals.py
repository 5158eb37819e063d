"""Darshan's counters in the shape of event totals, so that analyses need not tell them apart.

One row per file, rank, layer and operation: operations, bytes, seconds. Darshan gives one
time for all metadata calls of a file: it stands in the row of operation `metadata`, and the
rows of single kinds (open, stat, …) have no time.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ioprism.formats.darshan.meaning import MODULES, Module, Names
from ioprism.model.schema import Layer, Operation
from ioprism.model.sizes import LARGEST_PLAUSIBLE, SIZE_BINS
from ioprism.model.trace import Trace

# Operations that have a time of their own; that of all metadata calls stands with `metadata`.
TIMED = ("read", "write", "metadata")

_TOTALS = pl.Schema(
    {
        "file": pl.UInt32(),
        "rank": pl.Int32(),
        "layer": Layer,
        "operation": Operation,
        "operations": pl.Int64(),
        "bytes": pl.Int64(),
        "seconds": pl.Float64(),
    }
)
_SIZES = pl.Schema(
    {
        "file": pl.UInt32(),
        "layer": Layer,
        "operation": Operation,
        "bin": pl.UInt8(),
        "count": pl.Int64(),
    }
)


def counter_totals(trace: Trace) -> pl.DataFrame:
    """Return operations, bytes and seconds by file, rank (-1: shared), layer and operation."""
    tables = [_TOTALS.to_frame()]
    for name, module in MODULES.items():
        if name in trace.counters:
            tables.extend(_module_totals(trace.counters[name], module))
    return pl.concat(tables)


def _module_totals(table: pl.DataFrame, module: Module) -> Iterator[pl.DataFrame]:
    for operation, counts in _counts(module).items():
        moved = module.bytes(operation) if operation in module.calls else None
        took = module.seconds(operation) if operation in TIMED else None
        rows = table.select(
            "file",
            "rank",
            pl.lit(module.layer, dtype=Layer).alias("layer"),
            pl.lit(operation, dtype=Operation).alias("operation"),
            counts.cast(pl.Int64).alias("operations"),
            _known(moved).cast(pl.Int64).alias("bytes"),
            _known(took).cast(pl.Float64).alias("seconds"),
        )
        yield rows.filter((pl.col("operations") > 0) | (pl.col("seconds") > 0))


def _counts(module: Module) -> dict[str, pl.Expr]:
    """How often each kind of call was made."""
    kinds = {
        "open": module.opens, "seek": module.seeks, "stat": module.stats, "sync": module.syncs,
        "metadata": module.other_metadata,
    }  # fmt: skip
    counts = {kind: _sum(module, names) for kind, names in {**module.calls, **kinds}.items()}
    opened = counts["open"] - _sum(module, module.not_opens)
    return counts | {"open": opened.clip(lower_bound=0)}


def _sum(module: Module, names: Names) -> pl.Expr:
    counts = [_count(module.named(name)) for name in names]
    return pl.sum_horizontal(counts) if counts else pl.lit(0, dtype=pl.Int64)


def _count(name: str) -> pl.Expr:
    return _known(name).fill_null(0)


def _known(name: str | None) -> pl.Expr:
    """A counter's value; null where Darshan says -1, not available, or it cannot be true."""
    if name is None:
        return pl.lit(None)
    return pl.when(pl.col(name).is_between(0, LARGEST_PLAUSIBLE)).then(pl.col(name))


def counter_sizes(trace: Trace) -> pl.DataFrame:
    """Return how many reads and writes fall into each size bin, by file and layer."""
    tables = [_SIZES.to_frame()]
    for name, module in MODULES.items():
        if name in trace.counters and module.sizes is not None:
            tables.extend(_module_sizes(trace.counters[name], module))
    return pl.concat(tables)


def _module_sizes(table: pl.DataFrame, module: Module) -> Iterator[pl.DataFrame]:
    for direction in module.calls:
        for number, size in enumerate(SIZE_BINS):
            counted = table.select(
                "file",
                pl.lit(module.layer, dtype=Layer).alias("layer"),
                pl.lit(direction, dtype=Operation).alias("operation"),
                pl.lit(number, dtype=pl.UInt8).alias("bin"),
                _count(module.size_counter(direction, size.counter)).alias("count"),
            )
            yield counted.filter(pl.col("count") > 0)
