"""Traces from hand-made tables of calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from ioprism import EVENTS, PROCESSES, Job, MemoryPartition, Trace, file_table


def calls(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Events from rows of start, seconds, process, file, operation, bytes, offset, function."""
    table = pl.DataFrame(
        [
            {
                "start": float(row.get("start", 0.0)),
                "end": float(row.get("start", 0.0)) + float(row["seconds"]),
                "rank": row.get("process", 0),
                "process": row.get("process", 0),
                "file": row.get("file", 0),
                "layer": row.get("layer", "posix"),
                "operation": row.get("operation", "read"),
                "function": row.get("function", row.get("operation", "read")),
                "offset": row.get("offset"),
                "bytes": row.get("bytes"),
            }
            for row in rows
        ],
        schema_overrides=dict.fromkeys(("offset", "bytes", "file", "process", "rank"), pl.Int64),
        infer_schema_length=None,
    )
    return EVENTS.conform(table)


def trace_of(
    *pieces: pl.DataFrame, paths: Sequence[str] | None = None, processes: int | None = None
) -> Trace:
    """A trace whose partitions are these pieces of events."""
    every = pl.concat(pieces) if pieces else EVENTS.empty()
    files = 1 + int(every["file"].max() or 0)  # type: ignore[arg-type]
    ranks = processes or 1 + int(every["process"].max() or 0)  # type: ignore[arg-type]
    names = paths or [f"/scratch/run/part{number % 3}/data.{number}" for number in range(files)]
    rank = pl.int_range(ranks, dtype=pl.Int64)
    table = PROCESSES.conform(
        pl.select(
            process=rank,
            rank=rank,
            application=pl.lit("app"),
            host=pl.format("node{}", rank // 2),
        )
    )
    return Trace(
        "synthetic",
        (),
        Job(ranks=ranks, runtime=10.0),
        tuple(MemoryPartition(piece) for piece in pieces),
        load_files=lambda: file_table(names),
        load_processes=lambda: table,
    )
