"""Build the file table from paths: directory, pattern, extension and mount are derived once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ioprism.model.schema import FILES, Kind
from ioprism.model.trace import Mount

CONSOLE = ("<STDIN>", "<STDOUT>", "<STDERR>")


def file_table(paths: Sequence[str] | pl.Series, mounts: Sequence[Mount] = ()) -> pl.DataFrame:
    """Return the file table for these paths, in order."""
    path = pl.col("path")
    table = pl.DataFrame({"path": pl.Series(paths, dtype=pl.String)}).with_columns(
        directory=path.str.extract(r"^(.*)/[^/]*$", 1).fill_null(""),
        pattern=path.str.replace_all(r"\d+", "#"),
        extension=path.str.extract(r"[^/.][^/]*\.([^./]+)$", 1),
        kind=pl.when(path.is_in(CONSOLE))
        .then(pl.lit("console"))
        .otherwise(pl.lit("file"))
        .cast(Kind),
        mount=_mount_of(path, [mount.path for mount in mounts]),
    )
    kinds = {mount.path: mount.filesystem for mount in mounts}
    table = table.with_columns(
        filesystem=pl.col("mount").replace_strict(kinds, default=None, return_dtype=pl.String)
    )
    return FILES.conform(table.with_row_index("file"))


def _mount_of(path: pl.Expr, mounts: Sequence[str]) -> pl.Expr:
    """The longest mount point that the path lies under."""
    found = pl.lit(None, dtype=pl.String)
    for mount in sorted(set(mounts), key=len):
        under = (path == mount) | path.str.starts_with(mount.rstrip("/") + "/")
        found = pl.when(under).then(pl.lit(mount)).otherwise(found)
    return found
