"""Which files are one job: the rule that all commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ioprism.errors import BrokenTraceError, NoSuchTraceError, TraceError, UnknownFormatError
from ioprism.formats.darshan.job import read_job
from ioprism.formats.darshan.log import is_log, read_log
from ioprism.formats.files import files_below
from ioprism.storage.remote import exists

if TYPE_CHECKING:
    from ioprism.formats.registry import Grouping

Group = tuple[Path, ...]


def groups(
    paths: Sequence[Path], *, format_name: str | None, grouping: Grouping = "auto"
) -> list[Group]:
    """Return the logs of each job, by the rule that all commands share.

    Darshan logs are told apart without reading their calls, so that a folder of thousands of
    them costs little.

    Raises:
        NoSuchTraceError: there is nothing at a path.
        UnknownFormatError: there is no trace in a folder.
    """
    for path in paths:
        if not exists(path):
            raise NoSuchTraceError(path)
    if grouping == "one":
        return [tuple(paths)]
    units = [unit for path in paths for unit in _units(path, format_name)]
    if grouping == "each":
        return [(unit,) for unit in units]
    logs = [unit for unit in units if format_name in (None, "darshan") and is_log(unit)]
    closed = [unit for unit in units if not os.access(unit, os.R_OK)]  # which reading them says
    known = {*logs, *closed}
    others = [unit for unit in units if unit not in known]
    return [*_jobs(logs), *_other_jobs(others, format_name), *((unit,) for unit in closed)]


def _units(path: Path, format_name: str | None) -> list[Path]:
    """The traces at a path: itself, or those in a folder of Darshan logs."""
    if path.is_file():
        return [path]
    files = files_below(path)
    logs = [inner for inner in files if is_log(inner)]
    if not logs or format_name not in (None, "darshan"):
        return [path]
    known = set(logs)
    others = (inner for inner in files if inner not in known)
    return [*logs, *(one for one in others if not os.access(one, os.R_OK) or _recognised(one))]


def _other_jobs(paths: Sequence[Path], format_name: str | None) -> list[Group]:
    if len(paths) < 2:
        return [(path,) for path in paths]
    from ioprism.formats.registry import read_traces

    return [trace.paths for trace in read_traces(*paths, format_name=format_name)]


def _jobs(logs: Sequence[Path]) -> list[Group]:
    """Join the logs that the ranks of a killed job left."""
    jobs: dict[object, list[Path]] = {}
    for path in logs:
        jobs.setdefault(_killed_job(path) or path, []).append(path)
    return [tuple(paths) for paths in jobs.values()]


def _killed_job(path: Path) -> object | None:
    try:
        job = read_job(read_log(path), _ignore) if "mmap" in path.name else None
    except TraceError:
        return None
    if job is None or job.end_time is not None or (job.ranks or 1) < 2:
        return None
    return path.parent, job.user, job.executable, job.ranks, int(job.start_time or 0)


def _ignore(warning: str) -> None:
    """Warnings come again when the log is read for the answer."""
    del warning


def _recognised(path: Path) -> bool:
    from ioprism.formats.registry import find_reader

    try:
        find_reader(path)
    except (UnknownFormatError, BrokenTraceError):
        return False
    return True


def job_groups(
    paths: Sequence[Path], *, format_name: str | None = None, grouping: Grouping = "auto"
) -> list[Group]:
    """The paths of each job, by the rule that all commands share; folders of any format too."""
    if grouping == "one" or (len(paths) == 1 and paths[0].is_file()):
        return [tuple(paths)]
    from ioprism.formats.registry import read_traces

    jobs: list[Group] = []
    for group in groups(paths, format_name=format_name, grouping=grouping):
        if len(group) == 1 and group[0].is_dir():
            traces = read_traces(*group, format_name=format_name, grouping=grouping)
            # A folder that is one trace stays one: its files cannot be read one by one.
            jobs += [group] if len(traces) == 1 else [tuple(trace.paths) for trace in traces]
        else:
            jobs.append(tuple(group))
    return jobs
