"""Events as a plain table for other programs: CSV."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ioprism.model.trace import Progress, Trace
from ioprism.storage.atomic import atomic_write


def write_csv(
    trace: Trace, path: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write one row per event: the columns of the event table, with paths instead of numbers."""
    paths = trace.files.select("file", "path").lazy()
    with atomic_write(path, replace=replace) as aside, aside.open("wb") as file:
        for number, batch in enumerate(trace.batches()):
            named = batch.join(paths, on="file", how="left", maintain_order="left")
            rows = named.with_columns(file=pl.col("path")).drop("path").collect()
            rows.write_csv(file, include_header=number == 0)
            if progress is not None:
                progress(number + 1)
