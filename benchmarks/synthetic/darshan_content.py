"""Which Darshan log would a trace's events have left?"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.synthetic.darshan_records import (
    Counters,
    Dxt,
    DxtRecord,
    Heatmap,
    HeatmapRecord,
    LogContent,
    Lustre,
    LustreComponent,
    LustreRecord,
    Module,
    Segments,
)
from benchmarks.synthetic.darshan_reduce import SHARED, reduce_shared
from benchmarks.synthetic.darshan_tally import PREFIXES, tally
from ioprism.model.trace import Trace

FILE_ALIGNMENT = 4096  # bytes; what most file systems tell Darshan
COUNTED = {"posix": ("POSIX", 4), "mpiio": ("MPI-IO", 3), "stdio": ("STDIO", 2)}
TRACED = {"posix": ("DXT_POSIX", 1), "mpiio": ("DXT_MPIIO", 2)}
HEATMAP_NAMES = {"posix": "heatmap:POSIX", "mpiio": "heatmap:MPIIO", "stdio": "heatmap:STDIO"}
FIRST_BIN_WIDTH = 0.1  # seconds; doubled until the run time fits
MAX_BINS = 200


def record_id(path: str) -> int:
    """Return an identifier for a path; Darshan's own hash is not imitated."""
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")


def log_content(trace: Trace, *, file_alignment: int, modules: Collection[str]) -> LogContent:
    """Return what Darshan with extended tracing would have recorded of a trace's events.

    Only the named modules are filled: older logs have no room for the others.
    """
    source = _Source.of(trace)
    filled = [
        *(_counters(source, layer, file_alignment=file_alignment) for layer in COUNTED),
        _lustre(source),
        *(_segments(source, layer) for layer in TRACED),
        _heatmap(source),
    ]
    kept = [module for module in filled if module is not None and module.name in modules]
    maps = {record_id(name): name for name in HEATMAP_NAMES.values()}
    has_maps = any(module.name == "HEATMAP" for module in kept)
    return LogContent(trace.job, {**source.names, **(maps if has_maps else {})}, kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A trace's events in memory, and the identifiers of its files."""

    trace: Trace
    events: pl.DataFrame
    identifiers: npt.NDArray[np.uint64]  # by row of the file table
    names: Mapping[int, str]
    ranks: int

    @classmethod
    def of(cls, trace: Trace) -> _Source:
        events = trace.events()
        rows, paths, known = (trace.files[name].to_list() for name in ("file", "path", "id"))
        ids = [record_id(p) if i is None else i for p, i in zip(paths, known, strict=True)]
        identifiers = np.zeros(max(rows, default=0) + 1, np.uint64)
        identifiers[rows] = np.array(ids, np.uint64)
        highest = events.select(pl.col("rank").max()).item()
        ranks = trace.job.ranks or (highest or 0) + 1
        return cls(trace, events, identifiers, dict(zip(ids, paths, strict=True)), ranks)

    def data(self, layer: str) -> pl.DataFrame:
        """The layer's reads and writes."""
        return self.events.filter(
            (pl.col("layer") == layer)
            & pl.col("operation").is_in(["read", "write"])
            & pl.col("file").is_not_null()
        )


def _counters(source: _Source, layer: str, *, file_alignment: int) -> Module | None:
    records = tally(source.events, layer=layer, file_alignment=file_alignment)
    if records.is_empty():
        return None
    reduced = reduce_shared(records, prefix=PREFIXES[layer], ranks=source.ranks)
    ids = pl.Series("id", source.identifiers[reduced["file"].to_numpy()])
    name, version = COUNTED[layer]
    return Counters(name, reduced.drop("file").insert_column(0, ids), version)


def _segments(source: _Source, layer: str) -> Module | None:
    data = source.data(layer)
    if data.is_empty():
        return None
    name, version = TRACED[layer]
    return Dxt(name, _dxt_records(source, data), version)


def _dxt_records(source: _Source, data: pl.DataFrame) -> Iterator[DxtRecord]:
    """Cut the calls, sorted by rank, file and direction, where the rank or the file changes."""
    is_read = pl.col("operation") == "read"
    data = data.with_columns(is_read=is_read).sort(
        "rank", "file", "is_read", "start", maintain_order=True
    )
    hosts = dict(source.trace.processes.select("rank", "host").iter_rows())
    users = dict(data.group_by("file").agg(pl.col("rank").n_unique()).iter_rows())
    rank, file, read = (data[name].to_numpy() for name in ("rank", "file", "is_read"))
    columns = [data[name].to_numpy() for name in ("bytes", "start", "end")]
    calls = Segments(data["offset"].fill_null(-1).to_numpy(), *columns)
    changes = np.flatnonzero((np.diff(rank) != 0) | (np.diff(file) != 0)) + 1
    edges = [0, *changes.tolist(), len(rank)]
    for first, last in pairwise(edges):
        reads_from = first + int(np.searchsorted(read[first:last], 1))
        yield DxtRecord(
            int(source.identifiers[file[first]]),
            int(rank[first]),
            writes=calls[first:reads_from],
            reads=calls[reads_from:last],
            host=hosts.get(int(rank[first])) or "",
            shared=users[file[first]] > 1,
        )


def _lustre(source: _Source) -> Module | None:
    striped = source.trace.files.drop_nulls(["stripe_size", "targets"])
    columns = striped.select("file", "stripe_size", "targets").iter_rows()
    records = [
        LustreRecord(int(source.identifiers[file]), SHARED, [LustreComponent(targets, size)])
        for file, size, targets in columns
    ]
    return Lustre(records) if records else None


def _heatmap(source: _Source) -> Module | None:
    last = source.events.select(pl.col("end").max()).item()
    runtime = float(source.trace.job.runtime or last or 0.0)
    width = FIRST_BIN_WIDTH
    while runtime > width * MAX_BINS:
        width *= 2
    bins = max(1, int(np.ceil(runtime / width)))
    records = [
        record
        for layer, name in HEATMAP_NAMES.items()
        for record in _heatmap_records(source.data(layer), record_id(name), width, bins)
    ]
    by_rank = sorted(records, key=lambda record: record.rank)
    return Heatmap(by_rank) if by_rank else None


def _heatmap_records(
    data: pl.DataFrame, identifier: int, width: float, bins: int
) -> Iterator[HeatmapRecord]:
    ranks = data["rank"].unique().sort().to_numpy()
    maps = {d: _binned(data.filter(operation=d), ranks, width, bins) for d in ("read", "write")}
    for row, rank in enumerate(ranks.tolist()):
        write, read = (maps[direction][row].tolist() for direction in ("write", "read"))
        yield HeatmapRecord(identifier, rank, width, write, read)


def _binned(
    data: pl.DataFrame, ranks: npt.NDArray[np.int32], width: float, bins: int
) -> npt.NDArray[np.int64]:
    """Spread each call's bytes evenly over its time; what is moved is kept to the byte."""
    row = np.searchsorted(ranks, data["rank"].to_numpy())
    start, end, moved = (data[name].to_numpy() for name in ("start", "end", "bytes"))
    first = np.minimum((start / width).astype(np.int64), bins - 1)
    last = np.minimum((end / width).astype(np.int64), bins - 1)
    filled = np.zeros((len(ranks), bins), np.int64)
    done = np.zeros_like(moved)
    for step in range(int((last - first).max(initial=-1)) + 1):
        inside = np.flatnonzero(first + step <= last)
        place = first[inside] + step
        ended = place == last[inside]
        share = ((place + 1) * width - start[inside]) / np.maximum(
            end[inside] - start[inside], np.finfo(float).tiny
        )
        reached = np.where(ended, moved[inside], np.floor(moved[inside] * share.clip(0, 1)))
        reached = reached.astype(np.int64)
        np.add.at(filled, (row[inside], place), reached - done[inside])
        done[inside] = reached
    return filled
