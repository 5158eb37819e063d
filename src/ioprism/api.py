"""The library's front door: the commands' names as functions."""

from __future__ import annotations

from pathlib import Path

from ioprism.analyses.characterise import Characteristics
from ioprism.analyses.characterise import characterise as _characterise
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.model.trace import Trace
from ioprism.readers.registry import read_trace, read_traces
from ioprism.readers.store import write_store


def read(*paths: str | Path, format: str | None = None) -> Trace:  # noqa: A002 - as --format
    """Read files and folders of any known format as one trace: a job, or a workflow."""
    return read_trace(*map(Path, paths), format_name=format)


def read_jobs(*paths: str | Path, format: str | None = None) -> list[Trace]:  # noqa: A002
    """Read files and folders of any known format: one trace per job."""
    return read_traces(*map(Path, paths), format_name=format)


def characterise(trace: Trace, *, engine: Engine | None = None) -> Characteristics:
    """Return how much I/O a job did, by whom, through which interface."""
    return _characterise(trace, engine or LocalEngine())


def convert(trace: Trace, folder: str | Path, *, replace: bool = False) -> None:
    """Keep a trace as a folder of Parquet files, to be read again in milliseconds."""
    write_store(trace, Path(folder), replace=replace)
