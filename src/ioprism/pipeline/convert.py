"""Write a trace in another form, chosen by the name of the target."""

from __future__ import annotations

from pathlib import Path

from ioprism.engine.base import Engine, MapsPartitions
from ioprism.errors import UsageError
from ioprism.model.trace import Progress, Trace
from ioprism.storage.store_parts import write_store_in_parts


def convert(
    trace: Trace,
    target: Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    engine: Engine | MapsPartitions | None = None,
) -> None:
    """Write a CSV table, a trace for Perfetto, or a store of Parquet files.

    With an engine that has workers, they write the store; an interrupted one is resumed.

    Raises:
        UsageError: workers are asked to write anything but a store.
    """
    if isinstance(engine, MapsPartitions):
        if target.name.endswith((".csv", ".json", ".json.gz")):
            raise UsageError(
                f"workers write only stores, and {target.name} is not a folder.\n"
                "Hint: leave out --engine dask, or name a folder."
            )
        write_store_in_parts(trace, target, engine.map_partitions, replace=replace)
    elif target.suffix == ".csv":
        from ioprism.formats.tables.export import write_events

        write_events(trace, target, replace=replace, progress=progress)
    elif target.name.endswith((".json", ".json.gz")):
        from ioprism.formats.chrome.writer import write_chrome

        write_chrome(trace, target, replace=replace, progress=progress)
    else:
        from ioprism.storage.trace_store import write_store

        write_store(trace, target, replace=replace, progress=progress)
