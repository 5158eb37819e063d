"""Counter records of the lowest layer as arrays: one row per file and rank, or all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.counted_metadata import believable_metadata
from ioprism.analyses.diagnosis.observations import with_file_rows
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
    "byte_variance": "POSIX_F_VARIANCE_RANK_BYTES",
}  # fmt: skip
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


@dataclass(frozen=True, slots=True, eq=False)
class CounterRecords:
    """All records, and how their files lie on targets."""

    table: pl.DataFrame  # file, rank and the columns of `_COUNTS`; every number a float
    ranks: int  # of the job
    files: pl.DataFrame  # that `file` is the place in
    stripe_size: Ints  # by record; 0 unknown
    targets: tuple[tuple[int, ...], ...]  # by record; empty unknown

    def __len__(self) -> int:
        return self.table.height

    def __getitem__(self, name: str) -> Floats:
        return self.table[name].to_numpy()

    @property
    def rank(self) -> Ints:
        """The rank of each record; EVERYONE for all of them."""
        return self.table["rank"].cast(pl.Int64).to_numpy()

    @property
    def file(self) -> Ints:
        """The file of each record."""
        return self.table["file"].cast(pl.Int64).to_numpy()

    @property
    def shared(self) -> Flags:
        """Which records stand for all ranks together."""
        return np.asarray(self.rank == EVERYONE)

    @property
    def seconds(self) -> Floats:
        """Read, write and metadata time of each record."""
        return self["read_time"] + self["write_time"] + self["meta_time"]

    @property
    def moved(self) -> Floats:
        """Bytes read and written."""
        return self["bytes_read"] + self["bytes_written"]

    @property
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
    parts = [_columns(trace.counters[module], names) for module, names in _modules(trace)]
    if not parts:
        return None
    files = trace.files.sort("file")
    console = files.with_row_index("place").filter(pl.col("kind") == "console")["place"]
    table = with_file_rows(pl.concat(parts), files).filter(
        pl.col("file").is_not_null() & ~pl.col("file").is_in(console.cast(pl.Int64).to_list())
    )
    table = _believed(table, trace.job.runtime)
    layout = files.select("stripe_size", "targets")[table["file"].to_list()]
    ranks = max(trace.job.ranks or 1, int(table["rank"].max() or 0) + 1)  # type: ignore[arg-type]
    return CounterRecords(
        table,
        ranks,
        files,
        layout["stripe_size"].fill_null(0).to_numpy(),
        tuple(tuple(names or ()) for names in layout["targets"].to_list()),
    )


def seconds_of_ranks(trace: Trace) -> Floats:
    """Seconds in calls of each rank, of records with and without a file; empty if none."""
    parts = [_columns(trace.counters[module], names) for module, names in _modules(trace)]
    if not parts:
        return np.empty(0)
    spent = pl.sum_horizontal("read_time", "write_time", "meta_time").sum().alias("seconds")
    return pl.concat(parts).group_by("rank").agg(spent)["seconds"].to_numpy()


def _modules(trace: Trace) -> list[tuple[str, Names]]:
    """The modules whose calls reach storage; DFS calls DAOS itself."""
    known: dict[str, Names] = {"POSIX": _POSIX, "STDIO": _STDIO, "DFS": _DFS, "DAOS": _DAOS}
    found = [(module, names) for module, names in known.items() if module in trace.counters]
    below = "DFS" in trace.counters
    return [(module, names) for module, names in found if not (below and module == "DAOS")]


def _believed(table: pl.DataFrame, runtime: float | None) -> pl.DataFrame:
    """Drop metadata times that cannot be: more of a rank's own than the run lasts.

    Darshan versions exist that count from the first open to the last.
    """
    if not believable_metadata(table.filter(pl.col("rank") >= 0), "meta_time", runtime):
        return table.with_columns(meta_time=pl.lit(0.0))
    return table


def _columns(table: pl.DataFrame, names: Names) -> pl.DataFrame:
    chosen = {key: _total(table, names.get(key, ())) for key in _COUNTS}
    # A flush of STDIO hands its buffer to the system: nothing is forced to storage.
    chosen["syncs"] = _total(table, ("POSIX_FSYNCS", "POSIX_FDSYNCS"))
    return table.select(
        pl.col("file").cast(pl.UInt32),
        pl.col("rank").cast(pl.Int64),
        *(expression.cast(pl.Float64).alias(key) for key, expression in chosen.items()),
    )


def _total(table: pl.DataFrame, names: str | tuple[str, ...]) -> pl.Expr:
    """The sum of some counters; those below 0 are unknown."""
    wanted = (names,) if isinstance(names, str) else names
    present = [pl.col(name).clip(lower_bound=0) for name in wanted if name in table.columns]
    return pl.sum_horizontal(*present) if present else pl.lit(0.0)
