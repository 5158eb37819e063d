"""What was done to files, as columns: the form in which counters and events are judged.

Plain lists, so that a small log is judged without loading a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import add
from typing import Any, Protocol, runtime_checkable

from ioprism.model.trace import Mount, mount_of

DIRECTIONS = ("read", "write")
EVERYONE = -1  # the rank of an entry that stands for all ranks together
NAMELESS = -1  # the file of an entry whose name is unknown

CONSOLE = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
KERNEL = ("/proc/", "/sys/", "/dev/")  # what looks like files there is made by the kernel
SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - a name to compare with
# Files of programs rather than of their data: what is loaded when they start.
OF_PROGRAMS = (
    r"\.(?:so(?:\.[0-9.]+)?|py|pyc|pyo|pth|egg|whl|conf|cfg|ini)$|/site-packages/|/lib/python\d"
)

OF_SYSTEM = r"^/(?:usr|bin|sbin|lib|lib64|etc)/"

Counts = list[int]
Seconds = list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """The reads, or the writes, of each entry; a column is None where the source cannot tell."""

    operations: Counts
    bytes: Counts
    seconds: Seconds
    small: Counts | None = None  # requests below the limit
    forward: Counts | None = None  # requests at or behind the end of the rank's previous one
    consecutive: Counts | None = None  # those exactly at its end
    first: Counts | None = None  # requests that none precedes: neither forward nor backward
    extent: Counts | None = None  # bytes of the file touched at all, at most
    collective: Counts | None = None
    independent: Counts | None = None
    nonblocking: Counts | None = None
    begin: Seconds | None = None  # when the first began; 0 where there is none
    finish: Seconds | None = None  # when the last ended; 0 where there is none
    longest: Seconds | None = None  # what the longest took


@dataclass(frozen=True, slots=True, eq=False)
class RankSpread:
    """How ranks differ in an entry that stands for all of them; zeros elsewhere."""

    slowest: Counts
    slowest_seconds: Seconds
    slowest_bytes: Counts
    fastest: Counts
    fastest_seconds: Seconds
    deviation_bytes: Seconds


@dataclass(frozen=True, eq=False)
class Usage:
    """One layer: one entry per file and rank in every column."""

    layer: str
    file: Counts
    rank: Counts
    moves: Mapping[str, Moves]  # read, write
    metadata_seconds: Seconds
    opens: Counts
    seeks: Counts
    stats: Counts
    syncs: Counts
    sync_seconds: Seconds | None = None  # None: part of the write time
    misaligned: Counts | None = None  # of both directions together
    misaligned_memory: Counts | None = None
    alignment: Counts | None = None  # bytes, that `misaligned` is measured against
    common_sizes: Sequence[tuple[Counts, Counts]] = ()  # request sizes and how often, most first
    spread: RankSpread | None = None
    open_close: Sequence[Seconds] = ()  # start and end of the first open, and of the last close
    extras: Mapping[str, Counts] = field(default_factory=dict)  # counters of one module alone

    def __len__(self) -> int:
        return len(self.file)

    @cached_property
    def seconds(self) -> Seconds:
        """Reads, writes and metadata together, per entry."""
        read, write = (self.moves[direction].seconds for direction in DIRECTIONS)
        return [r + w + m for r, w, m in zip(read, write, self.metadata_seconds, strict=True)]

    @cached_property
    def bytes(self) -> Counts:
        """Read and written together, per entry."""
        read, write = (self.moves[direction].bytes for direction in DIRECTIONS)
        return list(map(add, read, write))

    @cached_property
    def operations(self) -> Counts:
        """Reads and writes together, per entry."""
        read, write = (self.moves[direction].operations for direction in DIRECTIONS)
        return list(map(add, read, write))

    def without_reads_of(self, files: frozenset[int]) -> Usage:
        """Return the columns as if nothing had been read from these files."""
        keep = [file not in files for file in self.file]
        reads = {part.name: getattr(self.moves["read"], part.name) for part in fields(Moves)}
        columns: dict[str, Any] = {
            name: values
            and [value if kept else 0 for value, kept in zip(values, keep, strict=True)]
            for name, values in reads.items()
        }
        calls = self.operations
        writes = self.moves["write"].operations
        misaligned = self.misaligned and [
            n if kept or not n else round(n * w / c)
            for n, kept, w, c in zip(self.misaligned, keep, writes, calls, strict=True)
        ]
        moves = {**self.moves, "read": Moves(**columns)}
        return replace(self, moves=moves, misaligned=misaligned)

    @cached_property
    def shared_files(self) -> frozenset[int]:
        """Files that more than one rank uses."""
        return frozenset(file for file, ranks in self.users().items() if ranks > 1)

    def users(self, calls: Counts | None = None) -> dict[int, int]:
        """How many ranks use each file, as far as entries tell; all ranks together count as 2.

        Those without any of these calls are left out.
        """
        ranks_of_file: dict[int, int] = {}
        for place, (file, rank) in enumerate(zip(self.file, self.rank, strict=True)):
            if calls is None or calls[place]:
                ranks_of_file[file] = ranks_of_file.get(file, 0) + (2 if rank == EVERYONE else 1)
        return ranks_of_file


def is_data(path: str) -> bool:
    """Whether a name stands for data, rather than a console stream or a part of the kernel."""
    if path.startswith(KERNEL):
        return path.startswith(SHARED_MEMORY)
    return path not in CONSOLE


@dataclass(frozen=True, slots=True)
class Striping:
    """How a file is striped over storage targets."""

    size: int  # bytes
    targets: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class FileFacts:
    """What is known of files, by their row."""

    paths: Mapping[int, str]
    not_data: frozenset[int] = frozenset()  # console streams, and what the kernel makes up
    mounts: tuple[Mount, ...] = ()
    striping: Mapping[int, Striping] = field(default_factory=dict)
    system_targets: int | None = None  # storage targets that the file system has

    def path(self, file: int) -> str | None:
        """The name, or None."""
        return self.paths.get(file)

    def filesystem(self, file: int) -> str | None:
        """The type of the mount that the file is under."""
        mount = mount_of(self.paths.get(file, ""), self.mounts)
        return None if mount is None else mount.filesystem


class CounterColumns(Protocol):
    """The records of one module with counters, column by column."""

    @property
    def files(self) -> list[int]:
        """The row of each record's file."""
        ...

    @property
    def ranks(self) -> list[int]:
        """The rank of each record; -1 for all together."""
        ...

    def column(self, name: str) -> list[Any] | None:
        """One value per record, or None where the counter is missing."""
        ...


@runtime_checkable
class ColumnarCounters(Protocol):
    """Counters of a trace that can be read as columns, without a table library."""

    def columns(self, module: str) -> CounterColumns:
        """Return a module's records, column by column."""
        ...

    def height(self, module: str) -> int:
        """How many records a module has."""
        ...

    def heat_maps(self) -> dict[str, list[HeatMap]]:
        """Return when each rank moved how many bytes, by layer."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Bytes that one rank moved through one layer, in bins of time."""

    rank: int
    width: float  # seconds of a bin
    read: Sequence[int]
    write: Sequence[int]

    def busy_bins(self) -> list[int]:
        """The bins in which any were moved."""
        both = zip(self.read, self.write, strict=True)
        return [place for place, (read, write) in enumerate(both) if read > 0 or write > 0]


def heat_loads(maps: Mapping[str, Sequence[HeatMap]]) -> dict[str, RankLoad]:
    """What each rank moved, by layer."""
    return {
        layer: RankLoad({m.rank: {"read": sum(m.read), "write": sum(m.write)} for m in some})
        for layer, some in maps.items()
    }


@dataclass(frozen=True, slots=True, eq=False)
class RankLoad:
    """What each rank did through one layer, where entries are sums over all ranks."""

    bytes: Mapping[int, Mapping[str, int]]  # rank -> direction -> bytes
    operations: Mapping[int, Mapping[str, int]] | None = None
    seconds: Mapping[int, float] | None = None

    def ranks(self) -> Iterator[int]:
        """Every rank there is something known of."""
        return iter(self.bytes)
