"""Counter records of the lowest layer as arrays: one row per file and rank, or all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.counted_metadata import believable_metadata
from ioprism.analyses.diagnosis.observations import file_rows
from ioprism.model.trace import Trace

EVERYONE = -1
Names = Mapping[str, str | tuple[str, ...]]  # of a count: the counters that add up to it
_POSIX: Names = {
    "reads": "POSIX_READS", "writes": "POSIX_WRITES", "bytes_read": "POSIX_BYTES_READ",
    "bytes_written": "POSIX_BYTES_WRITTEN", "last_read": "POSIX_MAX_BYTE_READ",
    "opens": "POSIX_OPENS", "stats": "POSIX_STATS", "read_time": "POSIX_F_READ_TIME",
    "write_time": "POSIX_F_WRITE_TIME", "meta_time": "POSIX_F_META_TIME",
    "longest_write": "POSIX_F_MAX_WRITE_TIME", "slowest": "POSIX_F_SLOWEST_RANK_TIME",
    "fastest_bytes": "POSIX_FASTEST_RANK_BYTES", "slowest_rank": "POSIX_SLOWEST_RANK",
    "byte_variance": "POSIX_F_VARIANCE_RANK_BYTES", "syncs": ("POSIX_FSYNCS", "POSIX_FDSYNCS"),
}  # fmt: skip
# A flush of STDIO hands its buffer to the system: nothing is forced to storage.
_STDIO: Names = {
    "reads": "STDIO_READS", "writes": "STDIO_WRITES", "bytes_read": "STDIO_BYTES_READ",
    "bytes_written": "STDIO_BYTES_WRITTEN", "last_read": "STDIO_MAX_BYTE_READ",
    "opens": "STDIO_OPENS", "read_time": "STDIO_F_READ_TIME", "write_time": "STDIO_F_WRITE_TIME",
    "meta_time": "STDIO_F_META_TIME", "slowest": "STDIO_F_SLOWEST_RANK_TIME",
    "fastest_bytes": "STDIO_FASTEST_RANK_BYTES", "slowest_rank": "STDIO_SLOWEST_RANK",
    "byte_variance": "STDIO_F_VARIANCE_RANK_BYTES",
}  # fmt: skip
_DFS: Names = {
    "reads": ("DFS_READS", "DFS_READXS"), "writes": ("DFS_WRITES", "DFS_WRITEXS"),
    "bytes_read": "DFS_BYTES_READ", "bytes_written": "DFS_BYTES_WRITTEN",
    "opens": ("DFS_OPENS", "DFS_GLOBAL_OPENS"), "stats": "DFS_STATS",
    "read_time": "DFS_F_READ_TIME", "write_time": "DFS_F_WRITE_TIME",
    "meta_time": "DFS_F_META_TIME", "longest_write": "DFS_F_MAX_WRITE_TIME",
    "slowest": "DFS_F_SLOWEST_RANK_TIME", "fastest_bytes": "DFS_FASTEST_RANK_BYTES",
    "slowest_rank": "DFS_SLOWEST_RANK",
}  # fmt: skip
_DAOS: Names = {
    "reads": ("DAOS_ARRAY_READS", "DAOS_KV_GETS", "DAOS_OBJ_FETCHES"),
    "writes": ("DAOS_ARRAY_WRITES", "DAOS_KV_PUTS", "DAOS_OBJ_UPDATES"),
    "bytes_read": "DAOS_BYTES_READ", "bytes_written": "DAOS_BYTES_WRITTEN",
    "opens": ("DAOS_OBJ_OPENS", "DAOS_ARRAY_OPENS", "DAOS_KV_OPENS"),
    "read_time": "DAOS_F_READ_TIME", "write_time": "DAOS_F_WRITE_TIME",
    "meta_time": "DAOS_F_META_TIME", "longest_write": "DAOS_F_MAX_WRITE_TIME",
    "slowest": "DAOS_F_SLOWEST_RANK_TIME", "fastest_bytes": "DAOS_FASTEST_RANK_BYTES",
    "slowest_rank": "DAOS_SLOWEST_RANK",
}  # fmt: skip
_COUNTS = (
    "reads", "writes", "bytes_read", "bytes_written", "last_read", "opens", "stats", "syncs",
    "read_time", "write_time", "meta_time", "longest_write", "slowest", "fastest_bytes",
    "slowest_rank", "byte_variance",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CounterRecords:
    """All records, and how their files lie on targets."""

    file: Ints  # the place in `files`
    rank: Ints  # EVERYONE for all of them together
    counts: Mapping[str, Floats]  # by the names of `_COUNTS`
    ranks: int  # of the job
    files: pl.DataFrame
    stripe_size: Ints  # by record; 0 unknown
    targets: tuple[tuple[int, ...], ...]  # by record; empty unknown

    def __len__(self) -> int:
        return len(self.rank)

    def __getitem__(self, name: str) -> Floats:
        return self.counts[name]

    @cached_property
    def shared(self) -> Flags:
        """Which records stand for all ranks together."""
        return np.asarray(self.rank == EVERYONE)

    @cached_property
    def seconds(self) -> Floats:
        """Read, write and metadata time of each record."""
        return self["read_time"] + self["write_time"] + self["meta_time"]

    @cached_property
    def moved(self) -> Floats:
        """Bytes read and written."""
        return self["bytes_read"] + self["bytes_written"]

    @cached_property
    def requests(self) -> Floats:
        """Reads and writes."""
        return self["reads"] + self["writes"]

    def by_rank(self, values: Floats) -> Floats:
        """Sum values by rank; what stands for all ranks is shared evenly."""
        own = ~self.shared
        known = np.clip(self.rank[own], 0, self.ranks - 1)
        total = np.bincount(known, values[own], minlength=self.ranks)
        return np.asarray(total + float(values[self.shared].sum()) / self.ranks, np.float64)

    def path(self, record: int) -> str:
        """The name of a record's file."""
        return str(self.files["path"][int(self.file[record])])


def counter_records(trace: Trace) -> CounterRecords | None:
    """Collect the records of the layers that touch storage, on data files."""
    modules = _modules(trace)
    if not modules:
        return None
    files = trace.files.sort("file")
    console = (files["kind"] == "console").to_numpy()
    file = np.concatenate([file_rows(table, files) for table, _ in modules])
    data = np.flatnonzero(~np.append(console, True)[file])  # the last place: files without a name
    file, rank = file[data], _ranks(modules)[data]
    counts = {name: _values(modules, name)[data] for name in _COUNTS}
    if not believable_metadata(rank, counts["meta_time"], trace.job.runtime):
        counts["meta_time"] = np.zeros(len(data))
    targets = [tuple(names or ()) for names in files["targets"].to_list()]
    return CounterRecords(
        file,
        rank,
        counts,
        max(trace.job.ranks or 1, int(rank.max(initial=0)) + 1),
        files,
        files["stripe_size"].fill_null(0).to_numpy()[file],
        tuple(targets[place] for place in file),
    )


def seconds_of_ranks(trace: Trace) -> Floats:
    """Seconds in calls of each rank, of records with and without a file; empty if none."""
    modules = _modules(trace)
    if not modules:
        return np.empty(0)
    _, place = np.unique(_ranks(modules), return_inverse=True)
    spent = sum(_values(modules, name) for name in ("read_time", "write_time", "meta_time"))
    return np.asarray(np.bincount(place, spent), np.float64)


def _modules(trace: Trace) -> list[tuple[pl.DataFrame, Names]]:
    """Counters of the modules whose calls reach storage; DFS calls DAOS itself."""
    known: dict[str, Names] = {"POSIX": _POSIX, "STDIO": _STDIO, "DFS": _DFS, "DAOS": _DAOS}
    below = "DFS" in trace.counters
    return [
        (trace.counters[module], names)
        for module, names in known.items()
        if module in trace.counters and not (below and module == "DAOS")
    ]


def _ranks(modules: list[tuple[pl.DataFrame, Names]]) -> Ints:
    return np.concatenate([table["rank"].to_numpy() for table, _ in modules]).astype(np.int64)


def _values(modules: list[tuple[pl.DataFrame, Names]], count: str) -> Floats:
    """A count of all records: the sum of its counters, where those below 0 are unknown."""
    return np.concatenate([_total(table, names.get(count, ())) for table, names in modules])


def _total(table: pl.DataFrame, names: str | tuple[str, ...]) -> Floats:
    total = np.zeros(table.height)
    for name in (names,) if isinstance(names, str) else names:
        column = table.get_column(name, default=None)
        if column is not None:
            total += (column.fill_null(0) if column.null_count() else column).to_numpy().clip(0)
    return total
