"""Characteristics by rank, file, host and storage target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.engine.base import Engine
from ioprism.formats.darshan.decode import CALLS
from ioprism.formats.darshan.meaning import MODULES, Module
from ioprism.model.result import pick
from ioprism.model.trace import LARGEST_PLAUSIBLE, Trace, deepest
from ioprism.views.counters import counter_totals
from ioprism.views.totals import TargetLoad, Totals

_OPERATION = pl.col("operation").cast(pl.String)
# Steps that a program names itself are not calls: the I/O inside them is counted by its layer.
# Nor are calls without I/O, such as waiting for a child.
_CALLS = (pl.col("layer") != "application") & (_OPERATION != "other")
_READ, _WRITE = _OPERATION == "read", _OPERATION == "write"
_DATA = _READ | _WRITE
_MOVED = (
    pl.col("bytes").filter(_READ).sum().alias("bytes_read"),
    pl.col("bytes").filter(_WRITE).sum().alias("bytes_written"),
)
_SUMS = (
    pl.col("operations").filter(_READ).sum().alias("reads"),
    pl.col("operations").filter(_WRITE).sum().alias("writes"),
    pl.col("operations").filter(~_DATA).sum().alias("metadata"),
    *_MOVED,
    pl.col("seconds").sum(),
)


def by_file(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return calls, bytes and seconds of every file and layer, those that take longest first."""
    totals = counter_totals(trace).drop("rank")
    if trace.partitions:
        (calls,) = engine.run(trace, Totals(("file", "layer", "operation")))
        counted = totals["layer"].unique()
        extra = calls.filter(~pl.col("layer").is_in(counted.implode()))
        totals = pl.concat([totals, extra], how="diagonal_relaxed")
    amounts = _amounts(totals.filter(_CALLS), "file", "layer")
    names = trace.files.select("file", "path")
    return amounts.join(names, on="file", how="left", maintain_order="left")


def by_rank(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return calls, bytes and seconds of every rank and layer, in order of ranks."""
    amounts = _amounts(_rank_totals(trace, engine).filter(_CALLS), "rank", "layer")
    return amounts.sort("rank", "layer", nulls_last=True)


def _rank_totals(trace: Trace, engine: Engine) -> pl.DataFrame:
    if not trace.partitions:
        return counter_totals(trace).filter(pl.col("rank") >= 0)
    (totals,) = engine.run(trace, Totals(("rank", "layer", "operation")))
    return totals


def _amounts(totals: pl.DataFrame, *keys: str) -> pl.DataFrame:
    sums = totals.group_by(keys).agg(_SUMS)
    return sums.sort("seconds", *keys, descending=[True, *(False for _ in keys)], nulls_last=True)


_AMOUNTS = ("operations", "bytes", "seconds")
_RATES = {"operations": pl.Int64, "bytes_read": pl.Int64, "bytes_written": pl.Int64,
          "seconds": pl.Float64, "rate": pl.Float64}  # fmt: skip
_NO_TARGETS = pl.DataFrame(schema={"target": pl.Int64, **_RATES})
_NO_HOSTS = pl.DataFrame(schema={"host": pl.String, **_RATES})


def by_target(trace: Trace, engine: Engine, *, files: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row per storage target that holds files; none where no layout is known.

    Traced calls count on the targets that hold their bytes. From counters, a file's calls are
    shared evenly among the targets that its bytes reach. `files` is the part of the trace's file
    table to look at, such as one file system; by default all of it.
    """
    striping = (
        (trace.files if files is None else files)
        .filter((pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0))
        .select("file", "stripe_size", "targets")
    )
    if not striping.height:
        return _NO_TARGETS
    if trace.partitions:
        (moved,) = engine.run(trace, TargetLoad(striping))
        loads = _at_deepest(moved)
    else:
        loads = _from_counters(trace, striping)
    known = striping.select(target="targets").explode("target").unique()
    return _rates(loads, "target", of=known)


def by_host(trace: Trace, engine: Engine) -> pl.DataFrame:
    """Return one row per node; none where the trace does not name the nodes of ranks."""
    hosts = trace.processes.drop_nulls("host").unique("rank", keep="first").select("rank", "host")
    if hosts["host"].n_unique() < 2:
        return _NO_HOSTS
    loads = _at_deepest(_rank_totals(trace, engine).filter(_DATA)).join(hosts, on="rank")
    return _rates(loads, "host", of=hosts.select("host").unique())


def _at_deepest(moved: pl.DataFrame) -> pl.DataFrame:
    present = moved.filter(_DATA)["layer"].cast(pl.String).unique().to_list()
    return moved.filter(pl.col("layer").cast(pl.String).is_in(deepest(present)))


def _from_counters(trace: Trace, striping: pl.DataFrame) -> pl.DataFrame:
    moved = _at_deepest(counter_totals(trace).filter(_DATA))
    reached = (pl.col("bytes") + pl.col("stripe_size") - 1) // pl.col("stripe_size")
    parts = pl.min_horizontal(reached.clip(1), pl.col("targets").list.len().cast(pl.Int64))
    return (
        moved.group_by("file", "operation", maintain_order=True)
        .agg(pl.col(*_AMOUNTS).sum())
        .join(striping, on="file", maintain_order="left")
        .with_columns(parts=parts, target=pl.col("targets").list.head(parts))
        .with_columns(
            (pl.col("operations", "bytes") / pl.col("parts")).round().cast(pl.Int64),
            pl.col("seconds") / pl.col("parts"),
        )
        .explode("target")
    )


def _rates(loads: pl.DataFrame, key: str, *, of: pl.DataFrame) -> pl.DataFrame:
    """Sum by key; those of `of` without a call are there too."""
    sums = loads.group_by(key, maintain_order=True).agg(
        pl.col("operations").sum(), *_MOVED, pl.col("seconds").sum()
    )
    every = of.join(sums, on=key, how="left").with_columns(pl.exclude(key).fill_null(0))
    moved = pl.col("bytes_read") + pl.col("bytes_written")
    rate = pl.when(pl.col("seconds") > 0).then(moved / pl.col("seconds"))
    return every.with_columns(rate=rate).sort(key)


MOST_COMMON = 4  # as many as Darshan keeps for each record
MOST_GROUPS = 10  # kinds of files that are listed; the rest is one row
# The modules that Darshan estimates performance for.
ESTIMATED = ("POSIX", "MPI-IO", "STDIO", "DFS", "DAOS")
OTHER = "other"


@dataclass(frozen=True, slots=True)
class CommonSize:
    """A size, or a stride between requests, and how often it occurs at least."""

    layer: str
    bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class FileGroup:
    """What was done to the files of one kind, or of one mount."""

    name: str  # an extension or a mount point; empty where files have none
    filesystem: str | None
    files: int
    operations: int
    bytes_read: int
    bytes_written: int
    time: float  # seconds in calls, over all processes


@dataclass(frozen=True, slots=True)
class PerformanceEstimate:
    """How fast a job moved its data, as Darshan estimates it (`agg_perf_by_slowest`).

    The time is that of the slowest rank on files of its own, and of the slowest rank of each
    shared file.
    """

    layer: str
    bytes: int
    seconds: float
    rate: float  # bytes per second


@dataclass(frozen=True, slots=True)
class MpiCall:
    """How often all ranks made a call, and how long they were in it."""

    name: str
    count: int
    time: float


@dataclass(frozen=True, slots=True)
class MpiTime:
    """Time that ranks spent communicating, and not computing or in I/O."""

    ranks: int
    hosts: int | None
    time: float  # seconds in MPI calls, over all ranks; I/O is not among them
    waiting: float | None  # of it, waiting for others in collective calls; None: not recorded
    share: float | None  # of the run time of all ranks
    calls: tuple[MpiCall, ...]  # those that took longest


@dataclass(frozen=True, slots=True)
class Details:
    """What is behind the totals of a job; empty where a trace does not tell."""

    common_sizes: tuple[CommonSize, ...] = ()
    strides: tuple[CommonSize, ...] = ()
    file_types: tuple[FileGroup, ...] = ()
    mounts: tuple[FileGroup, ...] = ()
    performance: tuple[PerformanceEstimate, ...] = ()
    mpi: MpiTime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return pick(self, *self.__dataclass_fields__)


# Numbers behind a dot count ranks or steps; they are one type.
_TYPE = pl.col("extension").fill_null("").str.replace(r"^\d+$", "#")


def describe_details(trace: Trace, counted: pl.DataFrame, exact_sizes: pl.DataFrame) -> Details:
    """Return what is behind the totals.

    Args:
        trace: of the job.
        counted: operations, bytes and seconds by file and operation, each byte once.
        exact_sizes: how often events have each size, by layer; those of counters come first.
    """
    sizes = tuple(_most_common(trace, "ACCESS"))
    return Details(
        common_sizes=sizes or tuple(_common_in_events(exact_sizes)),
        strides=tuple(_most_common(trace, "STRIDE")),
        file_types=_groups(trace, counted, _TYPE),
        mounts=_groups(trace, counted, pl.col("mount"), "filesystem"),
        performance=tuple(_estimates(trace)),
        mpi=_mpi_time(trace),
    )


def _most_common(trace: Trace, what: str) -> Iterator[CommonSize]:
    """Add up the four most frequent sizes that Darshan keeps for each record."""
    for name, module in MODULES.items():
        if name not in trace.counters:
            continue
        table = trace.counters[name]
        pairs = [
            table.select(bytes=module.counter_name(f"{what}{n}_{what}"), count=count)
            for n in range(1, 5)
            if (count := module.counter_name(f"{what}{n}_COUNT")) in table.columns
            and module.counter_name(f"{what}{n}_{what}") in table.columns
        ]
        if pairs:
            yield from _top(pl.concat(pairs), module.layer)


def _top(pairs: pl.DataFrame, layer: str) -> Iterator[CommonSize]:
    possible = pl.col("bytes", "count").is_between(0, LARGEST_PLAUSIBLE)
    sums = pairs.filter(possible, pl.col("count") > 0).group_by("bytes").agg(pl.sum("count"))
    best = sums.sort("count", "bytes", descending=True).head(MOST_COMMON)
    for size, count in best.select("bytes", "count").iter_rows():
        yield CommonSize(layer, size, count)


def _common_in_events(sizes: pl.DataFrame) -> Iterator[CommonSize]:
    for (layer,), pairs in sorted(sizes.group_by("layer"), key=lambda group: str(group[0])):
        yield from _top(pairs.drop("layer"), str(layer))


def _groups(trace: Trace, counted: pl.DataFrame, key: pl.Expr, *more: str) -> tuple[FileGroup, ...]:
    """Sum by a property of files, largest first; data sets count with their file."""
    roots = trace.files.select("file", root=pl.coalesce("parent", "file"))
    kinds = trace.files.filter(pl.col("kind") == "file").select(
        *more, root="file", name=key.str.to_lowercase() if not more else key
    )
    sums = (
        counted.join(roots, on="file")
        .join(kinds.drop_nulls("name"), on="root")
        .group_by("name", *more)
        .agg(
            pl.col("root").n_unique().alias("files"),
            pl.col("operations").sum(),
            *_MOVED,
            pl.col("seconds").sum().alias("time"),
        )
        .sort(
            pl.col("bytes_read") + pl.col("bytes_written"), "files", "time", "name", descending=True
        )
    )
    listed, rest = sums.head(MOST_GROUPS), sums.slice(MOST_GROUPS)
    if rest.height:
        row = rest.select(pl.lit(OTHER).alias("name"), pl.exclude("name", *more).sum())
        listed = pl.concat([listed, row], how="diagonal_relaxed")
    return tuple(FileGroup(**{"filesystem": None, **row}) for row in listed.iter_rows(named=True))


def _estimates(trace: Trace) -> Iterator[PerformanceEstimate]:
    for name in ESTIMATED:
        if name in trace.counters:
            yield from _estimate(trace.counters[name], MODULES[name])


def _estimate(table: pl.DataFrame, module: Module) -> Iterator[PerformanceEstimate]:
    moved = sum(int(table[module.bytes(way)].sum()) for way in ("read", "write"))
    seconds = pl.sum_horizontal(module.seconds(way) for way in ("read", "write", "metadata"))
    own = table.filter(pl.col("rank") >= 0).group_by("rank").agg(seconds.sum().alias("seconds"))
    shared = table.filter(pl.col("rank") < 0)[module.counter_name("F_SLOWEST_RANK_TIME")]
    slowest = float(own.select(pl.col("seconds").max().fill_null(0.0)).item()) + float(shared.sum())
    if moved > 0 and slowest > 0:
        yield PerformanceEstimate(module.layer, moved, slowest, moved / slowest)


def _mpi_time(trace: Trace) -> MpiTime | None:
    table = trace.counters.get("APMPI")
    if table is None or not table.height:
        return None
    seconds = float(table["MPI_TOTAL_COMM_TIME"].sum())
    waiting = float(table["MPI_TOTAL_COMM_SYNC_TIME"].sum())
    calls = (
        MpiCall(f"MPI_{call.capitalize()}", count, float(table[f"MPI_{call}_TOTAL_TIME"].sum()))
        for call in CALLS
        if (count := int(table[f"MPI_{call}_CALL_COUNT"].sum())) > 0
    )
    whole = (trace.job.runtime or 0.0) * (trace.job.ranks or 0)
    return MpiTime(
        ranks=table["rank"].n_unique(),
        hosts=table["host"].drop_nulls().n_unique() or None,
        time=seconds,
        waiting=waiting if waiting > 0 else None,
        share=seconds / whole if whole > 0 else None,
        calls=tuple(sorted(calls, key=lambda call: -call.time)[:MOST_COMMON]),
    )
