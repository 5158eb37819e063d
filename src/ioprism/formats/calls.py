"""Calls: what a function does, how rows of calls become a trace, and where file pointers stand.

Formats that are read call by call take two passes: the first learns which files there are and
when the trace begins and ends; the second, whenever events are asked for, builds tables of
bounded size.

A process's pointer into a file is set by open and seek, and moved by reads and writes. One
pointer is kept per process and path: a file that a process has open twice shares it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.reading import Budget
from ioprism.model.schema import EVENTS, OPERATIONS, Layer, Operation
from ioprism.model.trace import LARGEST_PLAUSIBLE, LAYERS, Warn


@dataclass(frozen=True, slots=True)
class Call:
    """What a function belongs to and does."""

    layer: str
    operation: str
    collective: bool | None = None
    nonblocking: bool | None = None
    positional: bool = False  # carries its own offset and leaves the file pointer alone

    layer_code: int = field(init=False, default=0)  # number in `schema.LAYERS`
    operation_code: int = field(init=False, default=0)  # number in `schema.OPERATIONS`

    def __post_init__(self) -> None:
        """Look the numbers up once: rows are made of them."""
        object.__setattr__(self, "layer_code", LAYERS.index(self.layer))
        object.__setattr__(self, "operation_code", OPERATIONS.index(self.operation))


def _each(operation: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), operation)


# Calls that lock or unlock a file. `fcntl` does so with some of its commands, which readers that
# know the command name with it.
LOCK_COMMANDS = ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW")
LOCKS = frozenset(("flock", "lockf", *(f"fcntl {command}" for command in LOCK_COMMANDS)))
POSIX: Mapping[str, str] = {
    **_each("read", "read pread readv preadv preadv2 process_vm_readv sendfile"),
    **_each("write", "write pwrite writev pwritev pwritev2"),
    **_each("open", "open openat openat2 creat open_by_handle_at mkstemp mkostemp mkstemps"),
    **_each("close", "close close_range"),
    **_each("seek", "lseek llseek _llseek"),
    **_each("stat", "stat fstat lstat fstatat newfstatat xstat fxstat lxstat fxstatat statx "
            "statfs fstatfs statvfs fstatvfs"),
    **_each("sync", "fsync fdatasync sync syncfs msync sync_file_range"),
    **_each("metadata", "access faccessat faccessat2 chdir fchdir getcwd chmod fchmod fchmodat "
            "chown fchown lchown fchownat link linkat symlink symlinkat readlink readlinkat "
            "mkdir mkdirat rmdir unlink unlinkat remove rename renameat renameat2 truncate "
            "ftruncate fallocate posix_fallocate fadvise64 fadvise posix_fadvise mknod mknodat "
            "mkfifo utime utimes utimensat futimens umask dup dup2 dup3 fcntl ioctl mmap "
            "munmap opendir fdopendir readdir readdir_r closedir rewinddir seekdir telldir "
            "scandir getdents chroot realpath setxattr getxattr lsetxattr lgetxattr "
            "fsetxattr fgetxattr listxattr llistxattr flistxattr removexattr copy_file_range "
            "splice readahead ftok nftw ftw mount umount"),
    **dict.fromkeys(LOCKS, "metadata"),
}  # fmt: skip
STDIO: Mapping[str, str] = {
    **_each("read", "fread fread_unlocked fgets fgetc getc getline getdelim fscanf vfscanf fgetws"),
    **_each("write", "fwrite fwrite_unlocked fputs fputc putc puts putchar printf vprintf fprintf "
            "vfprintf fputws"),
    **_each("open", "fopen fdopen freopen tmpfile popen"),
    **_each("close", "fclose pclose"),
    **_each("seek", "fseek fseeko rewind fsetpos"),
    # fflush hands data to the system; it does not force them to storage.
    **_each("metadata", "fflush ftell ftello fgetpos fileno setvbuf setbuf feof ferror clearerr "
            "ungetc"),
}  # fmt: skip
_PROCESS = _each("other", "fork vfork clone clone3 wait wait3 wait4 waitpid waitid exit exit_group "
                 "execve execv execvp execvpe execl execlp pipe pipe2")  # fmt: skip
_POSITIONAL = frozenset(["pread", "preadv", "preadv2", "pwrite", "pwritev", "pwritev2"])
_MPIIO = re.compile(
    r"MPI_File_(?P<i>i)?(?P<what>read|write)(?P<at>_at)?(?P<how>_all|_ordered|_shared)?(?:_(?:begin|end))?$"
)
_MPIIO_OTHER = {"open": "open", "close": "close", "seek": "seek", "seek_shared": "seek",
                "sync": "sync", "get_size": "stat"}  # fmt: skip
_COLLECTIVE_FILE_CALLS = {"open", "close", "sync", "set_view", "set_size", "preallocate"}
_PREFIXES = (("H5", "hdf5"), ("ncmpi_", "pnetcdf"), ("nc_", "netcdf"), ("nc4_", "netcdf"),
             ("dfs_", "dfs"), ("daos_", "daos"))  # fmt: skip
_PUT = r"put_(?:var|vara|var1|vars|varm|varn)"
_GET = r"get_(?:var|vara|var1|vars|varm|varn)"
_DATA = tuple(
    (operation, re.compile(pattern, re.IGNORECASE))
    for operation, pattern in (
        ("read", rf"H5[DA]read|_i?{_GET}|_read"),
        ("write", rf"H5[DA]write|_[ib]?{_PUT}|_write"),
        ("open", r"H5[A-Z](?:open|create)|_open|_create"),
        ("close", r"H5[A-Z]close|_close"),
        ("sync", r"H5[A-Z]flush|_sync|_flush"),
        ("stat", r"get_filesize|_stat$|_get_size"),
    )
)


@lru_cache(maxsize=4096)
def classify(name: str) -> Call:
    """Return what a function does; what is unknown is of the layer `other`."""
    plain = _plain(name)
    for layer, known in (("posix", POSIX), ("stdio", STDIO), ("posix", _PROCESS)):
        if plain in known:
            return Call(layer, known[plain], positional=plain in _POSITIONAL)
    if name.startswith("MPI_File_"):
        return _mpiio(name)
    for prefix, layer in _PREFIXES:
        if name.startswith(prefix):
            matching = (what for what, pattern in _DATA if pattern.search(name))
            return Call(layer, next(matching, "metadata"))
    return Call("other", "other")


def _plain(name: str) -> str:
    """Take away what the C library adds: `__xstat64` is `xstat`."""
    bare = name.lstrip("_") if name.startswith("__") else name
    for suffix in ("64_time64", "_time64", "64", "_chk"):
        if bare.endswith(suffix) and len(bare) > len(suffix) and bare not in POSIX:
            bare = bare[: -len(suffix)]
    return bare


def _mpiio(name: str) -> Call:
    match = _MPIIO.match(name)
    if match is None:
        what = name.removeprefix("MPI_File_")
        collective = True if what in _COLLECTIVE_FILE_CALLS else None
        return Call("mpiio", _MPIIO_OTHER.get(what, "metadata"), collective=collective)
    return Call(
        "mpiio",
        match["what"],
        collective=match["how"] in ("_all", "_ordered"),
        nonblocking=match["i"] is not None or name.endswith(("_begin", "_end")),
        positional=match["at"] is not None,
    )


BATCH = 100_000  # rows in one table
BATCH_TEXT = 64 * 2**20  # characters of names in one table
BYTES_OF_NAME = 200  # that a name takes in tables beside its characters; an estimate
IMPOSSIBLE = -1  # stands for a number that cannot be true


class Row(NamedTuple):
    """One call."""

    start: float  # seconds, on the source's own clock
    end: float
    process: int  # row of the process table
    path: str | None
    layer: int  # number in `schema.LAYERS`
    operation: int  # number in `schema.OPERATIONS`
    function: str | None
    offset: int | None = None
    bytes: int | None = None
    collective: bool | None = None
    nonblocking: bool | None = None


class RowSource(Protocol):
    """Something that can be read call by call, as often as needed; picklable."""

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls; processes are numbered in the same way every time."""
        ...


@dataclass(slots=True)
class TraceSpan:
    """What the first pass learns."""

    budget: Budget
    paths: dict[str, int] = field(default_factory=dict)  # row of the file table
    first: float | None = None
    last: float | None = None

    def see(self, row: Row) -> None:
        """Take note of one call."""
        self.first = row.start if self.first is None else min(self.first, row.start)
        self.last = row.end if self.last is None else max(self.last, row.end)
        if row.path is not None and row.path not in self.paths:
            self.budget.take(BYTES_OF_NAME + len(row.path), "the names of files")
            self.paths[row.path] = len(self.paths)


@dataclass(frozen=True, slots=True, eq=False)
class RowPartition:
    """All calls of one source."""

    source: RowSource
    origin: float  # the source's clock when the trace begins
    paths: Mapping[str, int]
    ranks: Mapping[int, int]  # by row of the process table

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        held: list[Row] = []
        text = 0
        for row in self.source.rows(warn):
            held.append(row)
            text += len(row.path or "") + len(row.function or "")
            if len(held) >= BATCH or text >= BATCH_TEXT:
                yield self._frame(held).lazy()
                held, text = [], 0
        if held:
            yield self._frame(held).lazy()

    def _frame(self, rows: list[Row]) -> pl.DataFrame:
        columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
        named = columns.pop("path")
        columns["file"] = tuple(None if path is None else self.paths.get(path) for path in named)
        columns["rank"] = tuple(self.ranks.get(process, 0) for process in columns["process"])
        known = pl.DataFrame(columns, schema_overrides=_ROW_TYPES)
        return EVENTS.conform(
            known.with_columns(
                pl.col("start", "end") - self.origin,
                layer=known["layer"].cat.to(Layer),
                operation=known["operation"].cat.to(Operation),
            )
        )


_ROW_TYPES: Mapping[str, pl.DataType] = {
    **EVENTS.schema, "layer": pl.UInt8(), "operation": pl.UInt8(), "function": pl.String()
}  # fmt: skip


def plausible(value: object) -> int | None:
    """Return a size or an offset; one that is given and cannot be is negative, and counted."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return IMPOSSIBLE
    try:
        number = int(value) if not isinstance(value, str) or len(value) < 20 else IMPOSSIBLE
    except (ValueError, OverflowError):
        return IMPOSSIBLE
    return number if 0 <= number < LARGEST_PLAUSIBLE else IMPOSSIBLE


Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

APPEND = 0o2000  # O_APPEND: where a write goes is not known
UNKNOWN = np.iinfo(np.int64).min
RELATIVE = -(2**62)  # far below any position, and far above UNKNOWN
RELATIVE_BELOW = -(2**61)


@dataclass(slots=True)
class FilePointers:
    """The pointers of all processes, kept from one batch of calls to the next.

    Pointers may also be followed from the middle of a trace on, with `unset=RELATIVE`: those
    that nothing has set yet then stand at `RELATIVE` and what they were moved since.
    """

    at: dict[int, int] = field(default_factory=dict)  # key -> position
    unset: int = UNKNOWN  # where a pointer stands that nothing has set

    def replay(self, key: Integers, *, sets: Flags, moves: Flags, amount: Integers) -> Integers:
        """Return each call's position before it; `UNKNOWN` where nothing tells.

        Args:
            key: one number per process and file.
            sets: calls after which the pointer stands at `amount` (`UNKNOWN`: anywhere).
            moves: calls that begin at the pointer and move it on by `amount`.
            amount: the position that is set, or the bytes that are moved.
        """
        positions = np.full(len(key), UNKNOWN)
        touched = np.flatnonzero(sets | moves)
        if not len(touched):
            return positions
        order = touched[np.argsort(key[touched], kind="stable")]
        positions[order] = self._run(key[order], sets[order], amount[order])
        return positions

    def _run(self, key: Integers, sets: Flags, amount: Integers) -> Integers:
        first = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        last = np.append(first[1:], len(key)) - 1
        # Positions are running sums since the last time the pointer was set: each call's sum
        # is over the calls before it, and what lies before the last setting is taken away.
        moved = np.where(sets, 0, amount)
        sums = np.cumsum(moved)
        before = sums - moved
        base = np.zeros(len(key), np.int64)
        base[first] = [self.at.get(k, self.unset) for k in key[first].tolist()]
        anchor = np.zeros(len(key), np.int64)
        anchor[first] = first
        since = np.maximum.accumulate(anchor)
        settings = np.flatnonzero(sets)
        position = _positions(base[since], before - before[since])
        if len(settings):
            latest = np.full(len(key), -1)
            latest[settings] = settings
            latest = np.maximum.accumulate(latest)
            previous = np.concatenate(([-1], latest[:-1]))
            known = previous >= since
            index = previous[known]
            position[known] = _positions(amount[index], before[known] - sums[index])
        after = np.where(sets, amount, _positions(position, moved))
        for k, value in zip(key[first].tolist(), after[last].tolist(), strict=True):
            self.at[k] = value
        return position

    def advance(self, later: FilePointers) -> None:
        """Move on by what happened later, followed with `unset=RELATIVE`."""
        for key, value in later.at.items():
            if not UNKNOWN < value < RELATIVE_BELOW:
                self.at[key] = value
            elif self.at.get(key, UNKNOWN) != UNKNOWN:
                self.at[key] += value - RELATIVE


def pointer_key(process: npt.NDArray[np.integer], file: npt.NDArray[np.integer]) -> Integers:
    """Return one number for a process and its file, which share a pointer."""
    return (process.astype(np.int64) << 32) | (file.astype(np.int64) & 0xFFFFFFFF)


def nullable(values: npt.NDArray[Any], missing: Flags) -> pl.Series:
    """Return values as a column; those that are missing are null."""
    series = pl.Series(values)
    return series.set(pl.Series(missing), None) if missing.any() else series


def _positions(base: Integers, moved: Integers) -> Integers:
    return np.where(base == UNKNOWN, UNKNOWN, base + np.where(base == UNKNOWN, 0, moved))
