"""Keep a trace in another form, which the name of the target tells."""

from __future__ import annotations

from pathlib import Path

from ioprism.model.trace import Progress, Trace


def convert(
    trace: Trace, target: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write a CSV table, a trace for Perfetto, or a store of Parquet files."""
    if target.suffix == ".csv":
        from ioprism.formats.tables.export import write_events

        write_events(trace, target, replace=replace, progress=progress)
    elif target.name.endswith((".json", ".json.gz")):
        from ioprism.formats.chrome.writer import write_chrome

        write_chrome(trace, target, replace=replace, progress=progress)
    else:
        from ioprism.storage.trace_store import write_store

        write_store(trace, target, replace=replace, progress=progress)
