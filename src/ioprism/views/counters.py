"""A trace's counters as the columns that rules judge, and in the shape of event totals.

Totals have one row per file, rank, layer and operation: operations, bytes, seconds. Darshan gives
one time for all metadata calls of a file: it stands in the row of operation `metadata`, and the
rows of single kinds (open, stat, …) have no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import nullable
from ioprism.formats.darshan.meaning import MODULES, Module, Names
from ioprism.model.schema import OPERATIONS, Layer, Operation
from ioprism.model.trace import LARGEST_PLAUSIBLE, LAYERS, SIZE_BINS, Trace
from ioprism.model.usage import DIRECTIONS, EVERYONE, NAMELESS, HeatMap, Moves, RankLoad, Usage

_ENTRY = ("file", "rank")


@dataclass(frozen=True, slots=True, eq=False)
class TableCounters:
    """Counter tables, column by column."""

    tables: Mapping[str, pl.DataFrame]

    def columns(self, module: str) -> TableColumns:
        """Return a module's records, column by column."""
        return TableColumns(self.tables[module])

    def height(self, module: str) -> int:
        """How many records a module has."""
        return self.tables[module].height

    def heat_maps(self) -> dict[str, list[HeatMap]]:
        """Return when each rank moved how many bytes, by layer."""
        maps: dict[str, list[HeatMap]] = {}
        if "HEATMAP" in self.tables:
            table = self.tables["HEATMAP"].filter(pl.col("layer").is_not_null())
            rows = table.select("layer", "rank", "bin_width", "read", "write").iter_rows()
            for layer, *values in rows:
                maps.setdefault(str(layer), []).append(HeatMap(*values))
        return maps


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The columns of one counter table."""

    table: pl.DataFrame

    @property
    def files(self) -> list[int]:
        """The row of each record's file."""
        return self.table["file"].cast(pl.Int64).fill_null(NAMELESS).to_list()

    @property
    def ranks(self) -> list[int]:
        """The rank of each record; -1 for all together."""
        return self.table["rank"].to_list()

    def column(self, name: str) -> list[Any] | None:
        """One value per record, or None where the counter is missing."""
        if name not in self.table.columns:
            return None
        values = self.table[name]
        return None if values.null_count() == len(values) and len(values) else values.to_list()


def event_usages(
    stitched: pl.DataFrame, touched: pl.DataFrame, *, without: Sequence[int]
) -> Iterator[Usage]:
    """Turn per-call data into columns: one usage per layer, without console streams."""
    known = stitched.with_columns(
        pl.col("file").cast(pl.Int64).fill_null(NAMELESS), pl.col("rank").fill_null(EVERYONE)
    )
    known = known.filter(~pl.col("file").is_in(list(without)))
    covered = (
        touched.with_columns(pl.col("file").cast(pl.Int64).fill_null(NAMELESS))
        .group_by("layer", "file", "operation")
        .agg((pl.col("high") - pl.col("low")).sum().alias("covered"))
    )
    for layer in known["layer"].unique().sort().to_list():
        yield _usage(str(layer), known.filter(layer=layer), covered.filter(layer=layer))


def _usage(layer: str, rows: pl.DataFrame, covered: pl.DataFrame) -> Usage:
    entries = rows.select(_ENTRY).unique(maintain_order=True)

    def of(operation: str) -> pl.DataFrame:
        chosen = rows.filter(operation=operation).drop("layer", "operation")
        return entries.join(chosen, on=_ENTRY, how="left", maintain_order="left")

    def counts(operation: str) -> list[int]:
        return of(operation)["operations"].fill_null(0).to_list()

    data = {d: of(d) for d in DIRECTIONS}
    syncs = of("sync")
    return Usage(
        layer=layer,
        file=entries["file"].to_list(),
        rank=entries["rank"].to_list(),
        moves={d: _moves(data[d], covered.filter(operation=d)) for d in DIRECTIONS},
        metadata_seconds=_metadata_seconds(entries, rows),
        opens=counts("open"),
        seeks=counts("seek"),
        stats=counts("stat"),
        syncs=syncs["operations"].fill_null(0).to_list(),
        sync_seconds=syncs["seconds"].fill_null(0.0).to_list(),
        misaligned=_count_misaligned(data["read"], data["write"]),
    )


def _metadata_seconds(entries: pl.DataFrame, rows: pl.DataFrame) -> list[float]:
    others = rows.filter(~pl.col("operation").is_in([*DIRECTIONS, "sync"]))
    sums = others.group_by(_ENTRY).agg(pl.col("seconds").sum())
    joined = entries.join(sums, on=_ENTRY, how="left", maintain_order="left")
    return joined["seconds"].fill_null(0.0).to_list()


def _count_misaligned(read: pl.DataFrame, write: pl.DataFrame) -> list[int] | None:
    if not _has_offsets(read) and not _has_offsets(write):
        return None
    return (read["misaligned"].fill_null(0) + write["misaligned"].fill_null(0)).to_list()


def _has_offsets(table: pl.DataFrame) -> bool:
    """Whether it is known for most calls where in the file they go."""
    return _is_rare(table, "unplaced") and table["operations"].sum() > 0


def _is_rare(table: pl.DataFrame, what: str) -> bool:
    return bool(2 * table[what].sum() <= table["operations"].sum())


def _moves(table: pl.DataFrame, covered: pl.DataFrame) -> Moves:
    filled = table.with_columns(pl.exclude(*_ENTRY).fill_null(0))
    column = {name: filled[name].to_list() for name in filled.columns}
    placed = _has_offsets(table) or not table["operations"].sum()
    ordered = placed and _is_rare(table, "unordered")
    collective = table["uncollected"].sum() < table["operations"].sum()
    extent = filled.join(covered, on="file", how="left", maintain_order="left")["covered"]
    independent = filled["operations"] - filled["collective"] - filled["nonblocking"]
    return Moves(
        column["operations"],
        column["bytes"],
        column["seconds"],
        small=column["small"],
        forward=column["forward"] if ordered else None,
        consecutive=column["consecutive"] if ordered else None,
        first=column["first"] if ordered else None,
        extent=extent.fill_null(0).to_list() if placed else None,
        collective=column["collective"] if collective else None,
        independent=independent.clip(0).to_list() if collective else None,
        nonblocking=column["nonblocking"] if collective else None,
        begin=column["begin"],
    )


def rank_loads(totals: pl.DataFrame) -> dict[str, RankLoad]:
    """Turn totals by layer, rank and operation into what each rank did."""
    loads = {}
    for layer in totals["layer"].unique().sort().to_list():
        moved: dict[int, dict[str, int]] = {}
        calls: dict[int, dict[str, int]] = {}
        seconds: dict[int, float] = {}
        rows = totals.filter(layer=layer).select(
            "rank", "operation", "operations", "bytes", "seconds"
        )
        rows = rows.sort("rank", "operation")  # ties between ranks go to the lowest
        for rank, operation, operations, size, time in rows.iter_rows():
            seconds[rank] = seconds.get(rank, 0.0) + time
            if operation in DIRECTIONS:
                moved.setdefault(rank, {})[operation] = size
                calls.setdefault(rank, {})[operation] = operations
        loads[str(layer)] = RankLoad(moved, calls, seconds)
    return loads


def target_bytes(load: pl.DataFrame) -> dict[str, dict[int, int]]:
    """Turn the load of storage targets into bytes by layer and target."""
    by_target: dict[str, dict[int, int]] = {}
    sums = load.group_by("layer", "target").agg(pl.col("bytes").sum())
    for layer, target, size in sums.iter_rows():
        by_target.setdefault(str(layer), {})[target] = size
    return by_target


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
    size = np.stack(moved)[kind, row]
    return pl.DataFrame(
        [
            table["file"][row],
            table["rank"][row],
            *_labels(module, list(counts), kind),
            pl.Series("operations", operations[kind, row], dtype=pl.Int64),
            nullable(size, size == UNKNOWN).alias("bytes"),
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
