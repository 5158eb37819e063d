"""Write a store by many processes, and go on where it was interrupted.

Each partition becomes files of its own in a folder beside the target, and a note says when it
is done. When all are, the manifest is written and the folder takes its name. The same command,
given again after an interruption, writes what is not there yet.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ioprism.errors import OutputError
from ioprism.model.trace import Completeness, Partition, Trace
from ioprism.storage.trace_store import VERSION, check_target, write_events, write_tables
from ioprism.version import __version__

PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Written:
    """What has become of one partition."""

    files: tuple[str, ...]
    warnings: tuple[str, ...]


MapPartitions = Callable[[Trace, Callable[[int, Partition | None], Written]], list[Written]]


def write_store_in_parts(
    trace: Trace, folder: Path, map_partitions: MapPartitions, *, replace: bool = False
) -> None:
    """Write a trace as a store; the folder appears only when it is complete.

    Raises:
        OutputError: the folder exists and is not to be replaced, or cannot be written.
    """
    check_target(folder, replace=replace)
    if folder.exists() and not replace:
        raise OutputError(
            f"{folder} already exists and is left as it is.\n"
            "Hint: choose another name, or use --force to replace it."
        )
    parts = folder.with_name(f".{folder.name}.parts")
    try:
        _begin(parts, _plan(trace))
        done = map_partitions(trace, partial(write_part, parts.absolute()))
        for message in dict.fromkeys(m for one in done for m in one.warnings):
            trace.completeness.warn(message)
        write_tables(trace, parts, [file for one in done for file in one.files])
        _take_place(parts, folder)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror or error}).\n"
            "Hint: run the same command again to resume."
        ) from error


def write_part(folder: Path, number: int, partition: Partition | None) -> Written:
    """Write one partition, unless it is there already; any worker that sees the folder can."""
    note = folder / f"part-{number:05d}.json"
    if note.is_file():
        said = json.loads(note.read_text(encoding="utf-8"))
        return Written(tuple(said["files"]), tuple(said["warnings"]))
    heard = Completeness()
    batches = iter(()) if partition is None else partition.batches(heard.warn)
    files = write_events(batches, folder, f"events-{number:05d}")
    done = Written(tuple(files), heard.warnings)
    # The note appears whole or not at all: what it names is complete.
    aside = folder / f".{note.name}.{os.getpid()}"
    said = {"files": done.files, "warnings": done.warnings}
    aside.write_text(json.dumps(said), encoding="utf-8")
    aside.replace(note)
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
            told = file.stat()
            yield str(file.absolute()), told.st_size, told.st_mtime_ns


def _begin(parts: Path, plan: dict[str, Any]) -> None:
    """Go on with an earlier attempt if it had the same plan; else begin anew."""
    try:
        known = json.loads((parts / PLAN).read_text(encoding="utf-8")) == plan
    except (OSError, ValueError):
        known = False
    if known:
        return
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    (parts / PLAN).write_text(json.dumps(plan), encoding="utf-8")


def _take_place(parts: Path, folder: Path) -> None:
    for note in [parts / PLAN, *parts.glob("part-*.json")]:
        note.unlink()
    old = folder.with_name(f".{folder.name}.old")
    if folder.exists():
        folder.rename(old)
    parts.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
