"""A trace of a job: events, counters, files, processes, gaps, and the layers of its calls.

A byte that a program writes through HDF5 passes MPI-IO and then POSIX: adding up layers
counts it three times. So totals take each file's calls at the deepest layer that shows them.
A layer that shows less than half of the bytes written above it was not recorded whole, and is
passed over. Reads need not add up: a library may read a byte once for all ranks, or have it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ioprism.errors import UsageError
from ioprism.model.result import to_pandas
from ioprism.text import printable
from ioprism.units import format_seconds

if TYPE_CHECKING:
    import polars as pl

    from ioprism.model.arrays import TimeSeries
    from ioprism.model.usage import FileFacts


@dataclass(frozen=True, slots=True)
class Interface:
    """One I/O interface."""

    name: str
    title: str  # as its users write it
    height: int  # 0: hands data to the system or to storage; others call one below them


# In the order of the `layer` column's categories: stored traces depend on it.
INTERFACES = (
    Interface("posix", "POSIX", 0),
    Interface("stdio", "STDIO", 0),
    Interface("mpiio", "MPI-IO", 2),
    Interface("hdf5", "HDF5", 3),
    Interface("pnetcdf", "PnetCDF", 3),
    Interface("netcdf", "NetCDF", 4),
    Interface("dfs", "DFS", 1),
    Interface("daos", "DAOS", 0),
    Interface("application", "application", 5),
    Interface("other", "other calls", 5),
)
LAYERS = tuple(interface.name for interface in INTERFACES)
TITLES = {interface.name: interface.title for interface in INTERFACES}
HEIGHT = {interface.name: interface.height for interface in INTERFACES}
OPERATIONS = (
    "read", "write", "open", "close", "seek", "stat", "sync", "metadata", "other",
)  # fmt: skip
# The layers from storage up to the program.
UPWARDS = tuple(sorted(LAYERS, key=lambda name: HEIGHT[name]))

LEAST_SEEN = 0.5  # of the bytes written above: below that, calls are missing


def deepest(layers: Iterable[str]) -> tuple[str, ...]:
    """Return the layers whose calls none of the others repeats: all of the lowest height."""
    present = set(layers)
    lowest = min((HEIGHT[name] for name in present), default=0)
    return tuple(name for name in LAYERS if name in present and HEIGHT[name] == lowest)


def counted_layers(moved: Mapping[str, float], operation: str) -> tuple[str, ...]:
    """Return the layers at which reads or writes count, given the bytes that each shows."""
    least = LEAST_SEEN * max(moved.values(), default=0) if operation == "write" else 0
    return deepest(name for name, size in moved.items() if size >= least)


KIB, MIB, GIB = 2**10, 2**20, 2**30
MOST_RANKS = 2**24  # more than any machine has cores; beyond it the number is damage
LATEST = 1e11  # seconds since 1970, or of anything: beyond any clock
LARGEST_PLAUSIBLE = 2**60  # an exbibyte, and more calls than any job makes: beyond it is damage


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Sizes from `low` to `high`, both included; the last bin has no upper end."""

    low: int
    high: int | None
    counter: str  # how the names of Darshan's counters end


_NAMES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M",
          "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")  # fmt: skip
LARGEST_IN_BIN = (100, KIB, 10 * KIB, 100 * KIB, MIB, 4 * MIB, 10 * MIB, 100 * MIB, GIB)
SIZE_BINS = tuple(
    SizeBin(low, high, name)
    for low, high, name in zip(
        (0, *(size + 1 for size in LARGEST_IN_BIN)), (*LARGEST_IN_BIN, None), _NAMES, strict=True
    )
)


Warn = Callable[[str], None]
Progress = Callable[[int], None]  # hears how many pieces, or records, are done


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    path: str
    filesystem: str


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Return the longest mount point that a path is under."""
    under = [mount for mount in mounts if path.startswith(mount.path.rstrip("/") + "/")]
    return max(under, key=lambda mount: len(mount.path), default=None)


# Folders that hold mount points rather than being one, on the systems of public logs.
MOUNT_PARENTS = frozenset({"mnt", "media", "lus", "lustre", "gpfs", "p", "global", "vol", "net"})


def file_system_of(path: str, mounts: Sequence[Mount]) -> str:
    """Return the mount point of a path; the first folders of it where the log lists no mounts."""
    mount = mount_of(path, mounts)
    if mount is not None:
        return mount.path
    folders = [part for part in path.split("/")[:-1] if part]
    return "/" + "/".join(folders[: 2 if folders[:1] and folders[0] in MOUNT_PARENTS else 1])


@dataclass(frozen=True, slots=True)
class Job:
    """Facts about the job; None where the trace does not say."""

    ranks: int | None = None
    start_time: float | None = None  # seconds since 1970
    end_time: float | None = None  # seconds since 1970; None for a job that was killed
    runtime: float | None = None  # seconds
    executable: str | None = None
    user: int | None = None
    job_id: str | None = None
    mounts: tuple[Mount, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Population:
    """How many of what a job ran with; None where the trace does not say."""

    ranks: int | None
    processes: int | None
    hosts: int | None
    applications: int | None


class Partition(Protocol):
    """A piece of the events that can be read alone, anywhere; picklable."""

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size; `warn` reports what had to be left out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPartition:
    """Events that are already in memory."""

    events: pl.DataFrame

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:  # noqa: ARG002 - nothing can be missing
        """Yield the events in one piece."""
        yield self.events.lazy()


class Completeness:
    """What the source says it dropped, and what could not be read.

    It grows while a trace is read lazily, so ask for it after the analysis.
    """

    def __init__(self) -> None:
        self._warnings: dict[str, None] = {}
        self._parts: tuple[Completeness, ...] = ()

    @classmethod
    def of(cls, *parts: Completeness) -> Completeness:
        """Return what all parts miss together, now and later."""
        joined = cls()
        joined._parts = parts
        return joined

    def warn(self, message: str) -> None:
        """Remember a message once."""
        self._warnings[message] = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every message so far, in the order they came up."""
        inherited = (message for part in self._parts for message in part.warnings)
        return tuple(dict.fromkeys((*inherited, *self._warnings)))

    @property
    def whole(self) -> bool:
        """Whether nothing is known to be missing so far."""
        return not self.warnings


class LazyTables(Mapping[str, "pl.DataFrame"]):
    """Tables by name, each read when it is first asked for."""

    def __init__(self, loaders: Mapping[str, Callable[[], pl.DataFrame]]) -> None:
        self._loaders = dict(loaders)
        self._tables: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._tables:
            self._tables[name] = self._loaders[name]()
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


@dataclass(frozen=True, slots=True, eq=False)
class FileTableSource:
    """Loads the file table, and where it can, facts about files without a table library."""

    table: Callable[[], pl.DataFrame]
    facts: Callable[[], FileFacts]

    def __call__(self) -> pl.DataFrame:
        """Load the file table."""
        return self.table()


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What one job, or one workflow, did.

    Events may be larger than memory: they come in partitions. Files, processes and
    counters are read when first asked for.
    """

    format: str
    paths: tuple[Path, ...]
    job: Job
    partitions: tuple[Partition, ...] = ()
    counters: Mapping[str, pl.DataFrame] = field(default_factory=lambda: LazyTables({}))
    series: Mapping[str, TimeSeries] = field(default_factory=dict)
    load_files: Callable[[], pl.DataFrame] = field(repr=False, kw_only=True)
    load_processes: Callable[[], pl.DataFrame] = field(repr=False, kw_only=True)
    completeness: Completeness = field(default_factory=Completeness, repr=False)
    children: frozenset[int] = frozenset()  # ids of processes it started that are in other files

    def __post_init__(self) -> None:
        """Let the traces that are derived from this one share what its loaders return."""
        if not isinstance(self.load_files, FileTableSource):
            source = FileTableSource(cache(self.load_files), cache(self._facts_of_table))
            object.__setattr__(self, "load_files", source)
        if not hasattr(self.load_processes, "cache_info"):
            object.__setattr__(self, "load_processes", cache(self.load_processes))

    @cached_property
    def files(self) -> pl.DataFrame:
        """The file table (see `schema.FILES`)."""
        return self.load_files()

    @cached_property
    def file_facts(self) -> FileFacts:
        """Names, mounts and stripe layouts of files, by their row."""
        return cast(FileTableSource, self.load_files).facts()

    def _facts_of_table(self) -> FileFacts:
        from ioprism.model.schema import facts_of_files

        return facts_of_files(self.files, self.job.mounts, self.counters.get("LUSTRE"))

    def derive(self, **changes: Any) -> Trace:  # noqa: ANN401 - any field
        """Return a trace with other fields that shares files and processes: they are read once."""
        return replace(self, **changes)

    @cached_property
    def processes(self) -> pl.DataFrame:
        """The process table (see `schema.PROCESSES`)."""
        return self.load_processes()

    @property
    def detail(self) -> frozenset[str]:
        """Which kinds of data there are: events, counters, heatmap, series."""
        kinds = {"events"} if self.partitions else set()
        kinds |= {"heatmap"} if "HEATMAP" in self.counters else set()
        kinds |= {"series"} if self.series else set()
        kinds |= {"counters"} if set(self.counters) - {"HEATMAP", "LUSTRE", "APMPI"} else set()
        return frozenset(kinds)

    @cached_property
    def population(self) -> Population:
        """How many ranks, processes, hosts and programs the job has."""
        return population_of(self.processes, ranks=self.job.ranks)

    def summary(self) -> str:
        """Return what the trace is, in one line."""
        names = ", ".join(path.name for path in self.paths[:2])
        more = f" and {len(self.paths) - 2} more" if len(self.paths) > 2 else ""
        job = self.job
        facts = [
            f"{self.format} trace {printable(names)}{more}",
            printable(job.executable) if job.executable else None,
            f"{job.ranks:,} ranks" if job.ranks else None,
            format_seconds(job.runtime) if job.runtime else None,
            f"has {', '.join(sorted(self.detail)) or 'nothing'}",
        ]
        return ", ".join(fact for fact in facts if fact)

    def __repr__(self) -> str:
        return f"<Trace: {self.summary()}>"

    def _repr_html_(self) -> str:
        from html import escape  # a millisecond that few commands need

        return f"<p>{escape(self.summary())}</p>"

    def batches(self) -> Iterator[pl.LazyFrame]:
        """Yield all events in pieces of bounded size."""
        for partition in self.partitions:
            yield from partition.batches(self.completeness.warn)

    def events(self) -> pl.DataFrame:
        """Return all events as one table in memory (see `schema.EVENTS`).

        Warns where the trace has none because it holds counters only.
        """
        import polars as pl

        from ioprism.model.schema import EVENTS

        if not self.partitions:
            warnings.warn(
                "the trace has no events, only "
                f"{', '.join(sorted(self.detail)) or 'facts about the job'}: see `counters`",
                stacklevel=2,
            )
        pieces = [batch.collect() for batch in self.batches()]
        return pl.concat(pieces, rechunk=False) if pieces else EVENTS.empty()

    def to_pandas(self, table: str = "events") -> Any:  # noqa: ANN401 - pandas is optional
        """Return a table as a pandas DataFrame.

        Args:
            table: events, files, processes, or the name of a module with counters.

        Raises:
            UsageError: the trace has no such table.
            MissingPackageError: pandas is not installed.
        """
        known = ("events", "files", "processes", *self.counters)
        if table not in known:
            raise UsageError(f"there is no table {table!r} (there are {', '.join(known)}).")
        if table in self.counters:
            return to_pandas(self.counters[table])
        return to_pandas(self.events() if table == "events" else getattr(self, table))


def population_of(processes: pl.DataFrame, *, ranks: int | None = None) -> Population:
    """Count what rows of the process table stand for.

    A record that all ranks share does not count, and a process's threads count once.
    """
    import polars as pl

    known = processes.filter(pl.col("rank") >= 0)
    named = known.filter(pl.col("pid").is_not_null()).select("host", "pid").n_unique()
    unnamed = known.filter(pl.col("pid").is_null())["rank"].n_unique()
    return Population(
        ranks=ranks or known["rank"].n_unique() or None,
        processes=named + unnamed or None,
        hosts=known["host"].drop_nulls().n_unique() or None,
        applications=known["application"].drop_nulls().n_unique() or None,
    )
