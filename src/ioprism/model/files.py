"""Build the file table from paths: directory, pattern, extension and mount are derived once."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from ioprism.model.schema import FILES, Kind
from ioprism.model.trace import Mount
from ioprism.model.usage import (
    CONSOLE,
    KERNEL,
    SHARED_MEMORY,
    FileFacts,
    Striping,
    is_data,
)

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
    return FileFacts(
        paths,
        frozenset(file for file, path in paths.items() if not is_data(path)),
        mounts,
        {file: Striping(size, targets) for file, size, targets in rows},
        _system_targets(lustre),
    )


def _system_targets(lustre: pl.DataFrame | None) -> int | None:
    """How many storage targets the file system has, where the log records it."""
    if lustre is None or "system_targets" not in lustre.columns:
        return None
    most = lustre["system_targets"].max()
    return most if isinstance(most, int) and most > 0 else None
