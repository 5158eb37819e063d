"""Every column of every table, declared once: name, dtype, unit, meaning; and the file table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from ioprism.model.trace import LAYERS, Mount
from ioprism.model.trace import OPERATIONS as OPERATIONS  # the column of operations
from ioprism.model.usage import CONSOLE, KERNEL, SHARED_MEMORY, FileFacts, Striping, is_data

KINDS = ("file", "dataset", "console")

Layer = pl.Enum(LAYERS)
Operation = pl.Enum(OPERATIONS)
Kind = pl.Enum(KINDS)


@dataclass(frozen=True, slots=True)
class Column:
    """What one column holds."""

    name: str
    dtype: pl.DataType
    meaning: str
    unit: str = ""
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A named set of columns, in order."""

    name: str
    purpose: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """The columns as polars wants them."""
        return pl.Schema({column.name: column.dtype for column in self.columns})

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def empty(self) -> pl.DataFrame:
        """The table without rows."""
        return self.schema.to_frame()

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Order and cast a frame's columns as declared; columns it lacks become null."""
        return frame.select(_conforming_columns(self, frozenset(frame.columns)))


@cache  # there are few such tables, and as few shapes in which a reader fills them
def _conforming_columns(table: Table, present: frozenset[str]) -> list[pl.Expr]:
    return [
        pl.col(column.name).cast(column.dtype)
        if column.name in present
        else pl.lit(None, dtype=column.dtype).alias(column.name)
        for column in table.columns
    ]


EVENTS = Table(
    "events",
    "One row for every call that was traced.",
    (
        Column("start", pl.Float64(), "when the call began, since the job started", "s"),
        Column("end", pl.Float64(), "when the call returned; never before `start`", "s"),
        Column(
            "rank",
            pl.Int32(),
            "MPI rank, or the process's index in a workflow without MPI",
            nullable=True,
        ),
        Column("process", pl.UInt32(), "row of the process table", nullable=True),
        Column("file", pl.UInt32(), "row of the file table", nullable=True),
        Column("layer", Layer, "the interface the call belongs to"),
        Column("operation", Operation, "what kind of call it is"),
        Column("function", pl.Categorical(), "the call's own name", nullable=True),
        Column("collective", pl.Boolean(), "whether all ranks take part", nullable=True),
        Column("nonblocking", pl.Boolean(), "whether it may return early", nullable=True),
        Column("offset", pl.Int64(), "first byte of the file it touches", "B", nullable=True),
        Column("bytes", pl.Int64(), "bytes moved; null for metadata calls", "B", nullable=True),
    ),
)

FILES = Table(
    "files",
    "One row for every file, data set and console stream that the trace names.",
    (
        Column("file", pl.UInt32(), "the row's own number, as events and counters use it"),
        Column("path", pl.String(), "the full name, as recorded"),
        Column("directory", pl.String(), "the path up to its last slash"),
        Column("pattern", pl.String(), "the path with every run of digits replaced by `#`"),
        Column("extension", pl.String(), "what follows the last dot of the name", nullable=True),
        Column("kind", Kind, "a file, a data set inside a file, or a console stream"),
        Column("parent", pl.UInt32(), "for a data set, the row of its file", nullable=True),
        Column("mount", pl.String(), "the mount point it is under", nullable=True),
        Column("filesystem", pl.String(), "the type of that mount", nullable=True),
        Column("stripe_size", pl.Int64(), "Lustre stripe size", "B", nullable=True),
        Column("stripe_count", pl.Int64(), "Lustre stripe count", nullable=True),
        Column("targets", pl.List(pl.Int64()), "storage targets in stripe order", nullable=True),
        Column("id", pl.UInt64(), "the identifier the trace itself uses", nullable=True),
    ),
)

PROCESSES = Table(
    "processes",
    "One row for every process, or thread where the trace distinguishes threads.",
    (
        Column("process", pl.UInt32(), "the row's own number, as events use it"),
        Column("rank", pl.Int32(), "MPI rank, or the process's index in a workflow without MPI"),
        Column("application", pl.String(), "the program it runs", nullable=True),
        Column("host", pl.String(), "the node it runs on", nullable=True),
        Column("pid", pl.Int64(), "process id of the operating system", nullable=True),
        Column(
            "tid", pl.UInt64(), "thread id, where the trace distinguishes threads", nullable=True
        ),
    ),
)

TABLES = (EVENTS, FILES, PROCESSES)


def join_small(tables: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Join tables until they have so many rows: work per table costs less, the fewer there are."""
    held: list[pl.DataFrame] = []
    height = 0
    for table in tables:
        held.append(table)
        height += table.height
        if height >= rows:
            yield pl.concat(held)
            held, height = [], 0
    if height:
        yield pl.concat(held)


LONGEST_PATH = 4096  # bytes; what is longer is not a mount point
MOUNTS_AT_ONCE = 20  # of one regular expression: its size is limited


def file_table(paths: Sequence[str] | pl.Series, mounts: Sequence[Mount] = ()) -> pl.DataFrame:
    """Return the file table for these paths, in order."""
    known = {m.path.rstrip("/"): m for m in mounts if len(m.path) <= LONGEST_PATH}
    mount = {place: one.path for place, one in known.items()}
    filesystem = {place: one.filesystem for place, one in known.items()}
    table = (
        pl.DataFrame({"path": pl.Series(paths, dtype=pl.String)})
        .with_columns(*DERIVED, _KIND, mount=_mount_of(list(known)))
        .with_columns(
            pl.col("mount").replace_strict(mount, default=None, return_dtype=pl.String),
            filesystem=pl.col("mount").replace_strict(
                filesystem, default=None, return_dtype=pl.String
            ),
        )
    )
    return FILES.conform(table.with_row_index("file"))


_PATH = pl.col("path")
# What follows from the path alone.
DERIVED = (
    _PATH.str.extract(r"^(.*)/[^/]*$", 1).fill_null("").alias("directory"),
    _PATH.str.replace_all(r"\d+", "#").alias("pattern"),
    _PATH.str.extract(r"[^/.][^/]*\.([^./]+)$", 1).alias("extension"),
)
_KIND = (
    pl.when(_PATH.is_in(sorted(CONSOLE)))
    .then(pl.lit("console"))
    .otherwise(pl.lit("file"))
    .cast(Kind)
    .alias("kind")
)


def without_data(files: pl.DataFrame) -> pl.Series:
    """Return the files for which `is_data` does not hold: console streams, parts of the kernel."""
    kernel = pl.any_horizontal(*(_PATH.str.starts_with(prefix) for prefix in KERNEL))
    made_up = kernel & ~_PATH.str.starts_with(SHARED_MEMORY)
    return files.filter((pl.col("kind") == "console") | made_up)["file"]


def _mount_of(mounts: Sequence[str]) -> pl.Expr:
    """The longest mount point that the path is under."""
    longest_first = [re.escape(mount) for mount in sorted(mounts, key=len, reverse=True)]
    return pl.coalesce(
        *(
            _PATH.str.extract(
                f"^({'|'.join(longest_first[first : first + MOUNTS_AT_ONCE])})(?:/|$)"
            )
            for first in range(0, len(mounts), MOUNTS_AT_ONCE)
        ),
        pl.lit(None, dtype=pl.String),
    )


def facts_of_files(
    files: pl.DataFrame, mounts: tuple[Mount, ...], lustre: pl.DataFrame | None
) -> FileFacts:
    """Return names, mounts and stripe layouts."""
    striped = files.drop_nulls(["stripe_size", "targets"])
    rows = striped.select("file", "stripe_size", "targets").iter_rows()
    paths = dict(files.select("file", "path").iter_rows())
    # How many storage targets the file system has, where the log records it.
    has_targets = lustre is not None and "system_targets" in lustre.columns
    targets = lustre["system_targets"].max() if lustre is not None and has_targets else None
    return FileFacts(
        paths,
        frozenset(file for file, path in paths.items() if not is_data(path)),
        mounts,
        {file: Striping(size, targets) for file, size, targets in rows},
        targets if isinstance(targets, int) and targets > 0 else None,
    )
