"""The facts of the job and the names of its files."""

from __future__ import annotations

import re
import struct

from ioprism.formats.budget import Budget
from ioprism.formats.darshan.log import Log, whole
from ioprism.model.layers import MOST_RANKS
from ioprism.model.trace import Job, Mount, Warn

JOB_BYTES = 64 * 1024  # Darshan itself writes 4 KiB
NAME_BYTES = 4 * 2**30
BYTES_OF_NAME = 300  # of memory for an entry: a number, a text, and their place in a table
NAMES = "the table of file names"
METADATA = 1024
LONGEST_RUN = 10 * 365 * 86400  # seconds; beyond it the times are damage


def read_job(log: Log, warn: Warn) -> Job:
    """Read the job region; facts that cannot be read are None."""
    data = whole(log, log.job, warn, limit=JOB_BYTES)
    has_nanoseconds = log.version >= (3, 41)
    layout = f"{log.byte_order}{7 if has_nanoseconds else 5}q"
    size = struct.calcsize(layout)
    if len(data) < size:
        warn(f"{log.path.name}: the job record (ranks, times, program) cannot be read")
        return Job()
    fields = struct.unpack_from(layout, data)
    user, start, start_ns, end, end_ns, ranks, job_id = (
        fields if has_nanoseconds else (*fields[:2], 0, fields[2], 0, *fields[3:])
    )
    metadata = data[size : size + METADATA].split(b"\0")[0]
    executable, mounts = _executable_and_mounts(data[size + METADATA :])
    if not 0 < ranks <= MOST_RANKS:
        warn(f"{log.path.name}: the number of ranks is implausible ({ranks}) and is ignored")
    ended = end >= start and end > 0
    # Old logs count whole seconds, first and last included, as Darshan's own tools do.
    runtime = (end - start) + (end_ns - start_ns) / 1e9 + (0 if has_nanoseconds else 1)
    if ended and runtime > LONGEST_RUN:
        warn(f"{log.path.name}: the run time is implausible ({runtime:.0f} s) and is ignored")
        ended = False
    elif not ended:
        warn(f"{log.path.name}: the job did not end normally; its end and run time are unknown")
    return Job(
        ranks=ranks if 0 < ranks <= MOST_RANKS else None,
        start_time=start + start_ns / 1e9 if start > 0 else None,
        end_time=end + end_ns / 1e9 if ended else None,
        runtime=max(0.0, runtime) if ended else None,
        executable=executable or None,
        user=user,
        job_id=str(job_id),
        mounts=mounts,
        metadata=_key_values(_text(metadata)),
    )


def _executable_and_mounts(data: bytes) -> tuple[str, tuple[Mount, ...]]:
    lines = _text(data.split(b"\0")[0]).split("\n")
    mounts = tuple(
        Mount(path, filesystem)
        for filesystem, tab, path in (line.partition("\t") for line in lines[1:])
        if tab
    )
    return lines[0], mounts


def _key_values(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value for key, equals, value in pairs if equals}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def read_names(log: Log, warn: Warn) -> dict[int, str]:
    """Read the names by identifier; a name that is cut off is dropped with a warning.

    Raises:
        OverBudgetError: there are more names than a log of this size can hold.
    """
    data = whole(log, log.names, warn, limit=NAME_BYTES)
    counted = log.version < (3, 10)
    read = _counted_names if counted else _terminated_names
    names, consumed = read(data, log.byte_order, Budget(log.path))
    if consumed < len(data):
        warn(f"{log.path.name}: the table of file names is cut off; some files have no name")
    return names


_TERMINATED = re.compile(rb"(.{8})([^\0]*)\0", re.DOTALL)


def _terminated_names(data: bytes, order: str, budget: Budget) -> tuple[dict[int, str], int]:
    budget.take(BYTES_OF_NAME * min(data.count(b"\0"), len(data) // 9), NAMES)
    entries = _TERMINATED.findall(data)
    identifiers = struct.unpack(f"{order}{len(entries)}Q", b"".join(one for one, _ in entries))
    names: dict[int, str] = {}
    for identifier, (_, name) in zip(identifiers, entries, strict=True):
        _remember(names, identifier, name)
    return names, sum(9 + len(name) for _, name in entries)


def _counted_names(data: bytes, order: str, budget: Budget) -> tuple[dict[int, str], int]:
    head = struct.Struct(f"{order}QI")
    names: dict[int, str] = {}
    position = 0
    while position + head.size <= len(data):
        identifier, length = head.unpack_from(data, position)
        end = position + head.size + length
        if end > len(data):
            break
        budget.take(BYTES_OF_NAME, NAMES)
        _remember(names, identifier, data[position + head.size : end])
        position = end
    return names, position


def _remember(names: dict[int, str], identifier: int, name: bytes) -> None:
    """Keep the first name that is not empty, as Darshan does."""
    if not names.get(identifier):
        names[identifier] = name.decode("utf-8", "backslashreplace")
