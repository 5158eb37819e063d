"""A folder that `ioprism record` made: what ran, how each run ended, and where its traces are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError
from ioprism.version import __version__

MARKER = "record.json"
FORM = 1  # version of the marker's content


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of a program under a tracer."""

    folder: str  # of its traces, below that of the recording
    seconds: float  # from start to end, as a user would wait
    exit_code: int | None  # None where a signal ended it
    signal: int | None
    started: float  # seconds since 1970
    left_running: int = 0  # processes that it started and that did not end with it

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself, with success."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Recording:
    """What a recording folder holds."""

    folder: Path
    command: tuple[str, ...]
    tracer: str  # with its version
    runs: tuple[RecordedRun, ...]
    cost: Mapping[str, float] | None = None  # that the tracer adds: per_call, per_process
    untraced_seconds: float | None = None  # of a run without the tracer

    def traces(self, run: RecordedRun) -> Path:
        """Return the folder of a run's traces."""
        return self.folder / run.folder

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "command": list(self.command),
            "tracer": self.tracer,
            "cost": None if self.cost is None else dict(self.cost),
            "untraced_seconds": self.untraced_seconds,
            "runs": [asdict(run) for run in self.runs],
        }


def write_recording(recording: Recording) -> None:
    """Write the marker of a recording; an earlier one is replaced."""
    from ioprism.storage.atomic import atomic_write_text  # not needed for reading

    content = {"ioprism": __version__, "recording": FORM, **recording.to_dict()}
    text = json.dumps(content, indent=2) + "\n"
    atomic_write_text(recording.folder / MARKER, text, replace=True)


def read_recording(folder: Path) -> Recording | None:
    """Return what a folder of `ioprism record` holds; None for any other path.

    Raises:
        BrokenTraceError: the marker is damaged.
    """
    marker = folder / MARKER
    if not marker.is_file():
        return None
    try:
        content = json.loads(marker.read_text("utf-8"))
        runs = [RecordedRun(**run) for run in content["runs"]]
        return Recording(
            folder=folder,
            command=tuple(content["command"]),
            tracer=str(content["tracer"]),
            runs=tuple(run for run in runs if _is_below(folder, run.folder)),
            cost=content.get("cost"),
            untraced_seconds=content.get("untraced_seconds"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenTraceError(
            "the list of runs is damaged.\nHint: give the folders run-1, run-2, … themselves.",
            source=marker,
        ) from error


def _is_below(folder: Path, name: str) -> bool:
    return (folder / name).resolve().is_relative_to(folder.resolve())


def recorded_runs(source: Path) -> dict[Path, RecordedRun]:
    """Return the runs that a path stands for, by the folder of their traces.

    A recording stands for its runs, and the folder of a run for that run; any other path for none.
    Runs that failed count only where no run succeeded, and those without traces never.

    Raises:
        BrokenTraceError: the list of runs is damaged.
    """
    whole, part = read_recording(source), read_recording(source.parent)
    if whole is not None:
        runs = {whole.traces(run): run for run in whole.runs if whole.traces(run).is_dir()}
        return {path: run for path, run in runs.items() if run.succeeded} or runs
    if part is not None:
        return {path: run for run in part.runs if (path := part.traces(run)) == source}
    return {}
