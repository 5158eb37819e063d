"""Write a store with many processes, and resume after an interruption.

Each partition becomes separate files in a folder beside the target, and a note records when it
is done. When all are, the manifest is written and the folder takes its name. The same command,
run again after an interruption, writes what is missing.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ioprism.errors import OutputError
from ioprism.model.trace import Completeness, Partition, Trace
from ioprism.storage.atomic import held_alone, refuse_unless_ours, sync, take_place
from ioprism.storage.trace_store import MANIFEST, VERSION, write_events, write_tables
from ioprism.text import printable
from ioprism.version import __version__

PLAN = "plan.json"
LOCK = ".lock"


WrittenPartition = dict[str, Any]  # its `files`, and `warnings` from reading it
MapPartitions = Callable[
    [Trace, Callable[[int, Partition | None], WrittenPartition]], list[WrittenPartition]
]


def write_store_in_parts(
    trace: Trace, folder: Path, map_partitions: MapPartitions, *, replace: bool = False
) -> None:
    """Write a trace as a store; the folder appears only when it is complete.

    Raises:
        OutputError: the folder exists and is not to be replaced, or cannot be written.
    """
    refuse_unless_ours(folder, marker=MANIFEST, replace=replace)
    parts = folder.with_name(f".{folder.name}.parts")
    taken = f"another run is writing {folder}.\nHint: wait until it has finished."
    try:
        parts.mkdir(parents=True, exist_ok=True)
        if any(stat.S_ISLNK(os.lstat(path).st_mode) for path in (parts, *parts.iterdir())):
            raise OutputError(
                f"{printable(str(parts))} holds a symbolic link; nothing is written to it.\n"
                "Hint: remove it."
            )
        with held_alone(parts / LOCK, otherwise=taken):
            _begin(parts, _plan(trace))
            done = map_partitions(trace, partial(write_part, parts.absolute()))
            for message in dict.fromkeys(m for one in done for m in one["warnings"]):
                trace.completeness.warn(message)
            write_tables(trace, parts, [file for one in done for file in one["files"]])
            take_place(parts, folder, marker=MANIFEST, replace=replace)
            _remove_notes(folder)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror or error}).\n"
            "Hint: run the same command again to resume."
        ) from error


def write_part(folder: Path, number: int, partition: Partition | None) -> WrittenPartition:
    """Write one partition, unless it is there already; any worker that sees the folder can."""
    note = folder / f"part-{number:05d}.json"
    if note.is_file():
        return dict(json.loads(note.read_text(encoding="utf-8")))
    completeness = Completeness()
    batches = iter(()) if partition is None else partition.batches(completeness.warn)
    files = write_events(batches, folder, f"events-{number:05d}")
    done = {"files": files, "warnings": completeness.warnings}
    # The note appears whole or not at all, and what it names is on storage by then.
    temporary = folder / f".{note.name}.{os.getpid()}"
    temporary.write_text(json.dumps(done), encoding="utf-8")
    for path in (*(folder / name for name in files), temporary):
        sync(path)
    temporary.replace(note)
    return done


def _plan(trace: Trace) -> dict[str, Any]:
    """What has to be the same for parts of an earlier attempt to be of use."""
    return {
        "ioprism": __version__,
        "store": VERSION,
        "sources": [list(one) for path in trace.paths for one in _contents(path)],
        "partitions": len(trace.partitions),
    }


def _contents(path: Path) -> Iterator[tuple[str, int, int]]:
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            status = file.stat()
            yield str(file.absolute()), status.st_size, status.st_mtime_ns


def _begin(parts: Path, plan: dict[str, Any]) -> None:
    """Resume an earlier attempt if it had the same plan; otherwise start again.

    Raises:
        OutputError: the folder holds what no attempt can have left.
    """
    try:
        known = json.loads((parts / PLAN).read_text(encoding="utf-8")) == plan
    except (OSError, ValueError):
        known = False
    if known:
        return
    left = [path for path in parts.iterdir() if path.name != LOCK]
    if left:
        refuse_unless_ours(parts, marker=PLAN, replace=True)
    for path in sorted(left, key=lambda path: path.name == PLAN):  # the plan marks it as ours
        path.unlink()
    (parts / PLAN).write_text(json.dumps(plan), encoding="utf-8")


def _remove_notes(folder: Path) -> None:
    for note in [folder / PLAN, folder / LOCK, *folder.glob("part-*.json")]:
        with suppress(OSError):
            note.unlink()
