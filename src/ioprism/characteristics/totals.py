"""How much I/O a job did, by whom, through which interface, with which request sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from ioprism.characteristics.details import Details, describe_details
from ioprism.engine.base import Engine
from ioprism.model.machine import Ceiling
from ioprism.model.result import Result, pick
from ioprism.model.trace import HEIGHT, LAYERS, SIZE_BINS, UPWARDS, Job, SizeBin, Trace
from ioprism.units import format_bytes, format_counted, format_seconds
from ioprism.views.counters import counter_sizes, counter_totals
from ioprism.views.totals import (
    NO_EXACT_SIZES,
    ExactSizes,
    RequestSizes,
    Totals,
    at_deepest,
    deepest_layers,
    height_of,
)

NOT_INTERFACES = ("application", "other")  # what a program marks itself, and calls without I/O


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls, the bytes they moved, and the seconds they took, summed over processes."""

    operations: int
    bytes: int
    time: float


@dataclass(frozen=True, slots=True)
class Amplification:
    """What a layer makes of the requests of the layer above, on the files of that layer."""

    upper: str
    lower: str
    bytes_above: int
    bytes_below: int
    requests_above: int
    requests_below: int
    extra_read_bytes: int  # read below beyond what was asked for above


@dataclass(frozen=True, slots=True)
class SizeCount:
    """How many requests have a size in this bin."""

    bin: SizeBin
    count: int


@dataclass(frozen=True, slots=True, repr=False)
class Characteristics(Result):
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
    amplification: tuple[Amplification, ...] = ()  # from the program down to storage
    details: Details = field(default_factory=Details)

    @property
    def io_share(self) -> float | None:
        """The part of all ranks' run time that they spend in I/O calls, at most 1."""
        if not self.job.runtime:
            return None
        return min(1.0, self.io_time / (self.job.runtime * (self.job.ranks or self.processes or 1)))

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism characterise --json` says."""
        job = self.job
        return {
            "job": {
                "ranks": job.ranks,
                "processes": self.processes,
                "hosts": self.hosts,
                **pick(
                    job, "runtime", "executable", "start_time", "end_time", "job_id", "metadata"
                ),
            },
            "totals": {
                "io_time": self.io_time,
                "operations": self.total.operations,
                "bytes_read": self.by_operation["read"].bytes,
                "bytes_written": self.by_operation["write"].bytes,
                "files": self.files,
            },
            **pick(self, "by_operation"),
            "by_layer": {
                layer: {
                    **asdict(_sum(amounts.values())),
                    **{k: asdict(v) for k, v in amounts.items()},
                }
                for layer, amounts in self.by_layer.items()
            },
            "request_sizes": {
                direction: [
                    {"low": size.bin.low, "high": size.bin.high, "count": size.count}
                    for size in sizes
                ]
                for direction, sizes in self.request_sizes.items()
            },
            **pick(self, "amplification"),
            **self.details.to_dict(),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per layer and kind of call."""
        rows = [
            {"layer": layer, "kind": kind, **asdict(amount)}
            for layer, amounts in self.by_layer.items()
            for kind, amount in amounts.items()
        ]
        columns = {"layer": pl.String, "kind": pl.String, "operations": pl.Int64,
                   "bytes": pl.Int64, "time": pl.Float64}  # fmt: skip
        return pl.DataFrame(rows, schema=columns)

    def summary(self) -> str:
        """Return the answer in one line."""
        read, write = (format_bytes(self.by_operation[d].bytes) for d in ("read", "write"))
        return (
            f"{read} read, {write} written, {format_counted(self.files, 'file')}, "
            f"{format_seconds(self.io_time)} in I/O calls over all ranks"
        )


_CALL = pl.col("operation").cast(pl.String)
_KIND = (
    pl.when(_CALL.is_in(["read", "write", "other"]))
    .then(_CALL)
    .otherwise(pl.lit("metadata"))
    .alias("kind")
)
_AMOUNTS = pl.col("operations", "bytes", "seconds").sum()
_NOTHING = dict.fromkeys(("read", "write", "metadata"), Amount(0, 0, 0.0))


def characterise(trace: Trace, engine: Engine) -> Characteristics:
    """Describe a job from its counters, and from its events where it has no counters.

    Bytes that pass through several interfaces are counted once in totals, at the deepest
    interface that shows them (see `views/totals.py`).
    """
    totals, sizes, exact_sizes = _totals_and_sizes(trace, engine)
    done = totals.filter(pl.col("operation") != "other")
    deepest = deepest_layers(done, trace)
    counted = at_deepest(done, deepest)
    by_operation = _by_operation(counted)
    return Characteristics(
        job=trace.job,
        processes=trace.population.processes,
        hosts=trace.population.hosts,
        files=_file_count(trace, totals),
        io_time=_outermost_time(trace, done),
        total=_sum(by_operation.values()),
        by_operation=by_operation,
        by_layer=_by_layer(totals),
        request_sizes=_request_sizes(at_deepest(sizes, deepest)),
        amplification=tuple(_amplification(done, trace)),
        details=describe_details(trace, counted, exact_sizes),
    )


def _amplification(totals: pl.DataFrame, trace: Trace) -> Iterator[Amplification]:
    """Compare each layer with the next one below it, on the files that pass both."""
    data = totals.filter(_CALL.is_in(["read", "write"]) & (pl.col("operations") > 0))
    parents = trace.files.select("file", "parent")
    rooted = data.join(parents, on="file", how="left").with_columns(
        root=pl.coalesce("parent", "file"), layer=pl.col("layer").cast(pl.String)
    )
    present = [name for name in UPWARDS if (rooted["layer"] == name).any()]
    for upper in (name for name in reversed(present) if name not in NOT_INTERFACES):
        above = rooted.filter(pl.col("layer") == upper)
        shared = rooted.filter(pl.col("root").is_in(above["root"].implode()))
        lowers = [name for name in shared["layer"].unique() if HEIGHT[name] < HEIGHT[upper]]
        if not lowers:
            continue
        sums = dict(shared.group_by("layer").agg(pl.col("bytes").sum()).iter_rows())
        lower = max(lowers, key=lambda name: (HEIGHT[name], sums[name], name))
        below = shared.filter(pl.col("layer") == lower)
        reads = [int(part.filter(_CALL == "read")["bytes"].sum()) for part in (above, below)]
        yield Amplification(
            upper,
            lower,
            bytes_above=int(above["bytes"].sum()),
            bytes_below=int(below["bytes"].sum()),
            requests_above=int(above["operations"].sum()),
            requests_below=int(below["operations"].sum()),
            extra_read_bytes=max(0, reads[1] - reads[0]),
        )


def _totals_and_sizes(
    trace: Trace, engine: Engine
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Calls, histograms of sizes, and sizes themselves, which counters tell otherwise."""
    totals, sizes, exact_sizes = counter_totals(trace), counter_sizes(trace), NO_EXACT_SIZES
    layers = set(totals["layer"].unique().to_list())
    if trace.partitions and not {"posix", "stdio"} & layers:
        keys = ("file", "layer", "operation")
        views = Totals(keys), RequestSizes(keys), ExactSizes()
        event_totals, event_sizes, exact_sizes = engine.run(trace, *views)
        missing = ~pl.col("layer").is_in(sorted(layers))
        totals = pl.concat([totals.drop("rank"), event_totals.filter(missing)], how="diagonal")
        sizes = pl.concat([sizes, event_sizes.filter(missing)], how="diagonal")
    return totals, sizes, exact_sizes


def _outermost_time(trace: Trace, totals: pl.DataFrame) -> float:
    """Seconds in the interface the program itself called, file by file.

    A collective write waits in MPI-IO for other ranks while POSIX is idle: what the program
    waited for is the time of the outermost interface.
    """
    parents = trace.files.select("file", "parent")
    calls = ~pl.col("layer").cast(pl.String).is_in(NOT_INTERFACES)
    timed = (
        totals.filter(pl.col("seconds") > 0)
        .join(parents, on="file", how="left", nulls_equal=True)
        .with_columns(
            root=pl.coalesce("parent", "file"),
            height=pl.when(calls).then(height_of(pl.col("layer"))).otherwise(0),
        )
    )
    outermost = pl.col("height") == pl.col("height").max().over("root")
    return float(timed.filter(outermost)["seconds"].sum())


def _by_layer(totals: pl.DataFrame) -> dict[str, dict[str, Amount]]:
    """Add up the calls of each interface that the trace has."""
    amounts_of: dict[str, dict[str, Amount]] = {}
    for layer, name, *amounts in totals.group_by("layer", _KIND).agg(_AMOUNTS).iter_rows():
        amounts_of.setdefault(layer, {})[name] = Amount(*amounts)
    return {layer: {**_NOTHING, **amounts_of[layer]} for layer in LAYERS if layer in amounts_of}


def _by_operation(totals: pl.DataFrame) -> dict[str, Amount]:
    """Add up reads, writes and metadata calls."""
    sums = totals.group_by(_KIND).agg(_AMOUNTS)
    return {**_NOTHING, **{name: Amount(*amounts) for name, *amounts in sums.iter_rows()}}


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
    touched = pl.col("file").is_in(totals["file"].implode())
    return trace.files.filter(touched & (pl.col("kind") == "file")).height


@dataclass(frozen=True, slots=True)
class Relation:
    """One of the job's rates beside the benchmark's.

    The job's rate is what its processes reach together while they are in these calls: bytes
    (or calls) over the mean time a process spends in them.
    """

    operation: str  # read, write, metadata
    measure: str  # bandwidth (bytes a second), operations (a second)
    job: float
    ceiling: float

    @property
    def share(self) -> float:
        """The job's rate as a part of the ceiling; above 1 where caches help."""
        return self.job / self.ceiling


@dataclass(frozen=True, slots=True)
class CeilingComparison:
    """A job beside one benchmark."""

    ceiling: Ceiling
    relations: tuple[Relation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            **pick(self.ceiling, "tool"),
            "path": str(self.ceiling.path),
            **pick(self.ceiling, "processes", "request_size"),
            "relations": [{**asdict(one), "share": one.share} for one in self.relations],
        }


def relate(characteristics: Characteristics, ceiling: Ceiling) -> CeilingComparison:
    """Compare the job's rates with the benchmark's, where both have one."""
    ranks = characteristics.job.ranks or 1
    relations = []
    for measure, rates in (("bandwidth", ceiling.bandwidth), ("operations", ceiling.operations)):
        for operation, best in rates.items():
            done = characteristics.by_operation.get(operation)
            if done is None or done.time <= 0 or best <= 0:
                continue
            moved = done.bytes if measure == "bandwidth" else done.operations
            if moved:
                relations.append(Relation(operation, measure, moved * ranks / done.time, best))
    return CeilingComparison(ceiling, tuple(relations))
