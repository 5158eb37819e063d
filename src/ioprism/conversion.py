"""Write a trace in another form, chosen by the name of the target."""

from __future__ import annotations

from pathlib import Path

from ioprism.engine.base import Engine, MapsPartitions
from ioprism.errors import EndingError, NotEnoughDetailError, UsageError
from ioprism.model.trace import Progress, Trace
from ioprism.storage.store_parts import write_store_in_parts

FORMS = (".csv", ".parquet", ".json", ".json.gz", ".store")
TABLES = (".csv", ".parquet")
# Endings that promise another format; any other is part of a store's name, as in `run.42`.
OTHERS = frozenset(
    (".arrow", ".bz2", ".darshan", ".db", ".feather", ".gz", ".h5", ".hdf5", ".htm", ".html",
     ".jsonl", ".md", ".msgpack", ".nc", ".ndjson", ".ods", ".orc", ".otf2", ".pdf",
     ".pfw", ".png", ".sqlite", ".svg", ".tar", ".toml", ".tsv", ".txt", ".xls", ".xlsx", ".xml",
     ".xz", ".yaml", ".yml", ".zip", ".zst")
)  # fmt: skip


def check_ending(target: Path) -> None:
    """Refuse a name that promises a format which is not written.

    Raises:
        EndingError: its ending is that of another format.
    """
    if target.suffix.lower() in OTHERS and not target.name.lower().endswith(FORMS):
        raise EndingError(target, what="traces", known=FORMS)


def convert(
    trace: Trace,
    target: Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    engine: Engine | MapsPartitions | None = None,
    counters: bool = False,
) -> list[Path]:
    """Write a table, a trace for Perfetto, or a store of Parquet files; return what was written.

    A table holds events; with `counters`, or where there are no events, it holds counters, in a
    file for each module. With an engine that has workers, they write the store; an interrupted
    one is resumed.

    Raises:
        EndingError: the target's ending is that of another format.
        NotEnoughDetailError: there are no events or counters to write.
        UsageError: workers are asked to write anything but a store.
    """
    check_ending(target)
    name = target.name.lower()
    if isinstance(engine, MapsPartitions):
        if name.endswith((*TABLES, ".json", ".json.gz")):
            raise UsageError(
                f"workers write only stores, and {target.name} is not a folder.\n"
                "Hint: leave out --engine dask, or name a folder."
            )
        write_store_in_parts(trace, target, engine.map_partitions, replace=replace)
    elif name.endswith(TABLES):
        return _write_tables(trace, target, counters, replace=replace, progress=progress)
    elif name.endswith((".json", ".json.gz")):
        from ioprism.formats.chrome_writer import write_chrome

        write_chrome(trace, target, replace=replace, progress=progress)
    else:
        from ioprism.storage.trace_store import write_store

        write_store(trace, target, replace=replace, progress=progress)
    return [target]


def _write_tables(
    trace: Trace, target: Path, counters: bool, *, replace: bool, progress: Progress | None
) -> list[Path]:
    from ioprism.formats.tables.export import write_counters, write_events

    if counters or not trace.partitions:
        if not trace.counters:
            raise NotEnoughDetailError(
                needed="counters" if counters else "events or counters",
                has=", ".join(sorted(trace.detail)) or "neither",
                hint="`ioprism convert TRACE NAME.store` keeps whatever a trace holds.",
            )
        return write_counters(trace, target, replace=replace)
    write_events(trace, target, replace=replace, progress=progress)
    return [target]
