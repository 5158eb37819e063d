"""Folders that `ioprism record` made, and files of object storage read as if they were here.

Any address that fsspec knows will do, such as `s3://bucket/run42.store`. A file is copied when it
is read, and gone afterwards, so that workers fetch only what they work on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError, MissingPackageError, TraceError
from ioprism.model.trace import LATEST
from ioprism.text import address_of, open_plain
from ioprism.version import __version__


def exists(path: Path) -> bool:
    """Whether there is something, here or there.

    Raises:
        TraceError: the storage cannot be reached.
        MissingPackageError: a package is missing that knows the storage.
    """
    return _has(path, "exists") if address_of(path) else path.exists()


def is_file(path: Path) -> bool:
    """Whether there is a file, here or there; errors as `exists`."""
    return _has(path, "isfile") if address_of(path) else path.is_file()


def _has(path: Path, question: str) -> bool:
    address = str(address_of(path))
    with _failures_said(path):
        return bool(getattr(_storage(address), question)(address))


@contextmanager
def at_hand(path: Path) -> Iterator[Path]:
    """Yield the file's path on this machine; what was copied is gone afterwards.

    Raises:
        TraceError: the file cannot be copied.
    """
    address = address_of(path)
    if address is None:
        yield path
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ioprism-") as folder:
        copy = Path(folder) / path.name
        with _failures_said(path):
            _storage(address).get_file(address, str(copy))
        yield copy


def _storage(address: str) -> Any:  # noqa: ANN401 - of an optional package
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.core.url_to_fs(address)[0]
    except ImportError as error:
        package = error.name or getattr(error.__cause__, "name", None) or str(error)
        install = "'ioprism[remote]'" if package == "s3fs" else package
        raise MissingPackageError(needed_by=address, package=package, install=install) from None
    except ValueError as error:
        raise TraceError(f"this address cannot be used ({error}).", source=Path(address)) from error


@contextmanager
def _failures_said(path: Path) -> Iterator[None]:
    """Turn what storage packages raise, which is of any kind, into one message."""
    try:
        yield
    except (TraceError, MissingPackageError):
        raise
    except Exception as error:
        raise TraceError(
            f"the storage does not return it ({type(error).__name__}: {error}).\n"
            "Hint: check the address and the credentials its package looks for.",
            source=path,
        ) from error


MARKER = "record.json"
LARGEST_MARKER = 64 * 2**20  # bytes
COST = ("per_call", "per_process")
# RuntimeError: values nested too deep, or a folder that is a link to itself.
NO_MARKER = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError)
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
        with open_plain(marker) as file:
            content = json.loads(file.read(LARGEST_MARKER))
        runs = [_run(**run) for run in content["runs"]]
        cost, untraced = content.get("cost"), content.get("untraced_seconds")
        return Recording(
            folder=folder,
            command=tuple(map(str, content["command"])),
            tracer=str(content["tracer"]),
            runs=tuple(run for run in runs if _is_below(folder, run.folder)),
            cost=None if cost is None else {key: _time(cost[key]) for key in COST},
            untraced_seconds=None if untraced is None else _time(untraced),
        )
    except (*NO_MARKER, OSError) as error:
        raise BrokenTraceError(
            "the list of runs is damaged.\nHint: give the folders run-1, run-2, … themselves.",
            source=marker,
        ) from error


def _run(**facts: Any) -> RecordedRun:  # noqa: ANN401 - whatever the marker holds
    """Return a run, each fact of the kind that it has to be; ValueError or TypeError otherwise."""
    run = RecordedRun(**facts)
    whole = (run.exit_code, run.signal, run.left_running)
    if not isinstance(run.folder, str) or not all(n is None or isinstance(n, int) for n in whole):
        raise TypeError("a fact of another kind")
    return replace(run, seconds=_time(run.seconds), started=_time(run.started))


def _time(value: Any) -> float:  # noqa: ANN401 - whatever the marker holds
    seconds = float(value)
    if not 0 <= seconds < LATEST:
        raise ValueError(f"{seconds} is not a time")
    return seconds


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
