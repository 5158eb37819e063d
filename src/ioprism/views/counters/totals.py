"""Darshan's counters in the shape of event totals, so that analyses need not tell them apart.

One row per file, rank, layer and operation: operations, bytes, seconds. Darshan gives one
time for all metadata calls of a file: it stands in the row of operation `metadata`, and the
rows of single kinds (open, stat, …) have no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from ioprism.model.schema import Layer, Operation
from ioprism.model.trace import Trace
from ioprism.views.calls.sizes import SIZE_BINS

Names = tuple[str, ...]

LARGEST = 2**60  # beyond it a count or a size is damage


@dataclass(frozen=True, slots=True)
class Module:
    """Which counters of a Darshan module mean what."""

    layer: str
    counts: Mapping[str, Names]  # operation -> counters to add up
    bytes: Mapping[str, str] = field(default_factory=dict)  # operation -> counter
    seconds: Mapping[str, str] = field(default_factory=dict)
    sizes: str | None = None  # what stands between the direction and the bin: `…_READ_0_100`


_BINS = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M",
         "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")  # fmt: skip


def _moves(prefix: str) -> dict[str, str]:
    return {"read": f"{prefix}_BYTES_READ", "write": f"{prefix}_BYTES_WRITTEN"}


def _times(prefix: str) -> dict[str, str]:
    names = {"read": "READ", "write": "WRITE", "metadata": "META"}
    return {operation: f"{prefix}_F_{name}_TIME" for operation, name in names.items()}


def _of(prefix: str, names: str) -> Names:
    return tuple(f"{prefix}_{name}" for name in names.split())


MODULES: Mapping[str, Module] = {
    "POSIX": Module(
        "posix",
        {
            "read": ("POSIX_READS",),
            "write": ("POSIX_WRITES",),
            "open": ("POSIX_OPENS",),  # filenos and dups are counted in it
            "seek": ("POSIX_SEEKS",),
            "stat": ("POSIX_STATS",),
            "sync": _of("POSIX", "FSYNCS FDSYNCS"),
            "metadata": _of("POSIX", "MMAPS RENAME_SOURCES"),
        },
        _moves("POSIX"),
        _times("POSIX"),
        "POSIX_SIZE_{}_",
    ),
    "STDIO": Module(
        "stdio",
        {
            "read": ("STDIO_READS",),
            "write": ("STDIO_WRITES",),
            "open": _of("STDIO", "OPENS FDOPENS"),
            "seek": ("STDIO_SEEKS",),
            "sync": ("STDIO_FLUSHES",),
        },
        _moves("STDIO"),
        _times("STDIO"),
    ),
    "MPI-IO": Module(
        "mpiio",
        {
            "read": _of("MPIIO", "INDEP_READS COLL_READS SPLIT_READS NB_READS"),
            "write": _of("MPIIO", "INDEP_WRITES COLL_WRITES SPLIT_WRITES NB_WRITES"),
            "open": _of("MPIIO", "INDEP_OPENS COLL_OPENS"),
            "sync": ("MPIIO_SYNCS",),
            "metadata": ("MPIIO_VIEWS",),
        },
        _moves("MPIIO"),
        _times("MPIIO"),
        "MPIIO_SIZE_{}_AGG_",
    ),
    "H5F": Module(
        "hdf5",
        {"open": ("H5F_OPENS",), "sync": ("H5F_FLUSHES",)},
        seconds={"metadata": "H5F_F_META_TIME"},
    ),
    "H5D": Module(
        "hdf5",
        {
            "read": ("H5D_READS",),
            "write": ("H5D_WRITES",),
            "open": ("H5D_OPENS",),
            "sync": ("H5D_FLUSHES",),
        },
        _moves("H5D"),
        _times("H5D"),
        "H5D_SIZE_{}_AGG_",
    ),
    "PNETCDF_FILE": Module(
        "pnetcdf",
        {
            "open": _of("PNETCDF_FILE", "CREATES OPENS"),
            "sync": ("PNETCDF_FILE_SYNCS",),
            "metadata": _of("PNETCDF_FILE", "REDEFS INDEP_WAITS COLL_WAITS"),
        },
        seconds={"metadata": "PNETCDF_FILE_F_META_TIME"},
    ),
    "PNETCDF_VAR": Module(
        "pnetcdf",
        {
            "read": _of("PNETCDF_VAR", "INDEP_READS COLL_READS NB_READS"),
            "write": _of("PNETCDF_VAR", "INDEP_WRITES COLL_WRITES NB_WRITES"),
            "open": ("PNETCDF_VAR_OPENS",),
        },
        _moves("PNETCDF_VAR"),
        _times("PNETCDF_VAR"),
        "PNETCDF_VAR_SIZE_{}_AGG_",
    ),
    "DFS": Module(
        "dfs",
        {
            "read": _of("DFS", "READS READXS"),  # nonblocking ones are counted in them
            "write": _of("DFS", "WRITES WRITEXS"),
            "open": _of("DFS", "OPENS GLOBAL_OPENS LOOKUPS"),
            "stat": _of("DFS", "STATS GET_SIZES"),
            "metadata": _of("DFS", "PUNCHES REMOVES"),
        },
        _moves("DFS"),
        _times("DFS"),
        "DFS_SIZE_{}_",
    ),
    "DAOS": Module(
        "daos",
        {
            "read": _of("DAOS", "OBJ_FETCHES ARRAY_READS KV_GETS"),
            "write": _of("DAOS", "OBJ_UPDATES ARRAY_WRITES KV_PUTS"),
            "open": _of("DAOS", "OBJ_OPENS ARRAY_OPENS KV_OPENS"),
            "stat": _of("DAOS", "ARRAY_GET_SIZES ARRAY_STATS"),
            "metadata": _of("DAOS", "OBJ_PUNCHES OBJ_DKEY_PUNCHES OBJ_AKEY_PUNCHES "
                            "OBJ_DKEY_LISTS OBJ_AKEY_LISTS OBJ_RECX_LISTS ARRAY_SET_SIZES "
                            "ARRAY_PUNCHES ARRAY_DESTROYS KV_REMOVES KV_LISTS KV_DESTROYS"),
        },
        _moves("DAOS"),
        _times("DAOS"),
        "DAOS_SIZE_{}_",
    ),
}  # fmt: skip

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
    for operation in dict.fromkeys([*module.counts, *module.seconds]):
        counts = [_count(name) for name in module.counts.get(operation, ())]
        rows = table.select(
            "file",
            "rank",
            pl.lit(module.layer, dtype=Layer).alias("layer"),
            pl.lit(operation, dtype=Operation).alias("operation"),
            (pl.sum_horizontal(counts) if counts else pl.lit(0)).cast(pl.Int64).alias("operations"),
            _known(module.bytes.get(operation)).cast(pl.Int64).alias("bytes"),
            _known(module.seconds.get(operation)).cast(pl.Float64).alias("seconds"),
        )
        yield rows.filter((pl.col("operations") > 0) | (pl.col("seconds") > 0))


def _count(name: str) -> pl.Expr:
    return _known(name).fill_null(0)


def _known(name: str | None) -> pl.Expr:
    """A counter's value; null where Darshan says -1, not available, or it cannot be true."""
    if name is None:
        return pl.lit(None)
    return pl.when(pl.col(name).is_between(0, LARGEST)).then(pl.col(name))


def counter_sizes(trace: Trace) -> pl.DataFrame:
    """Return how many reads and writes fall into each size bin, by file and layer."""
    tables = [_SIZES.to_frame()]
    for name, module in MODULES.items():
        if name in trace.counters and module.sizes is not None:
            tables.extend(_module_sizes(trace.counters[name], module.layer, module.sizes))
    return pl.concat(tables)


def _module_sizes(table: pl.DataFrame, layer: str, pattern: str) -> Iterator[pl.DataFrame]:
    for operation in ("read", "write"):
        prefix = pattern.format(operation.upper())
        for number, _ in enumerate(SIZE_BINS):
            counted = table.select(
                "file",
                pl.lit(layer, dtype=Layer).alias("layer"),
                pl.lit(operation, dtype=Operation).alias("operation"),
                pl.lit(number, dtype=pl.UInt8).alias("bin"),
                _count(f"{prefix}{_BINS[number]}").alias("count"),
            )
            yield counted.filter(pl.col("count") > 0)
