"""How much I/O a job did, by whom, through which interface, with which request sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from ioprism.engine.base import Engine
from ioprism.model.trace import Job, Trace
from ioprism.views.calls.sizes import SIZE_BINS, SizeBin
from ioprism.views.calls.totals import RequestSizes, Totals
from ioprism.views.counters.totals import counter_sizes, counter_totals

# Interfaces that talk to the system; the others call one of them in the end.
SYSTEM_LAYERS = ("posix", "stdio", "daos")
# A file's calls are counted where they are deepest: above the system in this order.
UPPER_LAYERS = ("dfs", "mpiio")
DATA_LAYERS = ("hdf5", "pnetcdf", "netcdf")


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls, the bytes they moved, and the seconds they took, summed over processes."""

    operations: int
    bytes: int
    time: float


@dataclass(frozen=True, slots=True)
class SizeCount:
    """How many requests have a size in this bin."""

    bin: SizeBin
    count: int


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The numbers that describe a job's I/O."""

    job: Job
    processes: int | None
    hosts: int | None
    files: int
    io_time: float  # seconds all processes spent in their outermost I/O calls
    total: Amount  # at the deepest layer only
    by_operation: Mapping[str, Amount]  # read, write, metadata: at the deepest layer only
    by_layer: Mapping[str, Mapping[str, Amount]]  # layer -> read, write, metadata, [other]
    request_sizes: Mapping[str, tuple[SizeCount, ...]]  # read, write: at the deepest layer only


def characterise(trace: Trace, engine: Engine) -> Characteristics:
    """Describe a job from its counters, and from its events where it has no counters.

    Bytes that pass through several interfaces are counted once in totals, at the deepest
    interface that the trace shows for each file.
    """
    totals, sizes = _totals_and_sizes(trace, engine)
    deepest = _deepest(totals)
    done = totals.filter(pl.col("operation") != "other")
    counted = done.join(deepest, on=["file", "layer"], how="semi", nulls_equal=True)
    by_operation = _by_operation(counted)
    return Characteristics(
        job=trace.job,
        processes=trace.processes.height or None,
        hosts=trace.processes["host"].drop_nulls().n_unique() or None,
        files=_file_count(trace, totals),
        io_time=_outermost_time(trace, done),
        total=_sum(by_operation.values()),
        by_operation=by_operation,
        by_layer={
            str(layer): _by_operation(totals.filter(layer=layer), with_other=True)
            for layer in totals["layer"].unique().sort().to_list()
        },
        request_sizes=_request_sizes(
            sizes.join(deepest, on=["file", "layer"], how="semi", nulls_equal=True)
        ),
    )


def _totals_and_sizes(trace: Trace, engine: Engine) -> tuple[pl.DataFrame, pl.DataFrame]:
    totals, sizes = counter_totals(trace), counter_sizes(trace)
    layers = set(totals["layer"].unique().to_list())
    if trace.partitions and not {"posix", "stdio"} & layers:
        keys = ("file", "layer", "operation")
        event_totals, event_sizes = engine.run(trace, Totals(keys), RequestSizes(keys))
        missing = ~pl.col("layer").is_in(sorted(layers))
        totals = pl.concat([totals.drop("rank"), event_totals.filter(missing)], how="diagonal")
        sizes = pl.concat([sizes, event_sizes.filter(missing)], how="diagonal")
    return totals, sizes


def _deepest(totals: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of file and layer whose calls no deeper layer repeats."""
    present = totals.select("file", "layer").unique()
    deepest = present.filter(pl.col("layer").is_in([*SYSTEM_LAYERS, "application", "other"]))
    for layer in UPPER_LAYERS:
        alone = present.filter(layer=layer).join(deepest, on="file", how="anti", nulls_equal=True)
        deepest = pl.concat([deepest, alone])
    return deepest if deepest.height else present.filter(pl.col("layer").is_in(DATA_LAYERS))


def _outermost_time(trace: Trace, totals: pl.DataFrame) -> float:
    """Seconds in the interface the program itself called, file by file.

    A collective write waits in MPI-IO for other ranks while POSIX is idle: what the program
    waited for is the time of the outermost interface.
    """
    depth = dict.fromkeys(DATA_LAYERS, 0) | {"mpiio": 1, "dfs": 2}
    parents = trace.files.select("file", "parent")
    timed = (
        totals.filter(pl.col("seconds") > 0)
        .join(parents, on="file", how="left", nulls_equal=True)
        .with_columns(
            root=pl.coalesce("parent", "file"),
            depth=pl.col("layer").cast(pl.String).replace_strict(depth, default=3),
        )
    )
    outermost = pl.col("depth") == pl.col("depth").min().over("root")
    return float(timed.filter(outermost)["seconds"].sum())


def _by_operation(totals: pl.DataFrame, *, with_other: bool = False) -> dict[str, Amount]:
    """Add up reads, writes and metadata calls; what is no I/O at all only if asked for."""
    group = pl.col("operation").cast(pl.String)
    moves = group.is_in(["read", "write", "other"])
    sums = totals.group_by(
        pl.when(moves).then(group).otherwise(pl.lit("metadata")).alias("group")
    ).agg(pl.col("operations", "bytes", "seconds").sum())
    found = {name: Amount(o, b, s) for name, o, b, s in sums.iter_rows()}
    amounts = {name: found.get(name, Amount(0, 0, 0.0)) for name in ("read", "write", "metadata")}
    return {**amounts, "other": found["other"]} if with_other and "other" in found else amounts


def _sum(amounts: Iterable[Amount]) -> Amount:
    listed = list(amounts)
    return Amount(
        sum(amount.operations for amount in listed),
        sum(amount.bytes for amount in listed),
        sum(amount.time for amount in listed),
    )


def _request_sizes(sizes: pl.DataFrame) -> dict[str, tuple[SizeCount, ...]]:
    counted = {
        (str(operation), number): count
        for operation, number, count in sizes.group_by("operation", "bin")
        .agg(pl.col("count").sum())
        .iter_rows()
    }
    return {
        operation: tuple(
            SizeCount(size_bin, counted.get((operation, number), 0))
            for number, size_bin in enumerate(SIZE_BINS)
        )
        for operation in ("read", "write")
    }


def _file_count(trace: Trace, totals: pl.DataFrame) -> int:
    """Files that were touched, without console streams and data sets inside files."""
    touched = totals.select("file").unique()
    return trace.files.filter(kind="file").join(touched, on="file", how="semi").height
