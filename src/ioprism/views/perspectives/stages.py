"""Main views kept between runs, found again by content: never those of another trace.

The name of a stage is a digest of every byte of the trace, of the main view's settings and of
ioprism's version. What is damaged or half written is not found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.errors import NoSuchTraceError, OutputError
from ioprism.model.schema import FILES, PROCESSES
from ioprism.model.trace import Completeness, Job, Mount, Trace
from ioprism.storage.atomic import atomic_folder
from ioprism.version import __version__
from ioprism.views.perspectives.main_view import VERSION, MainView

FACTS = "stage.json"


@dataclass(frozen=True, slots=True)
class Stage:
    """A main view and what has to be known of its trace."""

    trace: Trace  # without events
    main: pl.DataFrame


@dataclass(frozen=True, slots=True)
class StageStore:
    """A folder of stages."""

    folder: Path

    def load(self, key: str, *, paths: Sequence[Path]) -> Stage | None:
        """Return a stored stage, or None if there is none or it is damaged."""
        place = self.folder / key
        try:
            facts = json.loads((place / FACTS).read_text(encoding="utf-8"))
            tables = {
                name: pl.read_parquet(place / f"{name}.parquet", glob=False) for name in _TABLES
            }
            return Stage(_trace(facts, tables, paths), tables["main"])
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
            return None

    def save(self, key: str, stage: Stage) -> None:
        """Keep a stage; it appears when it is complete."""
        trace = stage.trace
        facts = {
            "format": trace.format,
            "job": asdict(trace.job),
            "warnings": trace.completeness.warnings,
        }
        tables = {"main": stage.main, "files": trace.files, "processes": trace.processes}
        try:
            with atomic_folder(self.folder / key, marker=FACTS, replace=True) as temporary:
                for name, table in tables.items():
                    table.write_parquet(temporary / f"{name}.parquet", compression="zstd")
                (temporary / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{self.folder}: the stage cannot be kept ({error.strerror}).\n"
                "Hint: choose another folder with --stages, or leave it out."
            ) from error


_TABLES = ("main", "files", "processes")


def stage_key(
    paths: Sequence[Path], view: MainView, *, format_name: str | None, layout: str = ""
) -> str:
    """Name the stage of these traces under these settings.

    Raises:
        NoSuchTraceError: there is nothing at one of the paths.
    """
    digest = hashlib.blake2b(digest_size=20)
    said = [__version__, VERSION, asdict(view), format_name, layout, pl.__version__]
    digest.update(json.dumps(said, sort_keys=True).encode())
    for path in paths:
        if not path.exists():
            raise NoSuchTraceError(path)
        for name, file in _contents(path):
            digest.update(f"\0{len(name)}:{name}:".encode(errors="surrogateescape"))
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "blake2b").digest())
    return digest.hexdigest()


def _contents(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(path)), file


def _trace(facts: dict[str, Any], tables: dict[str, pl.DataFrame], paths: Sequence[Path]) -> Trace:
    completeness = Completeness()
    for message in facts["warnings"]:
        completeness.warn(str(message))
    mounts = tuple(Mount(m["path"], m["filesystem"]) for m in facts["job"].pop("mounts"))
    return Trace(
        format=str(facts["format"]),
        paths=tuple(paths),
        job=Job(**facts["job"], mounts=mounts),
        load_files=lambda: FILES.conform(tables["files"]),
        load_processes=lambda: PROCESSES.conform(tables["processes"]),
        completeness=completeness,
    )
